//! Constrained replies: drafts change nothing, whichever grammar and drafter, and what is complete
//! belongs to the grammar.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock, Mutex};

use candle_core::quantized::GgmlDType;
use foretoken_engine::accept::Guess;
use foretoken_engine::check::{compare, reread};
use foretoken_engine::constraint::Constraint;
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Reply, Request};
use foretoken_engine::distribution::Distribution;
use foretoken_engine::draft::{
    Draft, DraftRequest, Drafter, Drafters, ForcedDrafter, HeadDrafter, ModelDrafter, NgramDrafter,
    RecyclingDrafter, Vocabulary, head_drafter,
};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::{DrafterChoice, Speculation, Staged, Tree};
use foretoken_engine::trace::{Finish, Outcome};
use foretoken_grammar::{Calls, Grammar};
use foretoken_model::error::Result;
use foretoken_model::format::Format;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_model::tools::{MARKS, Place};
use foretoken_model::{CallForm, CallParser, ModelSource, Piece, Special, Thinking, Tokenizer, Tool};
use foretoken_testkit::Gguf;
use foretoken_tests::{
    BlockKind, EVEN, Flags, RandomBlockHead, RandomHead, Shape, chat_prompt, decoder, loaded, model_drafter,
    nightly_or, shaped_model, starter_target,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn coupled() -> Sampling {
    Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() }
}

fn drawn(seed: u32) -> Sampling {
    Sampling { temperature: 1.0, top_p: 0.9, seed: Some(seed), ..Sampling::default() }
}

/// A schema whose texts a small model can end.
fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 12 },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 },
            "animals": { "type": "array", "items": { "enum": ["cat", "dog", "fox"] }, "maxItems": 3 },
            "kind": { "const": "a friend of the fox and the dog" },
        },
        "required": ["name", "age", "animals", "kind"],
        "additionalProperties": false,
    })
}

fn grammars() -> Vec<Grammar> {
    vec![
        Grammar::Schema(person().to_string()),
        Grammar::Json,
        Grammar::Regex("(The (cat|dog|fox) (sat|ran|slept)\\. ){2,6}The end\\.".to_owned()),
        Grammar::Lark(
            "start: line+\nline: WORD \" = \" NUMBER \"\\n\"\nWORD: /[a-z]{2,7}/\nNUMBER: /[0-9]{1,3}/"
                .to_owned(),
        ),
        calls(CallForm::HERMES, &person(), false, None),
        calls(CallForm::LLAMA, &person(), true, None),
        calls(CallForm::GEMMA, &person(), true, None),
        calls(CallForm::GLM_4_7, &person(), true, None),
        calls(CallForm::LFM, &person(), false, None),
    ]
}

/// Grammar of replies that may or have to call a tool with arguments of this schema.
fn calls(form: CallForm, parameters: &Value, required: bool, tokenizer: Option<&Tokenizer>) -> Grammar {
    let tools = greetings(parameters);
    Calls { form, tools: &tools, required, parallel: true, tokenizer }.grammar(None).unwrap()
}

fn greetings(parameters: &Value) -> [Tool; 2] {
    let tool = |name: &str, parameters| Tool { name: name.to_owned(), description: None, parameters };
    let none = json!({ "properties": {}, "additionalProperties": false, "maxProperties": 0 });
    [tool("greet", parameters.clone()), tool("greet_all", none)]
}

fn constrained(grammar: &Grammar) -> Option<Constraint> {
    Some(Constraint { grammar: grammar.clone(), thinking: None })
}

fn request(decoder: &Decoder, grammar: &Grammar, sampling: &Sampling) -> Request {
    let prompt = chat_prompt(&starter_target(), decoder.tokenizer(), "Tell me a story about a fox.");
    Request {
        sampling: sampling.clone(),
        max_tokens: Some(60),
        constraint: constrained(grammar),
        ..Request::new(prompt)
    }
}

fn write(decoder: &mut Decoder, request: &Request, drafters: &mut Drafters) -> Reply {
    decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn everybody(decoder: &Decoder) -> Drafters {
    Drafters::new(vec![
        Box::new(model_drafter(decoder.tokenizer())),
        Box::new(ForcedDrafter),
        Box::<NgramDrafter>::default(),
        Box::<RecyclingDrafter>::default(),
    ])
}

/// Compares replies under every grammar, greedy and coupled, drafted in all of `ways`, with plain
/// ones. Returns the number of accepted guesses.
#[track_caller]
fn assert_lossless(drafters: &mut Drafters, ways: &[Speculation]) -> u32 {
    let mut decoder = decoder(&starter_target());
    let mut accepted = 0;
    for grammar in grammars() {
        for sampling in [Sampling::greedy(), coupled()] {
            let mut request = request(&decoder, &grammar, &sampling);
            let plain = write(&mut decoder, &request, &mut Drafters::default());
            for way in ways {
                request.speculation = way.clone();
                let drafted = write(&mut decoder, &request, drafters);
                assert_eq!(drafters.failure(), None);
                assert_eq!(drafted.tokens, plain.tokens, "{grammar:?} drafted by {way:?}: {}", plain.text);
                assert_eq!((&drafted.text, drafted.summary.finish), (&plain.text, plain.summary.finish));
                accepted += drafted.summary.accepted;
            }
        }
    }
    accepted
}

#[test]
fn no_drafter_changes_a_constrained_text() {
    let only = |drafter, length| Speculation { drafter, ..Speculation::fixed(length) };
    let ways = [
        Speculation::default(),
        Speculation::fixed(5),
        Speculation { tree: Tree::Width(3), ..only(DrafterChoice::Model, 4) },
        Speculation { staged: Staged::On, ..only(DrafterChoice::Model, 6) },
        only(DrafterChoice::Ngram, 8),
        Speculation { tree: Tree::Width(3), ..only(DrafterChoice::Recycling, 4) },
    ];
    let accepted = assert_lossless(&mut everybody(&decoder(&starter_target())), &ways);
    assert!(accepted > 500, "only {accepted} drafted tokens were accepted: nothing was tested");
}

#[test]
fn no_draft_head_changes_a_constrained_text() {
    let folder = tempfile::tempdir().unwrap();
    let (target, ends) = (starter_target(), starter_target().tokenizer().unwrap().ends().to_vec());
    let mut head = RandomHead::new(target.config().unwrap(), Flags::default());
    head.entering = vec![2, 4, 6];
    let head = head.gguf(folder.path(), GgmlDType::Q8_0).unwrap().for_target(&target).unwrap();
    let block = RandomBlockHead::new(target.config().unwrap(), BlockKind::DFlash);
    let block = block.any_form(folder.path()).for_target(&target).unwrap();
    let heads: [Box<dyn Drafter>; 2] = [
        Box::new(HeadDrafter::new(&head, loaded(&head), &ends).unwrap()),
        head_drafter(&block, loaded(&block), &ends).unwrap(),
    ];
    for head in heads {
        let tree = Speculation { tree: Tree::Width(3), ..Speculation::fixed(4) };
        assert_lossless(&mut Drafters::new(vec![head]), &[Speculation::fixed(4), tree]);
    }
}

/// A drafter whose drafts are mostly not allowed: certain guesses, or drawn from a distribution
/// that knows of no constraint.
struct Ignorant {
    drawn: bool,
}

impl Drafter for Ignorant {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Model
    }

    fn draft(&mut self, context: &Context, request: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        let guess = |index: usize| {
            // Any of sixty tokens, as if it was drawn.
            let token = 20 + ((context.len() * 31 + index * 17) % 60) as TokenId;
            let all = Distribution::from_weights((20..80).map(|token| (token, 1.0))).map(Arc::new);
            Guess {
                token,
                parent: index.checked_sub(1),
                drawn_from: all.filter(|_| self.drawn),
                probability: 1.0 / 60.0,
                confidence: 1.0 / 60.0,
                drafter: DrafterKind::Model,
            }
        };
        Ok(Draft { guesses: (0..request.length).map(guess).collect(), ..Draft::default() })
    }
}

#[test]
fn drafts_that_ignore_the_grammar_change_nothing() {
    let ways = [Speculation::fixed(1), Speculation::fixed(5)];
    assert_lossless(&mut Drafters::one(Ignorant { drawn: false }), &ways);
    let mut decoder = decoder(&starter_target());
    let mut judged = 0;
    for seed in 0..20 {
        let request = Request {
            speculation: Speculation::fixed(4),
            ..request(&decoder, &Grammar::Schema(person().to_string()), &drawn(seed))
        };
        let reply = write(&mut decoder, &request, &mut Drafters::one(Ignorant { drawn: true }));
        judged += reply.summary.judged;
        if reply.summary.finish == Finish::Stop {
            let value: Value = serde_json::from_str(&reply.text).unwrap();
            assert_eq!(value["kind"], person()["properties"]["kind"]["const"], "{}", reply.text);
        }
    }
    assert!(judged > 100, "only {judged} drawn tokens were judged");
}

#[test]
fn forced_tokens_are_never_rejected_and_write_what_they_replace() {
    let mut decoder = decoder(&starter_target());
    let grammar = Grammar::Schema(person().to_string());
    for sampling in [Sampling::greedy(), coupled(), drawn(3)] {
        let mut request = request(&decoder, &grammar, &sampling);
        let plain = write(&mut decoder, &request, &mut Drafters::default());
        request.speculation = Speculation::fixed(8);
        let reply = write(&mut decoder, &request, &mut Drafters::one(ForcedDrafter));
        let drafted: Vec<_> = reply.rounds.iter().flat_map(|round| &round.drafted).collect();
        assert!(drafted.iter().all(|drafted| drafted.drafter == DrafterKind::Forced));
        assert!(drafted.iter().all(|drafted| drafted.outcome != Outcome::Rejected));
        assert!(drafted.len() > 15, "only {} tokens were forced in {}", drafted.len(), reply.text);
        assert!(reply.rounds.len() < plain.rounds.len() - 10);
        if !matches!(sampling.mode, Mode::Fastest) || sampling.is_greedy() {
            assert_eq!(reply.tokens, plain.tokens);
        }
    }
}

#[test]
fn a_check_of_a_constrained_reply_follows_its_grammar() {
    let mut decoder = decoder(&starter_target());
    let mut drafters = everybody(&decoder);
    let go_on = || ControlFlow::Continue(());
    // Where calls are not required, all text may be free.
    let free = [CallForm::HERMES, CallForm::LFM].map(|form| calls(form, &person(), false, None));
    for grammar in grammars().into_iter().filter(|grammar| !free.contains(grammar)) {
        for sampling in [Sampling::greedy(), coupled()] {
            let request = request(&decoder, &grammar, &sampling);
            let reply = write(&mut decoder, &request, &mut drafters);
            let found = compare(&mut decoder, &request, &reply.tokens, &mut |_| go_on()).unwrap();
            assert!(found.identical, "{grammar:?}: {found:?}");
            let free = Request { constraint: None, ..request };
            let found = compare(&mut decoder, &free, &reply.tokens, &mut |_| go_on()).unwrap();
            assert!(!found.identical && !found.first_difference.unwrap().near_tie, "{grammar:?}");
        }
        let request = request(&decoder, &grammar, &drawn(3));
        let reply = write(&mut decoder, &request, &mut drafters);
        let found = reread(&mut decoder, &request, &reply.rounds, &mut |_, _| go_on()).unwrap();
        assert!(found.judged > 0, "{grammar:?}: nothing was drafted");
        assert_eq!(found.different, 0, "{grammar:?}: {found:?}");
        let free = Request { constraint: None, ..request };
        let found = reread(&mut decoder, &free, &reply.rounds, &mut |_, _| go_on()).unwrap();
        assert!(found.different > 0, "{grammar:?}");
    }
}

/// Reasoning that a prompt has begun ends anywhere in a draft, and the grammar begins right there.
#[test]
fn the_grammar_begins_where_the_reasoning_ends_within_a_draft() {
    let mut decoder = decoder(&starter_target());
    let tokenizer = Arc::clone(decoder.tokenizer());
    let token = |text: &str| tokenizer.encode(text, Special::Parse).unwrap();
    let thinking = Thinking { open: "\n", close: "." };
    let ([open], [close]) = (&token(thinking.open)[..], &token(thinking.close)[..]) else {
        panic!("both must be single tokens")
    };
    let grammar = Grammar::Schema(person().to_string());
    for sampling in [Sampling::greedy(), coupled()] {
        let mut request = request(&decoder, &grammar, &sampling);
        request.prompt.push(*open);
        request.constraint = Some(Constraint { grammar: grammar.clone(), thinking: Some(thinking) });
        let plain = write(&mut decoder, &request, &mut Drafters::default());
        let (thought, said) = plain.text.split_once('.').expect("it must end its reasoning");
        assert!(!thought.is_empty() && said.starts_with('{'), "{}", plain.text);
        assert!(plain.tokens.contains(close));
        let mut drafters = everybody(&decoder);
        for length in 1..=8 {
            request.speculation = Speculation { drafter: DrafterChoice::Model, ..Speculation::fixed(length) };
            assert_eq!(write(&mut decoder, &request, &mut drafters).tokens, plain.tokens, "{length}");
        }
    }
}

#[test]
fn a_reply_may_begin_with_reasoning_or_with_its_answer() {
    let mut decoder = decoder(&starter_target());
    // A single token allowed at the start of the answer: the model must choose between both.
    let grammar = Grammar::Regex("The end\\.".to_owned());
    for (open, reasons) in [("Once", true), ("\n", false)] {
        let mut request = request(&decoder, &grammar, &Sampling::greedy());
        request.constraint =
            Some(Constraint { grammar: grammar.clone(), thinking: Some(Thinking { open, close: "." }) });
        let reply = write(&mut decoder, &request, &mut Drafters::default());
        assert_eq!(reply.text.starts_with(open), reasons, "{}", reply.text);
        assert!(reply.text.ends_with("The end.") && reply.summary.finish == Finish::Stop, "{}", reply.text);
    }
}

#[test]
fn a_grammar_that_cannot_be_used_ends_the_reply_before_it_begins() {
    let mut decoder = decoder(&starter_target());
    let request = request(&decoder, &Grammar::Schema("{".to_owned()), &Sampling::greedy());
    let error =
        decoder.reply(&request, &mut Drafters::default(), &mut |_| panic!("nothing runs")).unwrap_err();
    assert!(error.to_string().starts_with("the JSON schema cannot be used: "), "{error}");
    let endless =
        Request { ignore_end: true, ..self::request(&decoder, &Grammar::Json, &Sampling::greedy()) };
    assert!(endless.admit(100_000).unwrap_err().to_string().contains("ignore_eos"));
}

/// A schema, and which values belong to it.
#[derive(Debug, Clone)]
enum Shaped {
    Null,
    Truth,
    Whole(i64, i64),
    Text(usize),
    Choice(Vec<Value>),
    List(Box<Self>, usize),
    Record(Vec<(String, Self, bool)>),
    Either(Vec<Self>),
}

impl Shaped {
    fn schema(&self) -> Value {
        match self {
            Self::Null => json!({ "type": "null" }),
            Self::Truth => json!({ "type": "boolean" }),
            Self::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Text(most) => json!({ "type": "string", "maxLength": most }),
            Self::Choice(values) => json!({ "enum": values }),
            Self::List(item, most) => json!({ "type": "array", "items": item.schema(), "maxItems": most }),
            Self::Record(fields) => {
                let properties = fields.iter().map(|(name, field, _)| (name.clone(), field.schema()));
                let required = fields.iter().filter(|field| field.2).map(|field| field.0.clone());
                json!({
                    "type": "object",
                    "properties": properties.collect::<serde_json::Map<_, _>>(),
                    "required": required.collect::<Vec<_>>(),
                    "additionalProperties": false,
                })
            }
            Self::Either(all) => json!({ "anyOf": all.iter().map(Self::schema).collect::<Vec<_>>() }),
        }
    }

    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Truth => value.is_boolean(),
            Self::Whole(least, most) => {
                value.as_f64().is_some_and(|number| {
                    // Also -0, which is a whole number.
                    number.fract() == 0.0 && (*least as f64..=*most as f64).contains(&number)
                })
            }
            Self::Text(most) => value.as_str().is_some_and(|text| text.chars().count() <= *most),
            Self::Choice(values) => values.contains(value),
            Self::List(item, most) => value
                .as_array()
                .is_some_and(|list| list.len() <= *most && list.iter().all(|value| item.fits(value))),
            Self::Record(fields) => value.as_object().is_some_and(|record| {
                let known = |name: &String| fields.iter().any(|field| field.0 == *name);
                let fits = |(name, field, required): &(String, Self, bool)| {
                    record.get(name).map_or(!required, |value| field.fits(value))
                };
                record.keys().all(known) && fields.iter().all(fits)
            }),
            Self::Either(all) => all.iter().any(|one| one.fits(value)),
        }
    }
}

fn shaped() -> impl Strategy<Value = Shaped> {
    let choice = prop_oneof![
        Just(json!("north")),
        Just(json!("north-east")),
        Just(json!("é \"quoted\"\n")),
        Just(json!(3)),
        Just(json!(null)),
        Just(json!([1, "a"])),
        Just(json!({ "a": true })),
    ];
    let leaf = prop_oneof![
        Just(Shaped::Null),
        Just(Shaped::Truth),
        (-50i64..50, 0i64..2000).prop_map(|(least, more)| Shaped::Whole(least, least + more)),
        (0usize..12).prop_map(Shaped::Text),
        prop::collection::vec(choice, 1..5).prop_map(Shaped::Choice),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let field = ("[a-z]{1,8}", inner.clone(), any::<bool>());
        prop_oneof![
            (inner.clone(), 0usize..4).prop_map(|(item, most)| Shaped::List(Box::new(item), most)),
            prop::collection::vec(field, 0..5).prop_map(|mut fields| {
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                fields.dedup_by(|a, b| a.0 == b.0);
                Shaped::Record(fields)
            }),
            prop::collection::vec(inner, 1..4).prop_map(Shaped::Either),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(nightly_or(1000, 40)))]

    /// A model with random weights writes nothing sensible, and yet only values of the schema, with
    /// drafts as without.
    #[test]
    fn every_complete_text_belongs_to_its_schema(shaped in shaped(), seed in any::<u32>()) {
        for text in complete_texts(&Grammar::Schema(shaped.schema().to_string()), seed) {
            let value = serde_json::from_str(&text);
            let fits = value.as_ref().is_ok_and(|value| shaped.fits(value));
            prop_assert!(fits, "{} is not of {}", text, shaped.schema());
        }
    }

    #[test]
    fn every_complete_call_has_a_name_and_arguments_of_its_tool(
        fields in prop::collection::vec(("[a-z]{1,8}", shaped(), any::<bool>()), 0..4),
        form in prop::sample::select(CallForm::ALL.to_vec()),
        with_tokens in any::<bool>(),
        seed in any::<u32>(),
    ) {
        let mut fields = fields;
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.dedup_by(|a, b| a.0 == b.0);
        let record = Shaped::Record(fields);
        let tokenizer = marker_tokenizer();
        let tokens = Some(&*tokenizer).filter(|_| with_tokens);
        for reply in complete_replies(&calls(form, &record.schema(), true, tokens), seed) {
            let text = reply.text;
            let mut parser = CallParser::new(form, None, false).of_tools(&greetings(&record.schema()));
            if with_tokens {
                parser = parser.of_tokens(&tokenizer);
            }
            let mut pieces: Vec<Piece> =
                reply.rounds.iter().flat_map(|round| parser.push_tokens(round.emitted())).collect();
            pieces.extend(parser.finish());
            // Arguments come in pieces, and gpt-oss may reason before a call.
            let mut joined: Vec<Piece> = Vec::new();
            for piece in pieces {
                match (joined.last_mut(), piece) {
                    (Some(Piece::Arguments(json)), Piece::Arguments(more)) => json.push_str(&more),
                    (_, Piece::Text(_)) if form.place == Place::Channel => {}
                    (_, piece) => joined.push(piece),
                }
            }
            let pieces = joined;
            prop_assert!(!pieces.is_empty(), "{}", text);
            for call in pieces.chunks(3) {
                let [Piece::Call(name), Piece::Arguments(json), Piece::End] = call else {
                    return Err(TestCaseError::fail(format!("{text}: {pieces:?}")));
                };
                let value: Value = serde_json::from_str(json).unwrap();
                let fits = match name.as_str() {
                    "greet" => record.fits(&value),
                    "greet_all" => value.as_object().is_some_and(serde_json::Map::is_empty),
                    _ => false,
                };
                prop_assert!(fits, "{}", text);
            }
        }
    }
}

/// Texts of a model with random weights that follow a grammar to its end: drawn with drafts, and
/// reproducible without and with drafts, where both must be the same.
fn complete_texts(grammar: &Grammar, seed: u32) -> Vec<String> {
    complete_replies(grammar, seed).into_iter().map(|reply| reply.text).collect()
}

fn complete_replies(grammar: &Grammar, seed: u32) -> Vec<Reply> {
    static DECODER: Mutex<Option<(Decoder, Drafters)>> = Mutex::new(None);
    let mut shared = DECODER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (decoder, drafters) = shared.get_or_insert_with(random_decoder);
    // Eight equal calls of a short form would end a reply as one that repeats itself.
    let drawn =
        Sampling { temperature: 0.9, top_p: 1.0, seed: Some(seed), stop_loops: false, ..Sampling::default() };
    let reproducible = Sampling { mode: Mode::Reproducible, ..drawn.clone() };
    let mut reply = |sampling: &Sampling, speculation| {
        let request = Request {
            sampling: sampling.clone(),
            speculation,
            max_tokens: Some(400),
            constraint: constrained(grammar),
            ..Request::new(vec![65, 66, 67])
        };
        let reply = write(decoder, &request, drafters);
        assert_eq!(drafters.failure(), None);
        assert!([Finish::Stop, Finish::Length].contains(&reply.summary.finish));
        reply
    };
    let replies = [
        reply(&drawn, Speculation::fixed(4)),
        reply(&reproducible, Speculation::default()),
        reply(&reproducible, Speculation::fixed(5)),
    ];
    assert_eq!(replies[1].text, replies[2].text);
    replies.into_iter().filter(|reply| reply.summary.finish == Finish::Stop).collect()
}

/// A small model with random weights that can end its replies, and drafters, among them itself.
fn random_decoder() -> (Decoder, Drafters) {
    let folder = tempfile::tempdir().unwrap();
    let source = shaped_model(
        folder.path(),
        Format::Q8_0,
        Shape { hidden: 64, heads: 4, feed_forward: 96, context: 1024, ..EVEN },
    );
    let tokenizer = marker_tokenizer();
    let model =
        ModelDrafter::new(loaded(&source), Vocabulary::Same(tokenizer.vocabulary()), tokenizer.ends());
    let drafters = Drafters::new(vec![
        Box::new(model),
        Box::new(ForcedDrafter),
        Box::<NgramDrafter>::default(),
        Box::<RecyclingDrafter>::default(),
    ]);
    (Decoder::new(loaded(&source), tokenizer), drafters)
}

/// A small vocabulary with every marker of calls, gpt-oss's headers and a token that ends replies.
fn marker_tokenizer() -> Arc<Tokenizer> {
    static TOKENIZER: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
        let mut gguf = Gguf::tiny();
        let headers = ["<|start|>", "<|message|>", "<|end|>", "<|constrain|>", "<|return|>", "<|call|>"];
        gguf.extend_vocabulary(MARKS.iter().chain(&headers).map(|&mark| (mark.to_owned(), 3)));
        let folder = tempfile::tempdir().unwrap();
        Arc::new(ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap())
    });
    Arc::clone(&TOKENIZER)
}
