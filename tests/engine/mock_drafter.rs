//! Mock drafter that records the target's passes: it observes every position of every text once and
//! in order, whatever happened before.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use foretoken_engine::accept::{Guess, Guesses};
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::draft::{Cost, Draft, DraftRequest, Drafter, Drafters, NgramDrafter, Observation};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::Speculation;
use foretoken_engine::trace::LengthReason;
use foretoken_forward::Taps;
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_tests::{chat_prompt, decoder, starter_target};

/// Tokens that the drafter observed.
#[derive(Debug, Default)]
struct Observed {
    tokens: Vec<TokenId>,
    /// Number of observed positions that continued earlier ones.
    positions: usize,
    /// Number of these with hidden states.
    with_states: usize,
    /// Drafts that were requested while features were missing.
    incomplete_drafts: usize,
}

/// Drafts the tokens that followed the last occurrence of the last token.
struct MockDrafter {
    observed: Arc<Mutex<Observed>>,
    taps: Taps,
}

impl MockDrafter {
    fn new() -> (Self, Arc<Mutex<Observed>>) {
        Self::reading(Taps { entering: vec![1], last: true, ..Taps::default() })
    }

    fn reading(taps: Taps) -> (Self, Arc<Mutex<Observed>>) {
        let observed = Arc::new(Mutex::new(Observed::default()));
        (Self { observed: Arc::clone(&observed), taps }, observed)
    }
}

impl Drafter for MockDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Model
    }

    fn draft(&mut self, context: &Context, request: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        if self.missing_features(context) > 0 {
            self.observed.lock().unwrap().incomplete_drafts += 1;
            return Err(Error::EmptyPrompt);
        }
        let (last, before) = context.split_last().unwrap();
        let found = before.iter().rposition(|token| token == last);
        let after = found.map_or(&[][..], |found| &context[found + 1..]);
        let mut guesses = Guesses::default();
        for &token in after.iter().take(request.length) {
            let (probability, confidence, drafter) = (1.0, 0.7, DrafterKind::Model);
            guesses.follow(Guess { token, parent: None, drawn_from: None, probability, confidence, drafter });
        }
        let shortened = (guesses.len() < request.length).then_some(LengthReason::NoMatch);
        Ok(Draft { guesses, shortened, ..Draft::default() })
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<()> {
        let mut observed = self.observed.lock().unwrap();
        assert!(observation.rows.is_none_or(|rows| rows.len() == observation.tokens.len()));
        assert!(observation.features.is_none_or(|features| features.len() == observation.tokens.len()));
        // Tokens that leave a gap are ignored.
        if observation.at <= observed.tokens.len() {
            observed.tokens.truncate(observation.at);
            observed.tokens.extend(observation.tokens);
            observed.positions += observation.tokens.len();
            observed.with_states += observation.features.map_or(0, |features| features.len());
        }
        Ok(())
    }

    fn taps(&self) -> Option<&Taps> {
        Some(&self.taps)
    }

    fn missing_features(&self, context: &Context) -> usize {
        let run = &context[..context.len() - 1];
        let observed = self.observed.lock().unwrap();
        run.len() - observed.tokens.iter().zip(run).take_while(|(observed, token)| observed == token).count()
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}

fn write(decoder: &mut Decoder, request: &Request, drafters: &mut Drafters) -> Reply {
    decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Request with a prompt of more than two parts.
fn request(decoder: &Decoder, speculation: Speculation) -> Request {
    let story = chat_prompt(&starter_target(), decoder.tokenizer(), "Count from one to twelve, and again.");
    Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(40),
        ignore_end: true,
        speculation,
        ..Request::new(story.iter().copied().cycle().take(300).collect())
    }
}

/// Checks that all of `text` but its last token was observed, and `positions` positions in total.
#[track_caller]
fn assert_observed(observed: &Mutex<Observed>, text: &[TokenId], positions: usize) {
    let observed = observed.lock().unwrap();
    assert!(observed.tokens == text[..text.len() - 1], "observed another text");
    assert_eq!((observed.positions, observed.incomplete_drafts), (positions, 0));
}

fn text(request: &Request, reply: &Reply) -> Vec<TokenId> {
    [&request.prompt[..], &reply.tokens].concat()
}

#[test]
fn every_position_is_observed_once_across_prompt_parts_rounds_turns_and_edits() {
    let mut decoder = decoder(&starter_target());
    for speculation in [Speculation::fixed(4), Speculation::default()] {
        decoder.target_mut().truncate(0);
        let first = request(&decoder, speculation);
        let plain = write(&mut decoder, &first, &mut Drafters::default());
        decoder.target_mut().truncate(0);
        let (drafter, observed) = MockDrafter::new();
        // Rounds of other drafters are observed, too.
        let mut drafters = Drafters::new(vec![Box::new(drafter), Box::<NgramDrafter>::default()]);
        let reply = write(&mut decoder, &first, &mut drafters);
        assert_eq!(reply.tokens, plain.tokens);
        let may_draft_nothing = first.speculation == Speculation::default();
        assert!(may_draft_nothing || reply.summary.drafted > reply.summary.accepted, "nothing was rejected");
        let before = text(&first, &reply);
        assert_observed(&observed, &before, before.len() - 1);

        // The next turn, in which the last token of this one is run.
        let next = Request { prompt: [&before[..], &first.prompt[..150]].concat(), ..first.clone() };
        let reply = write(&mut decoder, &next, &mut drafters);
        let after = text(&next, &reply);
        assert_observed(&observed, &after, after.len() - 1);

        // An edit in the middle of the first prompt.
        let mut edited = first.clone();
        edited.prompt[200] = edited.prompt[201];
        let same = first.prompt.iter().zip(&edited.prompt).take_while(|(a, b)| a == b).count();
        let reply = write(&mut decoder, &edited, &mut drafters);
        let last = text(&edited, &reply);
        assert_observed(&observed, &last, after.len() - 1 + last.len() - 1 - same);
    }
}

#[test]
fn a_drafter_that_is_enabled_later_observes_the_whole_text_before_it_drafts() {
    let mut decoder = decoder(&starter_target());
    let first = request(&decoder, Speculation::fixed(4));
    let reply = write(&mut decoder, &first, &mut Drafters::default());
    let next = Request { prompt: text(&first, &reply), ..first };
    let plain = write(&mut decoder, &next, &mut Drafters::default());
    let (drafter, observed) = MockDrafter::new();
    let mut drafters = Drafters::one(drafter);
    // The first reply is written without it.
    let off = Request { speculation: Speculation::off(), ..next.clone() };
    write(&mut decoder, &off, &mut drafters);
    assert_eq!(observed.lock().unwrap().positions, 0);
    let mut parts = Vec::new();
    let reply = decoder.reply(&next, &mut drafters, &mut |progress| {
        if let Progress::Prompt { done, total } = progress {
            parts.push((done, total));
        }
        ControlFlow::Continue(())
    });
    let reply = reply.unwrap();
    assert_eq!(reply.tokens, plain.tokens);
    let all = text(&next, &reply);
    assert_observed(&observed, &all, all.len() - 1);
    assert!(parts.len() >= 3 && parts.last().is_some_and(|(done, total)| done == total), "{parts:?}");
    assert_eq!(reply.rounds[0].reason, LengthReason::FirstToken, "the first token does not wait for it");
    assert!(reply.rounds[1..].iter().any(|round| !round.drafted.is_empty()));
}

#[test]
fn a_reply_can_be_stopped_while_the_target_replays_tokens() {
    let mut decoder = decoder(&starter_target());
    let first = request(&decoder, Speculation::fixed(4));
    write(&mut decoder, &first, &mut Drafters::default());
    let (drafter, observed) = MockDrafter::new();
    let mut drafters = Drafters::one(drafter);
    let reply = decoder.reply(&first, &mut drafters, &mut |progress| match progress {
        Progress::Prompt { .. } => ControlFlow::Break(()),
        Progress::Round(_) => ControlFlow::Continue(()),
    });
    assert_eq!(reply.unwrap().tokens.len(), 1);
    assert_eq!(observed.lock().unwrap().positions, 128);
}

#[test]
fn every_position_is_observed_with_its_hidden_states() {
    let mut decoder = decoder(&starter_target());
    let first = request(&decoder, Speculation::fixed(4));
    let (drafter, observed) = MockDrafter::new();
    let mut drafters = Drafters::one(drafter);
    write(&mut decoder, &first, &mut drafters);
    let observed = observed.lock().unwrap();
    assert_eq!(observed.with_states, observed.positions);
}

#[test]
fn a_new_drafter_is_measured_by_the_rounds_of_the_first_reply() {
    let mut decoder = decoder(&starter_target());
    let (drafter, _) = MockDrafter::new();
    let mut drafters = Drafters::one(drafter);
    assert!(drafters.saved_stats().is_none(), "nothing is known yet");
    let request = request(&decoder, Speculation::default());
    let reply = write(&mut decoder, &request, &mut drafters);
    assert!(drafters.saved_stats().is_some());
    assert!(reply.rounds.iter().all(|round| round.reason != LengthReason::CannotPay));
    assert!(reply.summary.drafted > 0);
}

#[test]
fn hidden_states_go_only_to_drafters_that_read_exactly_the_tapped_ones() {
    let mut decoder = decoder(&starter_target());
    let (first, observed) = MockDrafter::new();
    let (second, others) = MockDrafter::reading(Taps { entering: vec![2], ..Taps::default() });
    let mut drafters = Drafters::new(vec![Box::new(first), Box::new(second)]);
    let request = request(&decoder, Speculation::fixed(4));
    write(&mut decoder, &request, &mut drafters);
    let (observed, others) = (observed.lock().unwrap(), others.lock().unwrap());
    assert_eq!((observed.with_states, others.positions), (observed.positions, observed.positions));
    assert_eq!(others.with_states, 0);
}

/// Drafter that always misses features.
struct NeverReady(MockDrafter);

impl Drafter for NeverReady {
    fn kind(&self) -> DrafterKind {
        self.0.kind()
    }

    fn draft(&mut self, _: &Context, _: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        Err(Error::EmptyPrompt)
    }

    fn taps(&self) -> Option<&Taps> {
        self.0.taps()
    }

    fn missing_features(&self, _: &Context) -> usize {
        200
    }

    fn cost(&self) -> Cost {
        self.0.cost()
    }
}

#[test]
fn a_drafter_that_always_misses_features_fails_after_one_replay() {
    let mut decoder = decoder(&starter_target());
    let request = request(&decoder, Speculation::fixed(4));
    let plain = write(&mut decoder, &request, &mut Drafters::default());
    let mut drafters = Drafters::one(NeverReady(MockDrafter::new().0));
    let mut run = 0;
    let reply = decoder.reply(&request, &mut drafters, &mut |progress| {
        run += usize::from(matches!(progress, Progress::Prompt { .. }));
        ControlFlow::Continue(())
    });
    assert_eq!(reply.unwrap().tokens, plain.tokens);
    assert!(drafters.has_failed(DrafterKind::Model));
    assert_eq!(run, 2, "200 tokens are run again once, in two parts");
}
