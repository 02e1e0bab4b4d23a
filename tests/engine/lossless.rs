//! Losslessness on real models: the text with drafts equals the text without, token by token, for
//! every drafter. The cache after every round equals that of a fresh start.

use std::fs::File;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::quantized::gguf_file::{Content, Value, write as write_gguf};
use foretoken_engine::accept::Guess;
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::draft::{
    Draft, DraftRequest, Drafter, Drafters, Intersection, ModelDrafter, NgramDrafter, RecyclingDrafter,
    Vocabulary,
};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::logprobs::Logprobs;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::{DrafterChoice, Speculation, Staged, Threshold, Tree};
use foretoken_engine::trace::{Finish, LengthReason, Outcome};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, Pass, Want, catch_up};
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_model::{ModelConfig, ModelSource, Special, Tokenizer};
use foretoken_tests::{
    assert_same, chat_prompt, decoder, loaded, model_drafter, nightly_or, on_gpu, starter_draft,
    starter_target, tensors_on,
};

const QUESTIONS: [&str; 4] = [
    "Tell me a story about a fox who finds a lantern.",
    "What is speculative decoding?",
    "Count from one to twelve.",
    "Repeat after me: the cat and the dog and the cat and the dog and the cat.",
];

fn coupled() -> Sampling {
    Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() }
}

/// DRY and a repetition penalty over the last tokens, both strong enough to change the text.
fn penalised(sampling: Sampling) -> Sampling {
    Sampling {
        repetition_penalty: 1.2,
        repeat_last_n: 24,
        dry_multiplier: 1.0,
        dry_allowed_length: 2,
        automatic_penalties: false,
        ..sampling
    }
}

/// Penalties on the reply's own tokens and biases, strong enough to change the text.
fn biased(sampling: Sampling, tokenizer: &Tokenizer) -> Sampling {
    let first = |word: &str| tokenizer.encode(word, Special::Ignore).unwrap()[0];
    Sampling {
        presence_penalty: 0.8,
        frequency_penalty: 0.4,
        logit_bias: vec![(first(" the"), -100.0), (first(" fox"), 2.5)],
        automatic_penalties: false,
        ..sampling
    }
}

fn request(decoder: &Decoder, question: &str, sampling: &Sampling) -> Request {
    Request {
        sampling: sampling.clone(),
        max_tokens: Some(60),
        ..Request::new(chat_prompt(&starter_target(), decoder.tokenizer(), question))
    }
}

fn write(decoder: &mut Decoder, request: &Request, drafters: &mut Drafters) -> Reply {
    decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn plain(decoder: &mut Decoder, request: &Request) -> Reply {
    write(decoder, request, &mut Drafters::default())
}

/// The draft model and all drafters without a model.
fn everybody(decoder: &Decoder) -> Drafters {
    Drafters::new(vec![
        Box::new(model_drafter(decoder.tokenizer())),
        Box::<NgramDrafter>::default(),
        Box::<RecyclingDrafter>::default(),
    ])
}

/// Compares every question, greedy and coupled, drafted in all of `ways`, with plain decoding.
#[track_caller]
fn assert_lossless(drafters: &mut Drafters, ways: &[Speculation]) -> usize {
    let mut decoder = decoder(&starter_target());
    let mut accepted = 0;
    for sampling in [Sampling::greedy(), coupled()] {
        accepted += assert_lossless_as(&mut decoder, drafters, ways, &sampling);
    }
    accepted
}

/// Compares every question, drafted in all of `ways`, with plain decoding.
#[track_caller]
fn assert_lossless_as(
    decoder: &mut Decoder,
    drafters: &mut Drafters,
    ways: &[Speculation],
    sampling: &Sampling,
) -> usize {
    let mut accepted = 0;
    for question in QUESTIONS {
        let mut request = request(decoder, question, sampling);
        let plain = plain(decoder, &request);
        for way in ways {
            request.speculation = way.clone();
            let drafted = write(decoder, &request, drafters);
            assert_eq!(drafted.tokens, plain.tokens, "{question} drafted by {way:?}");
            assert_eq!((&drafted.text, drafted.summary.finish), (&plain.text, plain.summary.finish));
            accepted += drafted.summary.accepted as usize;
        }
    }
    accepted
}

fn lengths(lengths: impl IntoIterator<Item = usize>) -> Vec<Speculation> {
    lengths.into_iter().map(Speculation::fixed).collect()
}

#[test]
fn drafts_change_nothing_with_repetition_penalties() {
    assert_lossless_with(|sampling, _| penalised(sampling));
}

#[test]
fn drafts_change_nothing_with_penalties_on_the_reply_and_biases() {
    assert_lossless_with(biased);
}

#[test]
fn log_probabilities_are_the_targets_own_whatever_drafts_and_settings() {
    let mut decoder = decoder(&starter_target());
    let mut drafters = everybody(&decoder);
    let logprobs = |reply: &Reply| -> Vec<Logprobs> {
        reply.rounds.iter().flat_map(|round| round.logprobs.clone()).collect()
    };
    for sampling in [Sampling::greedy(), coupled(), biased(coupled(), &decoder.tokenizer().clone())] {
        let mut request = Request { logprobs: Some(3), ..request(&decoder, QUESTIONS[0], &sampling) };
        let found = plain(&mut decoder, &request);
        let expected = logprobs(&found);
        assert_eq!(expected.iter().map(|one| one.token).collect::<Vec<_>>(), found.tokens);
        request.speculation = Speculation { tree: Tree::Width(2), ..Speculation::fixed(5) };
        let drafted = write(&mut decoder, &request, &mut drafters);
        assert!(drafted.summary.accepted > 5, "nothing was tested");
        assert_eq!(logprobs(&drafted), expected);
        // A pass over the whole text gives the same numbers.
        let text = [&request.prompt, &found.tokens[..]].concat();
        decoder.target_mut().truncate(0);
        let tree = TokenTree::chain(text.iter().copied());
        let pass = decoder.target_mut().run(&tree, &Want::all_rows()).unwrap();
        for (at, one) in expected.iter().enumerate() {
            let row = pass.logits().row(request.prompt.len() - 1 + at);
            assert_eq!(&Logprobs::of(row, one.token, 3).unwrap(), one, "token {at}");
        }
        drop(pass);
        decoder.target_mut().truncate(0);
        request.logprobs = None;
        assert_eq!(plain(&mut decoder, &request).tokens, found.tokens);
    }
}

#[test]
fn log_probabilities_beyond_the_limit_and_biases_of_unknown_tokens_are_refused() {
    let mut decoder = decoder(&starter_target());
    let vocabulary = decoder.target().config().vocabulary as u32;
    let asked = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let biased = |logit_bias: Vec<(u32, f32)>| Sampling { logit_bias, ..Sampling::greedy() };
    let many = (0..1025).map(|token| (token % vocabulary, 1.0)).collect();
    for (request, name) in [
        (Request { logprobs: Some(21), ..asked.clone() }, "logprobs"),
        (Request { sampling: biased(vec![(vocabulary, 1.0)]), ..asked.clone() }, "logit bias"),
        (Request { sampling: biased(vec![(0, 100.5)]), ..asked.clone() }, "logit bias"),
        (Request { sampling: biased(vec![(0, f32::NAN)]), ..asked.clone() }, "logit bias"),
        (Request { sampling: biased(many), ..asked.clone() }, "logit bias"),
        (
            Request { sampling: Sampling { presence_penalty: 2.5, ..Sampling::greedy() }, ..asked.clone() },
            "presence penalty",
        ),
        (
            Request { sampling: Sampling { frequency_penalty: -3.0, ..Sampling::greedy() }, ..asked.clone() },
            "frequency penalty",
        ),
    ] {
        let refused = decoder.admit(&request);
        assert!(matches!(&refused, Err(Error::Setting { name: found, .. }) if *found == name), "{refused:?}");
        let mut on_progress = |_: Progress<'_>| ControlFlow::Continue(());
        assert!(decoder.reply(&request, &mut Drafters::default(), &mut on_progress).is_err());
    }
}

/// Compares replies of all drafters, with the penalties that `penalised` adds, with plain decoding.
#[track_caller]
fn assert_lossless_with(penalised: impl Fn(Sampling, &Tokenizer) -> Sampling) {
    let tree = |(width, length)| Speculation { tree: Tree::Width(width), ..Speculation::fixed(length) };
    let staged = Speculation { staged: Staged::On, ..Speculation::fixed(4) };
    let ngram = Speculation { drafter: DrafterChoice::Ngram, ..Speculation::fixed(6) };
    let recycled =
        Speculation { drafter: DrafterChoice::Recycling, tree: Tree::Width(3), ..Speculation::fixed(4) };
    let ways =
        [Speculation::fixed(5), tree((3, 3)), tree((2, 6)), staged, ngram, recycled, Speculation::default()];
    let mut decoder = decoder(&starter_target());
    let mut drafters = everybody(&decoder);
    for sampling in [Sampling::greedy(), coupled()] {
        let penalised = penalised(sampling.clone(), decoder.tokenizer());
        let accepted = assert_lossless_as(&mut decoder, &mut drafters, &ways, &penalised);
        assert!(accepted > 100, "only {accepted} drafted tokens were accepted: nothing was tested");
        let text = |decoder: &mut Decoder, sampling: &Sampling| {
            let request = request(decoder, QUESTIONS[3], sampling);
            plain(decoder, &request).text
        };
        assert_ne!(text(&mut decoder, &sampling), text(&mut decoder, &penalised), "they penalise nothing");
    }
}

#[test]
fn the_draft_model_changes_nothing_at_any_length() {
    let mut drafters = Drafters::one(model_drafter(decoder(&starter_target()).tokenizer()));
    let accepted = assert_lossless(&mut drafters, &lengths((1..=8).chain([16])));
    assert!(accepted > 500, "only {accepted} drafted tokens were accepted: nothing was tested");
}

#[test]
fn the_ngram_drafter_changes_nothing_at_any_length() {
    let accepted = assert_lossless(&mut Drafters::one(NgramDrafter::default()), &lengths(1..=8));
    assert!(accepted > 50, "only {accepted} drafted tokens were accepted: nothing was tested");
}

#[test]
fn recycled_tokens_change_nothing_as_chains_and_as_trees() {
    let tree =
        Speculation { drafter: DrafterChoice::Recycling, tree: Tree::Width(3), ..Speculation::fixed(5) };
    let mut ways = lengths([1, 4]);
    ways.push(tree);
    let accepted = assert_lossless(&mut Drafters::one(RecyclingDrafter::default()), &ways);
    assert!(accepted > 100, "only {accepted} drafted tokens were accepted: nothing was tested");
}

#[test]
fn trees_change_nothing_of_any_width() {
    let tree = |(width, length)| Speculation { tree: Tree::Width(width), ..Speculation::fixed(length) };
    let ways: Vec<_> = [(2, 1), (2, 4), (3, 3), (4, 2), (4, 8)].map(tree).into();
    let mut drafters = Drafters::one(model_drafter(decoder(&starter_target()).tokenizer()));
    let accepted = assert_lossless(&mut drafters, &ways);
    assert!(accepted > 500, "only {accepted} drafted tokens were accepted: nothing was tested");
}

#[test]
fn staged_drafts_change_nothing_whoever_drafts_for_the_draft() {
    let staged = |length| Speculation { staged: Staged::On, ..Speculation::fixed(length) };
    let ways = [1, 3, 8].map(staged);
    let tokenizer = decoder(&starter_target());
    let tokenizer = tokenizer.tokenizer();
    let accepted = assert_lossless(&mut Drafters::one(model_drafter(tokenizer)), &ways);
    assert!(accepted > 200, "only {accepted} drafted tokens were accepted: nothing was tested");
    let staged_by_model = model_drafter(tokenizer).drafted_by(model_drafter(tokenizer));
    assert_lossless(&mut Drafters::one(staged_by_model), &ways[..2]);
}

/// The starter draft with other texts for every seventh of its words, which it can neither draft
/// nor read except letter by letter.
fn with_another_tokenizer(target: &Tokenizer) -> ModelDrafter {
    let source = starter_draft();
    let mut values = Content::read(&mut File::open(source.path()).unwrap()).unwrap().metadata;
    let Some(Value::Array(tokens)) = values.get_mut("tokenizer.ggml.tokens") else { panic!() };
    let words = tokens.iter_mut().enumerate().skip(300).step_by(7);
    words.for_each(|(index, token)| *token = Value::String(format!("qx{index}")));
    values.insert("tokenizer.ggml.merges".into(), Value::Array(Vec::new()));
    let values: Vec<_> = values.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("another.gguf");
    write_gguf(&mut File::create(&path).unwrap(), &values, &[]).unwrap();
    let both = Intersection::of(target, &ModelSource::open(&path).unwrap().tokenizer().unwrap());
    assert!((3000..4000).contains(&both.shared()), "{} tokens are shared", both.shared());
    ModelDrafter::new(loaded(&source), Vocabulary::Intersection(Box::new(both)), target.ends())
}

#[test]
fn a_draft_with_another_tokenizer_changes_nothing() {
    let tree = Speculation { tree: Tree::Width(3), ..Speculation::fixed(5) };
    let ways = [Speculation::fixed(1), Speculation::fixed(4), tree, Speculation::default()];
    let drafter = with_another_tokenizer(decoder(&starter_target()).tokenizer());
    let drafters = vec![Box::new(drafter) as Box<dyn Drafter>, Box::<NgramDrafter>::default()];
    let accepted = assert_lossless(&mut Drafters::new(drafters), &ways);
    assert!(accepted > 200, "only {accepted} drafted tokens were accepted: nothing was tested");
}

#[test]
fn statistics_change_no_text() {
    let mut decoder = decoder(&starter_target());
    let mut drafters = everybody(&decoder);
    let request = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let plain = plain(&mut decoder, &request);
    assert_eq!(drafters.saved_stats(), None);
    write(&mut decoder, &request, &mut drafters);
    let stats = drafters.saved_stats().unwrap();
    let mut others = everybody(&decoder);
    others.restore(Some(&stats));
    assert!(others.governor().is_some(), "costs are known");
    assert_eq!(write(&mut decoder, &request, &mut others).tokens, plain.tokens);
    others.restore(None);
    assert!(others.governor().is_none());
}

#[test]
fn the_governor_and_all_drafters_together_change_nothing() {
    let ways = [
        Speculation::default(),
        Speculation { threshold: Threshold::Auto, ..Speculation::default() },
        Speculation { threshold: Threshold::Fixed(0.4), tree: Tree::Off, ..Speculation::default() },
        Speculation { tree: Tree::Width(4), ..Speculation::default() },
        Speculation { threshold: Threshold::Fixed(0.0), ..Speculation::fixed(6) },
        Speculation { threshold: Threshold::Fixed(1.0), ..Speculation::fixed(6) },
    ];
    let accepted = assert_lossless(&mut everybody(&decoder(&starter_target())), &ways);
    assert!(accepted > 300, "only {accepted} drafted tokens were accepted: nothing was tested");
}

/// Two hundred stories, questions and skills.
fn prompts() -> impl Iterator<Item = String> {
    let who = ["a fox", "a girl", "two friends", "an old king", "a little boat"];
    let what = ["finds a lantern", "sees the sea", "goes home", "loses a key", "meets a bear"];
    let asks = [
        |who: &str, what: &str| format!("Tell me a story about {who} who {what}."),
        |who: &str, what: &str| format!("Repeat after me: {who} {what} and {who} {what} again."),
        |who: &str, what: &str| format!("What is speculative decoding, and why {who} {what}?"),
        |who: &str, what: &str| format!("Count from one to nine, then say how {who} {what}."),
        |who: &str, what: &str| format!("{who} {what}"),
        |who: &str, what: &str| format!("fn main() {{ /* {who} {what} */ }}"),
        |who: &str, what: &str| format!("Does {who} ever {what}? Yes or no."),
        |who: &str, what: &str| format!("{what}! {what}! {who}?"),
    ];
    who.into_iter().flat_map(move |who| {
        what.into_iter().flat_map(move |what| asks.into_iter().map(move |ask| ask(who, what)))
    })
}

#[test]
fn two_hundred_prompts_have_the_same_text_with_any_drafts() {
    let mut decoder = decoder(&starter_target());
    let mut drafters = everybody(&decoder);
    let only = |drafter, length| Speculation { drafter, ..Speculation::fixed(length) };
    let tree = |drafter| Speculation { tree: Tree::Width(3), ..only(drafter, 4) };
    let ways = [
        Speculation::default(),
        only(DrafterChoice::Model, 3),
        tree(DrafterChoice::Model),
        Speculation { staged: Staged::On, ..only(DrafterChoice::Model, 6) },
        Speculation { threshold: Threshold::Auto, ..only(DrafterChoice::Model, 8) },
        only(DrafterChoice::Ngram, 8),
        only(DrafterChoice::Recycling, 2),
        tree(DrafterChoice::Recycling),
    ];
    let (mut tried, mut accepted) = (0, [0; 8]);
    // A tenth on tensors and on a software renderer, where all of them would take an hour; a fifth,
    // with all kinds of questions, on the CPU.
    let every = if tensors_on().is_some() || on_gpu() { 10 } else { nightly_or(1, 5) };
    for (prompt, sampling) in prompts().step_by(every).zip([Sampling::greedy(), coupled()].iter().cycle()) {
        let base = Request { max_tokens: Some(24), ..request(&decoder, &prompt, sampling) };
        let plain = plain(&mut decoder, &base);
        for (way, accepted) in ways.iter().zip(&mut accepted) {
            let drafted =
                write(&mut decoder, &Request { speculation: way.clone(), ..base.clone() }, &mut drafters);
            assert_eq!(drafted.tokens, plain.tokens, "{prompt} drafted by {way:?}");
            *accepted += drafted.summary.accepted;
        }
        tried += 1;
    }
    assert_eq!(tried, 200 / every);
    let least = 30 / every as u32;
    assert!(
        accepted[1..].iter().all(|&accepted| accepted > least),
        "drafts were hardly accepted: {accepted:?}"
    );
}

/// A drafter that returns arbitrary drafts.
pub struct Hostile<F>(pub F);

impl<F: FnMut(&[TokenId], usize) -> Result<Vec<TokenId>> + Send> Drafter for Hostile<F> {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Model
    }

    fn draft(&mut self, context: &Context, request: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        let tokens = (self.0)(context, request.length)?;
        let guess = |(index, token): (usize, _)| Guess {
            token,
            parent: index.checked_sub(1),
            drawn_from: None,
            probability: 1.0,
            confidence: 1.0,
            drafter: DrafterKind::Model,
        };
        let guesses = tokens.into_iter().enumerate().map(guess).collect();
        Ok(Draft { guesses, ..Draft::default() })
    }
}

#[test]
fn a_drafter_that_is_always_wrong_changes_nothing() {
    let accepted =
        assert_lossless(&mut Drafters::one(Hostile(|_: &[_], length| Ok(vec![5; length]))), &lengths([1, 5]));
    assert!(accepted < 20, "it was meant to be wrong");
}

#[test]
fn a_drafter_that_drafts_nothing_changes_nothing() {
    assert_lossless(&mut Drafters::one(Hostile(|_: &[_], _| Ok(vec![]))), &lengths([3]));
}

#[test]
fn a_drafter_that_drafts_more_than_asked_changes_nothing() {
    let mut ngram = NgramDrafter::default();
    let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
    let over = Hostile(move |context: &[TokenId], _| {
        let draft = ngram.draft(&context.into(), &DraftRequest::chain(40), &mut sampler)?;
        Ok(draft.guesses.iter().map(|guess| guess.token).chain([9; 40]).collect())
    });
    assert_lossless(&mut Drafters::one(over), &lengths([2, 7]));
}

#[test]
fn an_end_of_text_in_the_middle_of_a_draft_changes_nothing() {
    const END: TokenId = 2;
    let mut model = model_drafter(decoder(&starter_target()).tokenizer());
    let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
    let inside = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&inside);
    let ends = Hostile(move |context: &[TokenId], length: usize| {
        let draft = model.draft(&context.into(), &DraftRequest::chain(length / 2), &mut sampler)?;
        let tokens: Vec<_> =
            draft.guesses.iter().map(|guess| guess.token).chain([END, END, 11, END]).collect();
        let ended = tokens.iter().take(length.saturating_sub(1)).any(|&token| token == END);
        seen.fetch_add(usize::from(ended), Ordering::Relaxed);
        Ok(tokens)
    });
    assert_lossless(&mut Drafters::one(ends), &lengths([4, 8]));
    let inside = inside.load(Ordering::Relaxed);
    assert!(inside > 100, "only {inside} drafts had an end inside");
}

#[test]
fn a_drafter_that_drafts_unknown_tokens_is_dropped_and_changes_nothing() {
    assert_lossless(&mut Drafters::one(Hostile(|_: &[_], _| Ok(vec![4, 1_000_000]))), &lengths([4]));
}

#[test]
fn a_drafter_that_fails_in_the_middle_leaves_a_plain_reply_and_a_reason() {
    let mut decoder = decoder(&starter_target());
    let base = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let request = Request { speculation: Speculation::fixed(4), ..base };
    let plain = plain(&mut decoder, &request);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let failing = Hostile(move |_: &[_], _| {
        if counted.fetch_add(1, Ordering::Relaxed) >= 3 { Err(Error::EmptyPrompt) } else { Ok(vec![7]) }
    });
    let mut drafters = Drafters::one(failing);
    let reply = write(&mut decoder, &request, &mut drafters);
    assert_eq!(reply.tokens, plain.tokens);
    let reasons: Vec<_> = reply.rounds.iter().map(|round| round.reason).collect();
    assert_eq!(reasons[..3], [LengthReason::Fixed; 3]);
    assert!(reasons[3..].iter().all(|&reason| reason == LengthReason::DrafterFailed));
    assert_eq!(calls.load(Ordering::Relaxed), 4, "a failed drafter is not asked again");
    write(&mut decoder, &request, &mut drafters);
    assert_eq!(calls.load(Ordering::Relaxed), 5, "the next reply tries it again");
}

#[test]
fn a_drafter_that_fails_leaves_the_others_drafting() {
    let mut decoder = decoder(&starter_target());
    let base = request(&decoder, QUESTIONS[3], &Sampling::greedy());
    let request = Request { speculation: Speculation::fixed(4), ..base };
    let failing = Hostile(|_: &[_], _| Err(Error::EmptyPrompt));
    let mut drafters = Drafters::new(vec![Box::new(failing), Box::<NgramDrafter>::default()]);
    let reply = write(&mut decoder, &request, &mut drafters);
    let drafted = reply.rounds.iter().flat_map(|round| &round.drafted);
    assert!(drafted.into_iter().any(|drafted| drafted.drafter == DrafterKind::Ngram));
    assert!(reply.rounds.iter().all(|round| round.reason != LengthReason::DrafterFailed));
}

#[test]
fn after_every_round_the_target_cache_is_that_of_a_fresh_start() {
    let source = starter_target();
    for sampling in [Sampling::greedy(), coupled(), Sampling { seed: Some(3), ..Sampling::default() }] {
        let mut decoder = decoder(&source);
        let mut drafters = everybody(&decoder);
        let base = request(&decoder, QUESTIONS[0], &sampling);
        let tree = Speculation { tree: Tree::Width(3), ..Speculation::fixed(4) };
        let ways = [Speculation::fixed(5), tree, Speculation::default()];
        for (rounds, speculation) in (1..8).zip(ways.iter().cycle()) {
            let request = Request { speculation: speculation.clone(), ..base.clone() };
            let mut seen = 0;
            let mut stop_after = |progress: Progress<'_>| {
                seen += usize::from(matches!(progress, Progress::Round(_)));
                if seen == rounds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let reply = decoder.reply(&request, &mut drafters, &mut stop_after).unwrap();
            assert_eq!(reply.rounds.len(), rounds);
            let context = [request.prompt.clone(), reply.tokens].concat();
            let (last, cached) = context.split_last().unwrap();
            assert_eq!(decoder.target().cached(), cached);
            let mut fresh = loaded(&source);
            let _ = catch_up(fresh.as_mut(), &context, &mut |_, _| ControlFlow::Continue(())).unwrap();
            let next = TokenTree::chain([*last]);
            let expected = fresh.run(&next, &Want::all_rows()).unwrap();
            let found = decoder.target_mut().run(&next, &Want::all_rows()).unwrap();
            let (found, expected) = (found.logits(), expected.logits());
            assert_same(found.row(0).logits().unwrap(), expected.row(0).logits().unwrap());
        }
    }
}

#[test]
fn a_used_drafter_drafts_the_same_as_a_new_one() {
    let source = starter_target();
    let mut decoder = decoder(&source);
    let base = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let request = Request { speculation: Speculation::fixed(5), ..base };
    let mut drafters = Drafters::one(model_drafter(decoder.tokenizer()));
    let reply = write(&mut decoder, &request, &mut drafters);
    let mut context = Context::new(request.prompt.clone());
    let mut used = model_drafter(decoder.tokenizer());
    let mut sampler = Sampler::new(&request.sampling).unwrap();
    for round in &reply.rounds {
        let found = used.draft(&context, &DraftRequest::chain(5), &mut sampler).unwrap();
        let cached = used.model().cached();
        let known = [&context[..], &found.guesses.iter().map(|g| g.token).collect::<Vec<_>>()].concat();
        assert!(known.starts_with(cached) && cached.len() >= context.len());
        let expected = model_drafter(decoder.tokenizer())
            .draft(&context, &DraftRequest::chain(5), &mut sampler)
            .unwrap();
        // On tensors, the probabilities beside the tokens may differ in their last bits.
        let tokens =
            |draft: &Draft| -> Vec<TokenId> { draft.guesses.iter().map(|guess| guess.token).collect() };
        assert_eq!(tokens(&found), tokens(&expected));
        assert!(tensors_on().is_some() || found == expected);
        context.extend(round.emitted().map(|(token, _)| token));
    }
}

#[test]
fn a_reply_can_be_stopped_during_the_drafts_prefill() {
    let mut decoder = decoder(&starter_target());
    let mut drafters = Drafters::one(model_drafter(decoder.tokenizer()));
    let base = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let base = Request { speculation: Speculation::fixed(4), ..base };
    let long = Request { prompt: base.prompt.iter().copied().cycle().take(300).collect(), ..base };
    let mut target_is_ready = false;
    let reply = decoder.reply(&long, &mut drafters, &mut |progress| match progress {
        Progress::Prompt { .. } if target_is_ready => ControlFlow::Break(()),
        Progress::Prompt { done, total } => {
            target_is_ready = done == total;
            ControlFlow::Continue(())
        }
        Progress::Round(round) => {
            assert_eq!(round.reason, LengthReason::FirstToken);
            ControlFlow::Continue(())
        }
    });
    let reply = reply.unwrap();
    assert_eq!((reply.summary.finish, reply.tokens.len()), (Finish::Cancelled, 1));
    let behind = drafters.behind(&long.prompt[..].into());
    assert!(behind > 1 && behind < 300, "the draft had {behind} tokens to read");
}

#[test]
fn the_first_token_does_not_wait_for_a_long_draft_prefill() {
    let mut decoder = decoder(&starter_target());
    let mut drafters = Drafters::one(model_drafter(decoder.tokenizer()));
    let base = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let base = Request { speculation: Speculation::fixed(4), ..base };
    let long = Request { prompt: base.prompt.iter().copied().cycle().take(300).collect(), ..base };
    let expected = plain(&mut decoder, &long).tokens;
    let unread = drafters.behind(&long.prompt[..].into());
    let reply = decoder.reply(&long, &mut drafters, &mut |progress| {
        if let Progress::Round(round) = progress {
            let waits = round.index == 0;
            assert_eq!(round.reason == LengthReason::FirstToken && round.drafted.is_empty(), waits);
        }
        ControlFlow::Continue(())
    });
    let reply = reply.unwrap();
    assert_eq!((unread, &reply.tokens), (300, &expected));
    // The next turn has little to prefill.
    let next = Request { prompt: [&long.prompt[..], &reply.tokens].concat(), ..long };
    let reply = write(&mut decoder, &next, &mut drafters);
    assert!(reply.rounds.iter().all(|round| round.reason != LengthReason::FirstToken));
}

#[test]
fn a_second_turn_reuses_the_first() {
    let mut decoder = decoder(&starter_target());
    let first = request(&decoder, QUESTIONS[1], &Sampling::greedy());
    let reply = plain(&mut decoder, &first);
    let next = chat_prompt(&starter_target(), decoder.tokenizer(), "And then?");
    let second = Request { prompt: [&first.prompt[..], &reply.tokens, &next].concat(), ..first.clone() };
    let warm = plain(&mut decoder, &second);
    assert_eq!(warm.summary.reused_tokens as usize, first.prompt.len() + reply.tokens.len() - 1);
    let cold = plain(&mut self::decoder(&starter_target()), &second);
    assert_eq!((cold.summary.reused_tokens, cold.tokens), (0, warm.tokens));
}

#[test]
fn rounds_add_up_to_the_reply() {
    let mut decoder = decoder(&starter_target());
    let base = request(&decoder, QUESTIONS[0], &Sampling { seed: Some(1), ..Sampling::default() });
    let request = Request { speculation: Speculation::fixed(4), ..base };
    let mut drafters = Drafters::one(model_drafter(decoder.tokenizer()));
    let reply = write(&mut decoder, &request, &mut drafters);
    let mut position = request.prompt.len();
    for (index, round) in reply.rounds.iter().enumerate() {
        assert_eq!((round.index as usize, round.position as usize), (index, position));
        position += round.emitted().count();
        let outcomes: Vec<_> = round.drafted.iter().map(|drafted| drafted.outcome).collect();
        let rank = |outcome: &Outcome| match outcome {
            Outcome::Accepted => 0,
            Outcome::Rejected => 1,
            Outcome::Discarded => 2,
        };
        assert!(outcomes.is_sorted_by_key(rank), "{outcomes:?}");
        for drafted in &round.drafted {
            let judged = drafted.outcome != Outcome::Discarded;
            assert_eq!(drafted.target_probability.is_some(), judged);
        }
    }
    assert_eq!(position, request.prompt.len() + reply.tokens.len());
    assert_eq!(reply.text, decoder.tokenizer().decode(&reply.tokens));
    let summary = &reply.summary;
    assert!(summary.accepted <= summary.judged && summary.judged <= summary.drafted);
    assert_eq!(summary.tokens as usize, reply.tokens.len());
}

#[test]
fn a_reply_ends_at_its_stop_string_or_length_limit() {
    let mut decoder = decoder(&starter_target());
    let mut drafters = Drafters::one(model_drafter(decoder.tokenizer()));
    let whole = request(&decoder, QUESTIONS[2], &Sampling::greedy());
    let whole = write(&mut decoder, &whole, &mut drafters);
    assert_eq!(whole.summary.finish, Finish::Stop, "the model itself ends: {}", whole.text);
    let base = request(&decoder, QUESTIONS[2], &Sampling::greedy());
    for most in 0..12 {
        let speculation = Speculation::fixed(5);
        let request = Request { max_tokens: Some(most), speculation, ..base.clone() };
        let reply = write(&mut decoder, &request, &mut drafters);
        assert_eq!((reply.tokens.len(), reply.summary.finish), (most, Finish::Length));
        assert_eq!(reply.tokens, whole.tokens[..most]);
    }
    let stop: String = whole.text.chars().skip(10).take(7).collect();
    let request = Request { stop: vec![stop.clone()], speculation: Speculation::fixed(8), ..base };
    let reply = write(&mut decoder, &request, &mut drafters);
    assert_eq!(reply.summary.finish, Finish::Stop);
    assert_eq!(reply.text, whole.text[..whole.text.find(&stop).unwrap()]);
}

#[test]
fn a_reply_that_fills_the_context_says_so_and_stays_within_it() {
    let mut decoder = decoder(&starter_target());
    let mut drafters = Drafters::one(model_drafter(decoder.tokenizer()));
    let limit = decoder.target().config().context;
    let story = chat_prompt(&starter_target(), decoder.tokenizer(), QUESTIONS[0]);
    for (free, draft_length) in [(1, 4), (2, 4), (9, 8), (30, 5)] {
        let prompt: Vec<TokenId> = story.iter().copied().cycle().take(limit - free).collect();
        let tree = if draft_length == 5 { Tree::Width(4) } else { Tree::Off };
        let request = Request {
            sampling: Sampling::greedy(),
            speculation: Speculation { tree, ..Speculation::fixed(draft_length) },
            ignore_end: true,
            ..Request::new(prompt)
        };
        let reply = write(&mut decoder, &request, &mut drafters);
        assert_eq!((reply.tokens.len(), reply.summary.finish), (free, Finish::ContextFull));
    }
    let prompt: Vec<TokenId> = story.iter().copied().cycle().take(limit).collect();
    let refused = decoder.reply(&Request::new(prompt), &mut drafters, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::PromptTooLong { .. })));
    let refused = decoder.reply(&Request::new(vec![]), &mut drafters, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::EmptyPrompt)));
}

/// A model that reports a shorter context.
struct Short {
    model: Box<dyn Model>,
    config: ModelConfig,
}

impl Short {
    fn of(source: &ModelSource, context: usize) -> Self {
        let model = loaded(source);
        let config = ModelConfig { context, ..model.config().clone() };
        Self { model, config }
    }
}

impl Model for Short {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn cached(&self) -> &[TokenId] {
        self.model.cached()
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        let found = self.cached().len() + tree.len();
        let limit = self.config.context;
        if found > limit {
            return Err(Error::PromptTooLong { found, limit });
        }
        self.model.run(tree, want)
    }

    fn truncate(&mut self, length: usize) -> usize {
        self.model.truncate(length)
    }
}

#[test]
fn a_draft_model_with_a_shorter_context_stops_when_it_is_full_and_reports_it() {
    let mut decoder = decoder(&starter_target());
    let mut request = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let expected = plain(&mut decoder, &request);
    let context = request.prompt.len() + expected.tokens.len() / 2;
    for tree in [Tree::Off, Tree::Width(3)] {
        let short = Box::new(Short::of(&starter_draft(), context));
        let tokenizer = decoder.tokenizer();
        let drafter = ModelDrafter::new(short, Vocabulary::Same(tokenizer.vocabulary()), tokenizer.ends());
        request.speculation = Speculation { tree, ..Speculation::fixed(4) };
        let reply = write(&mut decoder, &request, &mut Drafters::one(drafter));
        assert_eq!(reply.tokens, expected.tokens);
        let (first, last) = (&reply.rounds[0], reply.rounds.last().unwrap());
        assert!(first.drafted.len() >= 4 && last.drafted.is_empty(), "{tree:?}");
        let full = reply.rounds.iter().filter(|round| round.reason == LengthReason::DraftContextFull);
        assert!(full.count() > 10, "{tree:?}");
        assert!(reply.rounds.iter().all(|round| round.reason != LengthReason::DrafterFailed));
    }
}

#[test]
fn a_draft_that_is_the_target_changes_nothing_and_is_always_right() {
    let mut decoder = decoder(&starter_target());
    let mut request = request(&decoder, QUESTIONS[0], &coupled());
    let expected = plain(&mut decoder, &request);
    let tokenizer = decoder.tokenizer();
    let drafter = || {
        let vocabulary = Vocabulary::Same(tokenizer.vocabulary());
        ModelDrafter::new(loaded(&starter_target()), vocabulary, tokenizer.ends())
    };
    let mut drafters = [Drafters::one(drafter()), Drafters::one(drafter())];
    request.speculation = Speculation::fixed(4);
    let forced = write(&mut decoder, &request, &mut drafters[0]);
    assert_eq!(forced.tokens, expected.tokens);
    assert_eq!(forced.summary.accepted, forced.summary.judged, "it is always right");
    request.speculation = Speculation::default();
    assert_eq!(write(&mut decoder, &request, &mut drafters[1]).tokens, expected.tokens);
}
