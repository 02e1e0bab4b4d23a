//! Masks of grammars on a small byte-level vocabulary, with hostile sources.

use std::sync::Arc;
use std::time::{Duration, Instant};

use foretoken_model::token::TokenId;
use foretoken_model::tools::{CallForm, MARKS, Place, Tool, ToolCall};
use foretoken_model::{ModelSource, Special, Tokenizer};
use foretoken_testkit::{Gguf, VOCABULARY};
use proptest::prelude::*;

use super::{Calls, Cursor, Grammar, Grammars, Mask};

/// The token that ends a reply.
const END: TokenId = 259;

fn tokenizer() -> Arc<Tokenizer> {
    let folder = tempfile::tempdir().unwrap();
    let source = ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap();
    Arc::new(source.tokenizer().unwrap())
}

fn grammars() -> Arc<Grammars> {
    Grammars::in_this_process(&tokenizer(), VOCABULARY)
}

fn begin(grammar: &Grammar) -> Cursor {
    grammars().begin(grammar).unwrap()
}

fn schema(source: &serde_json::Value) -> Grammar {
    Grammar::Schema(source.to_string())
}

fn refused(grammar: &Grammar) -> String {
    grammars().begin(grammar).err().expect("it must be refused").to_string()
}

/// Mask after the text and `path`, which must be allowed.
fn mask(cursor: &mut Cursor, path: &[TokenId]) -> Arc<Mask> {
    cursor.masks(&[path]).unwrap().remove(0).remove(path.len())
}

fn tokens(mask: &Mask) -> Vec<TokenId> {
    (0..VOCABULARY as TokenId).filter(|&token| mask.allows(token)).collect()
}

#[test]
fn only_tokens_that_continue_a_text_of_the_grammar_are_allowed() {
    let mut cursor = begin(&Grammar::Regex("hel+o|hex".to_owned()));
    let start = mask(&mut cursor, &[]);
    assert_eq!(tokens(&start), [u32::from(b'h'), 256, 257], "h, he and hel");
    let after = mask(&mut cursor, &[256]);
    assert_eq!(tokens(&after), [u32::from(b'l'), u32::from(b'x')]);
    cursor.extend(&[257, u32::from(b'o')]);
    assert_eq!(mask(&mut cursor, &[]).forced(), Some(END));
}

#[test]
fn forced_tokens_are_those_of_the_tokenizer() {
    let mut cursor = begin(&Grammar::Regex("hello hel[pq]".to_owned()));
    let masks = cursor.masks(&[&[]]).unwrap().remove(0);
    let forced: Vec<TokenId> = masks.iter().filter_map(|mask| mask.forced()).collect();
    let encoded = tokenizer().encode("hello hel", Special::Ignore).unwrap();
    assert_eq!(forced, encoded, "not letter by letter");
    let last = masks.last().unwrap();
    assert_eq!(tokens(last), [u32::from(b'p'), u32::from(b'q')]);
}

#[test]
fn forced_tokens_of_a_tokenizer_that_prepends_a_space_are_those_within_a_text() {
    let gguf = Gguf::sentence_piece(&[("\u{2581}", -9.0), ("he", -2.0), ("\u{2581}he", -1.0), ("{\"", -3.0)]);
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap();
    let tokenizer = Arc::new(tokenizer);
    let within = tokenizer.encode_within("he he{\"a").unwrap();
    assert_ne!(within, tokenizer.encode("he he{\"a", Special::Ignore).unwrap());
    let grammars = Grammars::in_this_process(&tokenizer, tokenizer.vocabulary());
    let mut cursor = grammars.begin(&Grammar::Regex("he he\\{\"a[bc]é?".to_owned())).unwrap();
    let masks = cursor.masks(&[&[]]).unwrap().remove(0);
    assert_eq!(masks.iter().filter_map(|mask| mask.forced()).collect::<Vec<_>>(), within);
    // A character without a piece is allowed byte by byte.
    let byte = |byte: u8| 3 + TokenId::from(byte);
    let path = [&within[..], &[byte(b'b')]].concat();
    assert!(mask(&mut cursor, &path).allows(byte("é".as_bytes()[0])));
    assert!(mask(&mut cursor, &path).allows(2), "the end of the text");
}

#[test]
fn json_has_one_form_and_properties_keep_the_order_of_the_schema() {
    let source = serde_json::json!({
        "type": "object",
        "properties": { "z": { "const": 1 }, "a": { "const": [2, 3] } },
        "required": ["z", "a"],
        "additionalProperties": false,
    });
    let mut cursor = begin(&schema(&source));
    let mut text = Vec::new();
    while let Some(token) = mask(&mut cursor, &text).forced().filter(|&token| token != END) {
        text.push(token);
    }
    assert_eq!(tokenizer().decode(&text), r#"{"z": 1, "a": [2, 3]}"#);
}

#[test]
fn any_json_object_is_allowed_and_nothing_else() {
    let mut cursor = begin(&Grammar::Json);
    let encode = |text: &str| tokenizer().encode(text, Special::Ignore).unwrap();
    let text = encode(r#"{"a": [1, {"b": null}], "c": "hello"}"#);
    for (at, &token) in text.iter().enumerate() {
        assert!(mask(&mut cursor, &text[..at]).allows(token), "{at}");
    }
    assert_eq!(tokens(&mask(&mut cursor, &text)), [END]);
    assert!(!mask(&mut cursor, &[]).allows(u32::from(b'[')));
}

#[test]
fn a_path_leaves_no_trace() {
    let grammar = Grammar::Regex("(he|hel|l)*o".to_owned());
    let mut cursor = begin(&grammar);
    cursor.extend(&[256]);
    let before = mask(&mut cursor, &[]);
    let path = [u32::from(b'l'), u32::from(b'x'), 256];
    assert_eq!(cursor.masks(&[&path]).unwrap()[0].len(), 2, "the second token is not allowed");
    assert_eq!(mask(&mut cursor, &[]), before);
    mask(&mut cursor, &[257, u32::from(b'o')]);
    assert_eq!(mask(&mut cursor, &[]), before);
}

#[test]
fn control_tokens_are_never_text() {
    let mut cursor = begin(&Grammar::Regex("(.|\n)*".to_owned()));
    let allowed = mask(&mut cursor, &[]);
    assert!(!allowed.allows(258) && allowed.allows(END) && allowed.allows(260));
}

#[test]
fn a_grammar_that_cannot_be_compiled_is_refused_with_a_sentence() {
    for (grammar, expected) in [
        (Grammar::Schema("{".to_owned()), "EOF while parsing"),
        (Grammar::Schema("3".to_owned()), "expected an object or true"),
        (Grammar::Schema("false".to_owned()), "it accepts nothing"),
        (Grammar::Schema(r#"{"type": "nothing"}"#.to_owned()), "nothing"),
        (Grammar::Schema(r#"{"$ref": "https://example.com/a"}"#.to_owned()), ""),
        (Grammar::Regex("(".to_owned()), ""),
        (Grammar::Regex("(?=a)a".to_owned()), ""),
        (Grammar::Lark("start: nowhere".to_owned()), "nowhere"),
        (Grammar::Lark(String::new()), ""),
    ] {
        let sentence = refused(&grammar);
        let kind = grammar.kind();
        assert!(sentence.starts_with(&format!("the {kind} cannot be used: ")), "{sentence}");
        assert!(sentence.contains(expected) && sentence.ends_with('.'), "{sentence}");
        assert!(!sentence.contains('\n') && sentence.chars().count() < 480, "{sentence}");
    }
}

#[test]
fn contradictory_grammars_are_refused() {
    let both = serde_json::json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] });
    let between = serde_json::json!({ "type": "integer", "minimum": 5, "maximum": 4 });
    for grammar in [schema(&both), schema(&between), schema(&serde_json::json!({ "enum": [] }))] {
        refused(&grammar);
    }
}

/// Hostile sources that end early or late, but end.
#[test]
fn large_and_deep_sources_are_refused_or_take_bounded_time() {
    let many: Vec<String> = (0..1_000_000).map(|number| format!("\"value {number}\"")).collect();
    let optional: Vec<String> = (0..1000).map(|number| format!("\"p{number}\": {{}}")).collect();
    let sources = [
        format!("{{\"description\": \"{}\"}}", "a".repeat(10 << 20)),
        format!("{{\"enum\": [{}]}}", many.join(", ")),
        "{\"not\": ".repeat(10_000) + "{}" + &"}".repeat(10_000),
        "{\"type\": \"array\", \"items\": ".repeat(10_000) + "{}" + &"}".repeat(10_000),
        format!("{{\"type\": \"object\", \"properties\": {{{}}}}}", optional.join(", ")),
    ];
    for source in sources {
        let start = Instant::now();
        refused(&Grammar::Schema(source));
        assert!(start.elapsed() < Duration::from_secs(5));
    }
    refused(&Grammar::Regex("a".repeat(1 << 14)));
    refused(&Grammar::Lark("start: A\n".repeat(1 << 15)));
}

#[test]
fn a_recursive_schema_goes_on_as_long_as_the_text_and_one_without_an_end_is_refused() {
    let tree = |required: &[&str]| {
        schema(&serde_json::json!({ "$ref": "#/$defs/tree", "$defs": { "tree": {
            "type": "object", "properties": { "next": { "$ref": "#/$defs/tree" } }, "required": required,
            "additionalProperties": false,
        } } }))
    };
    let mut cursor = begin(&tree(&[]));
    let text = tokenizer().encode(&"{\"next\": ".repeat(50), Special::Ignore).unwrap();
    cursor.extend(&text);
    assert_eq!(tokens(&mask(&mut cursor, &[])), [u32::from(b'{')]);
    refused(&tree(&["next"]));
}

#[test]
fn two_texts_of_one_model_do_not_mix() {
    let grammars = grammars();
    let mut cursors =
        ["hel+o", "x*"].map(|source| grammars.begin(&Grammar::Regex(source.to_owned())).unwrap());
    // Masks that are known would not be asked for.
    let l = u32::from(b'l');
    for path in [vec![257, l], vec![257, l, l]] {
        let [first, second] = &mut cursors;
        assert!(mask(first, &path).allows(u32::from(b'o')));
        let path = vec![u32::from(b'x'); path.len()];
        assert!(mask(second, &path).allows(u32::from(b'x')) && !mask(second, &path).allows(257));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// A mask depends on the tokens before it alone: after any walk it is that of a new grammar,
    /// and a run of forced tokens is the chain of masks with one token.
    #[test]
    fn masks_after_any_walk_are_those_of_a_fresh_start(
        choices in prop::collection::vec((0usize..1000, 0usize..6), 1..40),
    ) {
        let grammar = schema(&serde_json::json!({
            "type": "object",
            "properties": {
                "hello": { "type": "string" },
                "count": { "type": "integer" },
                "kind": { "enum": ["hell", "help", null] },
                "list": { "type": "array", "items": { "type": "boolean" } },
            },
            "required": ["hello", "kind"],
        }));
        let grammars = grammars();
        let mut cursor = grammars.begin(&grammar).unwrap();
        let (mut text, mut path): (Vec<TokenId>, Vec<TokenId>) = (Vec::new(), Vec::new());
        let mut walked = Vec::new();
        for (choice, cut) in choices {
            let masks = cursor.masks(&[&path]).unwrap().remove(0);
            let mut run = [&text[..], &path].concat();
            for mask in &masks[path.len()..] {
                walked.push((run.clone(), Arc::clone(mask)));
                run.extend(mask.forced());
            }
            let allowed = tokens(&masks[path.len()]);
            let token = allowed[choice % allowed.len()];
            if cut == 4 {
                cursor.extend(&path);
                text.append(&mut path);
            } else if token == END || cut == 5 {
                path.truncate(path.len().saturating_sub(cut));
            } else {
                path.push(token);
            }
        }
        for (path, expected) in walked {
            let mut fresh = grammars.begin(&grammar).unwrap();
            fresh.extend(&path);
            prop_assert_eq!(&fresh.masks(&[&[]]).unwrap()[0][0], &expected);
        }
    }
}

/// Two tools; the first has a schema, the second takes anything.
fn tools() -> Vec<Tool> {
    let parameters = serde_json::json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
        "required": ["city"],
        "additionalProperties": false
    });
    let tool = |name: &str, parameters| Tool { name: name.to_owned(), description: None, parameters };
    vec![tool("weather", parameters), tool("weather_map", serde_json::json!({}))]
}

/// Returns whether a grammar allows the whole of `text` as a reply.
fn accepts(grammar: &Grammar, text: &str) -> bool {
    let mut cursor = begin(grammar);
    for token in tokenizer().encode(text, Special::Ignore).unwrap() {
        if !mask(&mut cursor, &[]).allows(token) {
            return false;
        }
        cursor.extend(&[token]);
    }
    mask(&mut cursor, &[]).allows(END)
}

#[test]
fn replies_call_tools_with_valid_names_and_arguments() {
    let tools = tools();
    let calls = |required, parallel| Calls {
        form: CallForm::HERMES,
        tools: &tools,
        required,
        parallel,
        tokenizer: None,
    };
    let paris = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>";
    let map = "<tool_call>\n{\"name\": \"weather_map\", \"arguments\": {\"a\": [1, {}]}}\n</tool_call>";
    let auto = calls(false, true).grammar(None).unwrap();
    for allowed in [
        "",
        "Hello.",
        "a < b <tool",
        paris,
        map,
        &format!("Let me see.\n{paris}\n{map}\n{paris}"),
        "{\"name\": 1}",
    ] {
        assert!(accepts(&auto, allowed), "{allowed}");
    }
    for refused in [
        "<tool_call>",
        "<tool_call>\n{\"name\": \"weathe\", \"arguments\": {}}\n</tool_call>",
        &paris.replace("Paris\"", "Paris\", \"hours\": 1"),
        &paris.replace("\"Paris\"", "7"),
        &format!("{paris} and so on"),
        &format!("{paris}{map}"),
    ] {
        assert!(!accepts(&auto, refused), "{refused}");
    }
    let required = calls(true, false).grammar(None).unwrap();
    assert!(accepts(&required, map) && !accepts(&required, "") && !accepts(&required, &format!(" {map}")));
    assert!(!accepts(&required, &format!("{map}\n{paris}")), "one call alone");
    let or = |grammar: serde_json::Value| calls(false, true).grammar(Some(&schema(&grammar)));
    let json = or(serde_json::json!({ "type": "boolean" })).unwrap();
    assert!(accepts(&json, "true") && accepts(&json, map) && !accepts(&json, "yes"));
    assert!(or(serde_json::json!(false)).unwrap_err().to_string().contains("it accepts nothing"));
    let coder = Calls { form: CallForm::QWEN_CODER, ..calls(false, true) }.grammar(None).unwrap();
    let tag = |name: &str, value: &str| format!("<parameter={name}>\n{value}\n</parameter>\n");
    let call = |name: &str, arguments: &str| {
        format!("<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>")
    };
    let (city, days) = (tag("city", "Pa\n</par>\"is"), tag("days", "7"));
    for allowed in [
        "Hello.".to_owned(),
        call("weather", &city),
        format!("So:\n{}\n{}", call("weather", &[&city[..], &days].concat()), call("weather", &city)),
        call("weather_map", ""),
        call("weather_map", &tag("a", "[1, {}]")),
        call("weather", &tag("city", "")),
    ] {
        assert!(accepts(&coder, &allowed), "{allowed}");
    }
    for refused in [
        call("weather", ""),
        call("weather", &days),
        call("weather", &[&days[..], &city].concat()),
        call("weather", &[&city[..], &tag("days", "many")].concat()),
        call("weather", &[&city[..], &tag("hours", "7")].concat()),
        call("wether", &city),
        format!("{} and so on", call("weather", &city)),
    ] {
        assert!(!accepts(&coder, &refused), "{refused}");
    }
    let llama = Calls { form: CallForm::LLAMA, ..calls(false, true) }.grammar(None).unwrap();
    let call = "{\"name\": \"weather\", \"parameters\": {\"city\": \"Paris\"}}";
    assert!(accepts(&llama, call) && accepts(&llama, "{\"a\"") && accepts(&llama, &format!("So: {call}?")));
    assert!(!accepts(&llama, &format!("{call}?")) && !accepts(&llama, "{\"name\": \"x\""));
}

/// A tokenizer with a token for each byte, for each marker of calls and for gpt-oss's headers.
fn marker_tokenizer() -> Arc<Tokenizer> {
    let mut gguf = Gguf::tiny();
    gguf.tensors.clear();
    let headers = ["<|start|>", "<|message|>", "<|end|>", "<|constrain|>", "<|return|>", "<|call|>"];
    gguf.extend_vocabulary(MARKS.iter().chain(&headers).map(|&mark| (mark.to_owned(), 3)));
    let folder = tempfile::tempdir().unwrap();
    Arc::new(ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap())
}

/// Returns whether a grammar allows these tokens as a reply.
fn accepts_tokens(tokenizer: &Arc<Tokenizer>, grammar: &Grammar, text: &[TokenId]) -> bool {
    let grammars = Grammars::in_this_process(tokenizer, tokenizer.vocabulary());
    let mut cursor = grammars.begin(grammar).unwrap();
    let allowed = text.iter().all(|&token| {
        let allows = mask(&mut cursor, &[]).allows(token);
        cursor.extend(&[token]);
        allows
    });
    allowed && mask(&mut cursor, &[]).allows(END)
}

fn call(name: &str, arguments: &serde_json::Value) -> ToolCall {
    let arguments = arguments.as_object().cloned().unwrap();
    ToolCall { id: "abc123XYZ".to_owned(), name: name.to_owned(), arguments }
}

#[test]
fn every_form_allows_its_valid_calls_and_no_others_with_markers_as_tokens_and_as_letters() {
    let [with_marks, without] = [marker_tokenizer(), tokenizer()];
    let tools = tools();
    let good = call("weather", &serde_json::json!({ "city": "Pa<r'>i\"s", "days": 7 }));
    let short = call("weather", &serde_json::json!({ "city": "" }));
    let any = call("weather_map", &serde_json::json!({ "a": [1, { "c": 2.5 }] }));
    let bad = [
        call("weather", &serde_json::json!({ "days": 7 })),
        call("weather", &serde_json::json!({ "city": "Paris", "hours": 7 })),
        call("weather", &serde_json::json!({ "city": "Paris", "days": "many" })),
        call("wether", &serde_json::json!({ "city": "Paris" })),
    ];
    for form in CallForm::ALL.into_iter().filter(|form| form.place != Place::Channel) {
        for (known, tokenizer) in [(None, &without), (Some(&*with_marks), &with_marks)] {
            let calls = |required, parallel| {
                Calls { form, tools: &tools, required, parallel, tokenizer: known }.grammar(None).unwrap()
            };
            let accepts = |grammar: &Grammar, text: &str| {
                accepts_tokens(tokenizer, grammar, &tokenizer.encode(text, Special::Parse).unwrap())
            };
            let written = |calls: &[ToolCall]| form.all_written(calls);
            let auto = calls(false, true);
            for allowed in [&good, &short, &any] {
                let text = written(std::slice::from_ref(allowed));
                assert!(accepts(&auto, &text), "{form:?}: {text}");
            }
            for refused in &bad {
                let text = written(std::slice::from_ref(refused));
                // As an answer, JSON that is no call of a tool is refused from its name on.
                assert!(!accepts(&auto, &text), "{form:?}: {text}");
            }
            assert!(accepts(&auto, "") && accepts(&auto, "Hello."), "{form:?}");
            let several = written(&[good.clone(), any.clone(), short.clone()]);
            assert_eq!(accepts(&auto, &several), form.between.is_some(), "{form:?}: {several}");
            let one = written(std::slice::from_ref(&good));
            assert!(!accepts(&auto, &format!("{one} and so on")), "{form:?}");
            let required = calls(true, false);
            assert!(accepts(&required, &one) && !accepts(&required, "Hello."), "{form:?}");
            assert!(form.between.is_none() || !accepts(&required, &several), "{form:?}");
            if form.place == Place::Anywhere {
                assert!(accepts(&auto, &format!("Let me see.\n{one}")), "{form:?}");
            }
        }
    }
}

#[test]
fn markers_that_are_tokens_begin_calls_only_as_tokens() {
    let tokenizer = marker_tokenizer();
    let tools = tools();
    for form in CallForm::ALL.into_iter().filter(|form| form.has_mark()) {
        let calls =
            Calls { form, tools: &tools, required: false, parallel: true, tokenizer: Some(&tokenizer) };
        let grammar = calls.grammar(None).unwrap();
        let letters: Vec<TokenId> = form.trigger().bytes().map(TokenId::from).collect();
        assert!(accepts_tokens(&tokenizer, &grammar, &letters), "{form:?}");
        let token = tokenizer.encode(&form.trigger(), Special::Parse).unwrap();
        assert!(!accepts_tokens(&tokenizer, &grammar, &token), "{form:?}");
    }
    // Nothing else has them as text.
    let any = Grammar::Regex("(?s:.*)".to_owned());
    assert!(!accepts_tokens(&tokenizer, &any, &tokenizer.encode("[TOOL_CALLS]", Special::Parse).unwrap()));
    let letters: Vec<TokenId> = "[TOOL_CALLS]".bytes().map(TokenId::from).collect();
    assert!(accepts_tokens(&tokenizer, &any, &letters));
    let constant = schema(&serde_json::json!({ "const": "<tool_call>" }));
    let mut cursor = Grammars::in_this_process(&tokenizer, tokenizer.vocabulary()).begin(&constant).unwrap();
    let mut text = Vec::new();
    while let Some(token) = mask(&mut cursor, &text).forced().filter(|&token| token != END) {
        text.push(token);
    }
    assert_eq!(tokenizer.decode(&text), "\"<tool_call>\"");
    assert!(!text.iter().any(|&token| tokenizer.is_special(token)), "a constant with letters of a marker");
}

#[test]
fn gpt_oss_reasons_and_then_answers_or_calls_one_tool() {
    let tokenizer = marker_tokenizer();
    let tools = tools();
    let form = CallForm::HARMONY;
    let calls =
        |required| Calls { form, tools: &tools, required, parallel: true, tokenizer: Some(&tokenizer) };
    let auto = calls(false).grammar(None).unwrap();
    let accepts = |grammar: &Grammar, text: &str| {
        accepts_tokens(&tokenizer, grammar, &tokenizer.encode(text, Special::Parse).unwrap())
    };
    let thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant";
    let answer = "<|channel|>final<|message|>So.";
    let call =
        |header: &str| format!("<|channel|>commentary to=functions.{header}<|message|>{{\"city\": \"a\"}}");
    let plain = call("weather");
    for allowed in [
        answer,
        &format!("{thought}{thought}{answer}"),
        &plain,
        &format!("{thought}{plain}"),
        &call("weather <|constrain|>json"),
        &call("weather json"),
    ] {
        assert!(accepts(&auto, allowed), "{allowed}");
    }
    for refused in [
        "So.",
        thought,
        &call("wether"),
        &plain.replace("city", "town"),
        &format!("{plain}<|end|><|start|>assistant{plain}"),
        &format!("{plain} "),
    ] {
        assert!(!accepts(&auto, refused), "{refused}");
    }
    let required = calls(true).grammar(None).unwrap();
    assert!(accepts(&required, &format!("{thought}{plain}")) && !accepts(&required, answer));
    let schema = calls(false).grammar(Some(&schema(&serde_json::json!({ "type": "boolean" })))).unwrap();
    assert!(accepts(&schema, "<|channel|>final<|message|>true") && !accepts(&schema, answer));
}

#[test]
fn gemmas_notation_keeps_to_the_schema() {
    let tokenizer = marker_tokenizer();
    let parameters = serde_json::json!({
        "type": "object",
        "properties": {
            "b": { "type": "string", "minLength": 1, "maxLength": 3 },
            "A": { "type": ["integer", "null"], "minimum": 2 },
            "list": { "type": "array", "items": { "enum": ["x", 1] }, "minItems": 1, "maxItems": 2 },
            "one": { "type": "array", "items": { "type": "boolean" }, "maxItems": 1 },
            "pair": { "type": "object", "maxProperties": 1 },
            "tree": { "$ref": "#/$defs/tree" },
        },
        "required": ["A"],
        "$defs": { "tree": {
            "type": "object", "properties": { "next": { "$ref": "#/$defs/tree" } }, "additionalProperties": false,
        } },
    });
    let tools = [Tool { name: "f".to_owned(), description: None, parameters }];
    let compiled = |tools: &[Tool]| {
        let (form, tokenizer) = (CallForm::GEMMA, Some(&*tokenizer));
        Calls { form, tools, required: true, parallel: false, tokenizer }.grammar(None)
    };
    let grammar = compiled(&tools).unwrap();
    let accepts = |arguments: &str| {
        let text = format!("<|tool_call>call:f{{{arguments}}}<tool_call|>");
        accepts_tokens(&tokenizer, &grammar, &tokenizer.encode(&text, Special::Parse).unwrap())
    };
    for allowed in [
        "A:2",
        "A:null,b:<|\"|>a\"b<|\"|>",
        "A:17,list:[<|\"|>x<|\"|>,1]",
        "A:3,tree:{next:{next:{}}}",
        "A:3,one:[true],pair:{a:1}",
        "A:3,one:[],pair:{}",
        "A:3,b:<|\"|>é<|\"|>,list:[1],tree:{}",
    ] {
        assert!(accepts(allowed), "{allowed}");
    }
    for refused in [
        "",
        "A:1",
        "b:<|\"|>a<|\"|>,A:2",
        "A:2,b:<|\"|><|\"|>",
        "A:2,b:<|\"|>abcd<|\"|>",
        "A:2,list:[]",
        "A:2,one:[true,true]",
        "A:2,pair:{a:1,b:2}",
        "A:2,list:[1,1,1]",
        "A:2,list:[2]",
        "A:2,tree:{other:1}",
        "A:2,c:1",
    ] {
        assert!(!accepts(refused), "{refused}");
    }
    for unsupported in [serde_json::json!({ "not": {} }), serde_json::json!({ "pattern": "a" })] {
        let parameters = serde_json::json!({ "type": "object", "properties": { "a": unsupported } });
        let tools = [Tool { name: "f".to_owned(), description: None, parameters }];
        let error = compiled(&tools).unwrap_err().to_string();
        assert!(error.contains("is not supported in this model's calls"), "{error}");
    }
}

#[test]
fn llama_cpps_grammars_allow_their_texts() {
    let list =
        "root ::= item (\", \" item)*\nitem ::= word | \"(\" root? \")\"\n\nword ::=\n  [a-c]+ # letters\n";
    let accepts = |source: &str, text: &str| accepts(&Grammar::of_rules(source.to_owned()), text);
    for allowed in ["a", "abc, ()", "(a, (b), ())"] {
        assert!(accepts(list, allowed), "{allowed}");
    }
    for refused in ["", "d", "a,b", "(a", "a, "] {
        assert!(!accepts(list, refused), "{refused}");
    }
    assert!(accepts("root ::= \"a\" (\"b\" root){0} | \"(\" root \")\"", "(a)"));
    let escapes = "root ::= \"\\x41\\u00e9\\n\\\"/\" [^\\]a-c\\-]{2} .?";
    assert!(accepts(escapes, "A\u{e9}\n\"/xy") && accepts(escapes, "A\u{e9}\n\"/dé\n"));
    assert!(!accepts(escapes, "A\u{e9}\n\"/x-") && !accepts(escapes, "A\u{e9}\n\"/x"));
    let error = refused(&Grammar::Gbnf("root ::= <think>".to_owned()));
    assert_eq!(error, "the grammar cannot be used: line 1: '<' is not supported here.");
    assert!(matches!(Grammar::of_rules("start: \"a ::= b\"".to_owned()), Grammar::Lark(_)));
}
