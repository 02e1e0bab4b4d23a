//! Real models: the text with drafts is the text without, token by token, whoever drafts; and the
//! cache after every round is that of a fresh start.

use std::ops::ControlFlow;

use foretoken_engine::accept::Guess;
use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::draft::{Draft, Drafter, NgramDrafter};
use foretoken_engine::error::{Error, Result};
use foretoken_engine::forward::catch_up;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::sampling::{Mode, Sampling};
use foretoken_engine::trace::{DrafterKind, Finish, LengthReason, Outcome, TokenId};
use foretoken_engine::tree::TokenTree;
use foretoken_tests::{chat_prompt, decoder, loaded, model_drafter, starter_draft, starter_target};

const QUESTIONS: [&str; 4] = [
    "Tell me a story about a fox who finds a lantern.",
    "What is speculative decoding?",
    "Count from one to twelve.",
    "Repeat after me: the cat and the dog and the cat and the dog and the cat.",
];

fn coupled() -> Sampling {
    Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() }
}

fn request(decoder: &Decoder, question: &str, sampling: &Sampling) -> Request {
    Request {
        sampling: sampling.clone(),
        max_tokens: Some(60),
        ..Request::new(chat_prompt(&starter_target(), decoder.tokenizer(), question))
    }
}

fn write(decoder: &mut Decoder, request: &Request, drafter: Option<&mut dyn Drafter>) -> Reply {
    decoder.reply(request, drafter, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Every question, greedy and coupled, with drafts of `lengths` tokens and without.
#[track_caller]
fn assert_lossless(drafter: &mut dyn Drafter, lengths: impl Iterator<Item = usize> + Clone) -> usize {
    let mut decoder = decoder(&starter_target());
    let mut accepted = 0;
    for sampling in [Sampling::greedy(), coupled()] {
        for question in QUESTIONS {
            let mut request = request(&decoder, question, &sampling);
            let plain = write(&mut decoder, &request, None);
            for length in lengths.clone() {
                request.draft_length = length;
                let drafted = write(&mut decoder, &request, Some(drafter));
                assert_eq!(drafted.tokens, plain.tokens, "{question} at draft length {length}");
                assert_eq!((&drafted.text, drafted.summary.finish), (&plain.text, plain.summary.finish));
                accepted += drafted.summary.accepted as usize;
            }
        }
    }
    accepted
}

#[test]
fn the_draft_model_changes_nothing_at_any_length() {
    let mut drafter = model_drafter(decoder(&starter_target()).tokenizer());
    let accepted = assert_lossless(&mut drafter, 1..=8);
    assert!(accepted > 500, "only {accepted} drafted tokens were accepted: nothing was tested");
}

#[test]
fn the_ngram_drafter_changes_nothing_at_any_length() {
    let accepted = assert_lossless(&mut NgramDrafter::default(), 1..=8);
    assert!(accepted > 50, "only {accepted} drafted tokens were accepted: nothing was tested");
}

/// A drafter that is up to no good.
struct Hostile<F>(F);

impl<F: FnMut(&[TokenId], usize) -> Result<Vec<TokenId>> + Send> Drafter for Hostile<F> {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Model
    }

    fn draft(&mut self, context: &[TokenId], length: usize, _: &mut Sampler) -> Result<Draft> {
        let guess = |token| Guess { token, drawn_from: None, probability: 1.0 };
        let guesses = (self.0)(context, length)?.into_iter().map(guess).collect();
        Ok(Draft { guesses, shortened: None })
    }
}

#[test]
fn a_drafter_that_is_always_wrong_changes_nothing() {
    let accepted = assert_lossless(&mut Hostile(|_: &[_], length| Ok(vec![5; length])), [1, 5].into_iter());
    assert!(accepted < 20, "it was meant to be wrong");
}

#[test]
fn a_drafter_that_drafts_nothing_changes_nothing() {
    assert_lossless(&mut Hostile(|_: &[_], _| Ok(vec![])), [3].into_iter());
}

#[test]
fn a_drafter_that_drafts_more_than_asked_changes_nothing() {
    let mut ngram = NgramDrafter::default();
    let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
    let mut over = Hostile(move |context: &[TokenId], _| {
        let draft = ngram.draft(context, 40, &mut sampler)?;
        Ok(draft.guesses.iter().map(|guess| guess.token).chain([9; 40]).collect())
    });
    assert_lossless(&mut over, [2, 7].into_iter());
}

#[test]
fn an_end_of_text_in_the_middle_of_a_draft_changes_nothing() {
    const END: TokenId = 2;
    let mut model = model_drafter(decoder(&starter_target()).tokenizer());
    let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
    let mut inside = 0;
    let mut ends = Hostile(|context: &[TokenId], length: usize| {
        let draft = model.draft(context, length / 2, &mut sampler)?;
        let tokens: Vec<_> =
            draft.guesses.iter().map(|guess| guess.token).chain([END, END, 11, END]).collect();
        inside += tokens.iter().take(length.saturating_sub(1)).any(|&token| token == END) as usize;
        Ok(tokens)
    });
    assert_lossless(&mut ends, [4, 8].into_iter());
    assert!(inside > 100, "only {inside} drafts had an end inside");
}

#[test]
fn a_drafter_that_drafts_unknown_tokens_is_dropped_and_changes_nothing() {
    assert_lossless(&mut Hostile(|_: &[_], _| Ok(vec![4, 1_000_000])), [4].into_iter());
}

#[test]
fn a_drafter_that_fails_in_the_middle_leaves_a_plain_reply_and_a_reason() {
    let mut decoder = decoder(&starter_target());
    let request = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let plain = write(&mut decoder, &request, None);
    let mut calls = 0;
    let mut failing = Hostile(|_: &[_], _| {
        calls += 1;
        if calls > 3 { Err(Error::EmptyPrompt) } else { Ok(vec![7]) }
    });
    let reply = write(&mut decoder, &request, Some(&mut failing));
    assert_eq!(reply.tokens, plain.tokens);
    let reasons: Vec<_> = reply.rounds.iter().map(|round| round.reason).collect();
    assert_eq!(reasons[..3], [LengthReason::Fixed; 3]);
    assert!(reasons[3..].iter().all(|&reason| reason == LengthReason::DrafterFailed));
    assert_eq!(calls, 4, "a failed drafter is not asked again");
}

#[test]
fn after_every_round_the_target_cache_is_that_of_a_fresh_start() {
    let source = starter_target();
    for sampling in [Sampling::greedy(), coupled(), Sampling { seed: Some(3), ..Sampling::default() }] {
        let mut decoder = decoder(&source);
        let mut drafter = model_drafter(decoder.tokenizer());
        let request = Request { draft_length: 5, ..request(&decoder, QUESTIONS[0], &sampling) };
        for rounds in 1..8 {
            let mut seen = 0;
            let mut stop_after = |progress: Progress<'_>| {
                seen += usize::from(matches!(progress, Progress::Round(_)));
                if seen == rounds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let reply = decoder.reply(&request, Some(&mut drafter), &mut stop_after).unwrap();
            assert_eq!(reply.rounds.len(), rounds);
            let context = [request.prompt.clone(), reply.tokens].concat();
            let (last, cached) = context.split_last().unwrap();
            assert_eq!(decoder.target().cached(), cached);
            let mut fresh = loaded(&source);
            let _ = catch_up(fresh.as_mut(), &context, &mut |_, _| ControlFlow::Continue(())).unwrap();
            let next = TokenTree::chain([*last]);
            let expected = fresh.forward(&next, 0..1).unwrap();
            assert_eq!(decoder.target_mut().forward(&next, 0..1).unwrap(), expected);
        }
    }
}

#[test]
fn a_used_drafter_drafts_what_a_fresh_one_would() {
    let source = starter_target();
    let mut decoder = decoder(&source);
    let mut drafter = model_drafter(decoder.tokenizer());
    let request = Request { draft_length: 5, ..request(&decoder, QUESTIONS[0], &Sampling::greedy()) };
    let reply = write(&mut decoder, &request, Some(&mut drafter));
    let mut context = request.prompt.clone();
    let mut used = model_drafter(decoder.tokenizer());
    let mut sampler = Sampler::new(&request.sampling).unwrap();
    for round in &reply.rounds {
        let found = used.draft(&context, 5, &mut sampler).unwrap();
        let cached = used.model().cached();
        let known = [&context[..], &found.guesses.iter().map(|g| g.token).collect::<Vec<_>>()].concat();
        assert!(known.starts_with(cached) && cached.len() >= context.len());
        let expected = model_drafter(decoder.tokenizer()).draft(&context, 5, &mut sampler).unwrap();
        assert_eq!(found, expected);
        context.extend(round.emitted().map(|(token, _)| token));
    }
}

#[test]
fn a_stop_is_heard_while_the_draft_reads_the_prompt() {
    let mut decoder = decoder(&starter_target());
    let mut drafter = model_drafter(decoder.tokenizer());
    let base = request(&decoder, QUESTIONS[0], &Sampling::greedy());
    let long = Request { prompt: base.prompt.iter().copied().cycle().take(300).collect(), ..base };
    let mut target_is_ready = false;
    let reply = decoder.reply(&long, Some(&mut drafter), &mut |progress| match progress {
        Progress::Prompt { .. } if target_is_ready => ControlFlow::Break(()),
        Progress::Prompt { done, total } => {
            target_is_ready = done == total;
            ControlFlow::Continue(())
        }
        Progress::Round(_) => panic!("a round after the stop"),
    });
    let reply = reply.unwrap();
    assert_eq!((reply.summary.finish, reply.tokens.len()), (Finish::Cancelled, 0));
    let cached = drafter.model().cached().len();
    assert!(cached > 0 && cached < 299, "the draft had read {cached} tokens");
}

#[test]
fn a_second_turn_reuses_the_first() {
    let mut decoder = decoder(&starter_target());
    let first = request(&decoder, QUESTIONS[1], &Sampling::greedy());
    let reply = write(&mut decoder, &first, None);
    let next = chat_prompt(&starter_target(), decoder.tokenizer(), "And then?");
    let second = Request { prompt: [&first.prompt[..], &reply.tokens, &next].concat(), ..first.clone() };
    let warm = write(&mut decoder, &second, None);
    assert_eq!(warm.summary.reused_tokens as usize, first.prompt.len() + reply.tokens.len() - 1);
    let cold = write(&mut self::decoder(&starter_target()), &second, None);
    assert_eq!((cold.summary.reused_tokens, cold.tokens), (0, warm.tokens));
}

#[test]
fn rounds_add_up_to_the_reply() {
    let mut decoder = decoder(&starter_target());
    let mut drafter = model_drafter(decoder.tokenizer());
    let request = request(&decoder, QUESTIONS[0], &Sampling { seed: Some(1), ..Sampling::default() });
    let reply = write(&mut decoder, &request, Some(&mut drafter));
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
fn a_reply_ends_where_it_was_told_to() {
    let mut decoder = decoder(&starter_target());
    let mut drafter = model_drafter(decoder.tokenizer());
    let whole = request(&decoder, QUESTIONS[2], &Sampling::greedy());
    let whole = write(&mut decoder, &whole, Some(&mut drafter));
    assert_eq!(whole.summary.finish, Finish::Stop, "the model itself ends: {}", whole.text);
    let base = request(&decoder, QUESTIONS[2], &Sampling::greedy());
    for most in 0..12 {
        let request = Request { max_tokens: Some(most), draft_length: 5, ..base.clone() };
        let reply = write(&mut decoder, &request, Some(&mut drafter));
        assert_eq!((reply.tokens.len(), reply.summary.finish), (most, Finish::Length));
        assert_eq!(reply.tokens, whole.tokens[..most]);
    }
    let stop: String = whole.text.chars().skip(10).take(7).collect();
    let request = Request { stop: vec![stop.clone()], draft_length: 8, ..base };
    let reply = write(&mut decoder, &request, Some(&mut drafter));
    assert_eq!(reply.summary.finish, Finish::Stop);
    assert_eq!(reply.text, whole.text[..whole.text.find(&stop).unwrap()]);
}

#[test]
fn a_reply_that_fills_the_context_says_so_and_stays_within_it() {
    let mut decoder = decoder(&starter_target());
    let mut drafter = model_drafter(decoder.tokenizer());
    let limit = decoder.target().config().context;
    let story = chat_prompt(&starter_target(), decoder.tokenizer(), QUESTIONS[0]);
    for (free, draft_length) in [(1, 4), (2, 4), (9, 8), (30, 5)] {
        let prompt: Vec<TokenId> = story.iter().copied().cycle().take(limit - free).collect();
        let request =
            Request { sampling: Sampling::greedy(), draft_length, ignore_end: true, ..Request::new(prompt) };
        let reply = write(&mut decoder, &request, Some(&mut drafter));
        assert_eq!((reply.tokens.len(), reply.summary.finish), (free, Finish::ContextFull));
    }
    let prompt: Vec<TokenId> = story.iter().copied().cycle().take(limit).collect();
    let refused = decoder.reply(&Request::new(prompt), None, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::PromptTooLong { .. })));
    let refused = decoder.reply(&Request::new(vec![]), None, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::EmptyPrompt)));
}

#[test]
fn a_draft_with_a_shorter_context_stops_drafting_with_a_reason() {
    // The starter pair has one context; a prompt that just fits the draft shows the same.
    let mut drafter = model_drafter(decoder(&starter_target()).tokenizer());
    let limit = starter_draft().config().unwrap().context;
    let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
    let draft = drafter.draft(&vec![9; limit - 2], 4, &mut sampler).unwrap();
    assert_eq!((draft.guesses.len(), draft.shortened), (2, Some(LengthReason::DraftContextFull)));
    let draft = drafter.draft(&vec![9; limit + 5], 4, &mut sampler).unwrap();
    assert_eq!((draft.guesses.len(), draft.shortened), (0, Some(LengthReason::DraftContextFull)));
}
