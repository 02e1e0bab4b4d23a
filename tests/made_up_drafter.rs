//! A made-up drafter that reads what the target ran: it hears every position of every text once and in request,
//! whatever came before.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use foretoken_engine::accept::{Guess, Guesses};
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::draft::{Cost, Draft, DraftRequest, Drafter, Drafters, NgramDrafter, Seen};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::error::{Error, Result};
use foretoken_engine::forward::Taps;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::speculation::Speculation;
use foretoken_engine::token::TokenId;
use foretoken_engine::trace::LengthReason;
use foretoken_tests::{chat_prompt, decoder, starter_target};

/// What the drafter heard.
#[derive(Debug, Default)]
struct Heard {
    tokens: Vec<TokenId>,
    /// Positions that joined on to what was heard before, in all.
    positions: usize,
    /// Of them those that came with hidden states.
    with_states: usize,
    /// Drafts it was asked for while tokens were missing.
    deaf_drafts: usize,
}

/// Repeats what followed the last token before.
struct Listener {
    heard: Arc<Mutex<Heard>>,
    taps: Taps,
}

impl Listener {
    fn new() -> (Self, Arc<Mutex<Heard>>) {
        Self::reading(Taps { entering: vec![1], last: true, ..Taps::default() })
    }

    fn reading(taps: Taps) -> (Self, Arc<Mutex<Heard>>) {
        let heard = Arc::new(Mutex::new(Heard::default()));
        (Self { heard: Arc::clone(&heard), taps }, heard)
    }
}

impl Drafter for Listener {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Model
    }

    fn draft(&mut self, context: &Context, request: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        if self.deaf(context) > 0 {
            self.heard.lock().unwrap().deaf_drafts += 1;
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
        Ok(Draft { guesses, shortened })
    }

    fn observe(&mut self, seen: &Seen<'_>) -> Result<()> {
        let mut heard = self.heard.lock().unwrap();
        assert!(seen.rows.is_none_or(|rows| rows.len() == seen.tokens.len()));
        assert!(seen.features.is_none_or(|features| features.len() == seen.tokens.len()));
        // What does not join on is of no use.
        if seen.at <= heard.tokens.len() {
            heard.tokens.truncate(seen.at);
            heard.tokens.extend(seen.tokens);
            heard.positions += seen.tokens.len();
            heard.with_states += seen.features.map_or(0, |features| features.len());
        }
        Ok(())
    }

    fn taps(&self) -> Option<&Taps> {
        Some(&self.taps)
    }

    fn deaf(&self, context: &Context) -> usize {
        let run = &context[..context.len() - 1];
        let heard = self.heard.lock().unwrap();
        run.len() - heard.tokens.iter().zip(run).take_while(|(heard, token)| heard == token).count()
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}

fn write(decoder: &mut Decoder, request: &Request, drafters: &mut Drafters) -> Reply {
    decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// A prompt of three parts and more.
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

/// That all of a text but its last token was heard, and no more than `positions` in all until now.
#[track_caller]
fn assert_heard(heard: &Mutex<Heard>, text: &[TokenId], positions: usize) {
    let heard = heard.lock().unwrap();
    assert!(heard.tokens == text[..text.len() - 1], "another text was heard");
    assert_eq!((heard.positions, heard.deaf_drafts), (positions, 0));
}

fn text(request: &Request, reply: &Reply) -> Vec<TokenId> {
    [&request.prompt[..], &reply.tokens].concat()
}

#[test]
fn every_position_is_heard_once_across_parts_of_prompts_rounds_turns_and_edits() {
    let mut decoder = decoder(&starter_target());
    for speculation in [Speculation::fixed(4), Speculation::default()] {
        decoder.target_mut().truncate(0);
        let first = request(&decoder, speculation);
        let plain = write(&mut decoder, &first, &mut Drafters::default());
        decoder.target_mut().truncate(0);
        let (listener, heard) = Listener::new();
        // Rounds of others are heard, too.
        let mut drafters = Drafters::new(vec![Box::new(listener), Box::<NgramDrafter>::default()]);
        let reply = write(&mut decoder, &first, &mut drafters);
        assert_eq!(reply.tokens, plain.tokens);
        let may_draft_nothing = first.speculation == Speculation::default();
        assert!(may_draft_nothing || reply.summary.drafted > reply.summary.accepted, "nothing was rejected");
        let before = text(&first, &reply);
        assert_heard(&heard, &before, before.len() - 1);

        // The next turn, in which the last token of this one is run.
        let next = Request { prompt: [&before[..], &first.prompt[..150]].concat(), ..first.clone() };
        let reply = write(&mut decoder, &next, &mut drafters);
        let after = text(&next, &reply);
        assert_heard(&heard, &after, after.len() - 1);

        // An edit in the middle of the first prompt.
        let mut edited = first.clone();
        edited.prompt[200] = edited.prompt[201];
        let same = first.prompt.iter().zip(&edited.prompt).take_while(|(a, b)| a == b).count();
        let reply = write(&mut decoder, &edited, &mut drafters);
        let last = text(&edited, &reply);
        assert_heard(&heard, &last, after.len() - 1 + last.len() - 1 - same);
    }
}

#[test]
fn one_that_is_switched_on_in_the_middle_hears_what_it_missed_before_it_drafts() {
    let mut decoder = decoder(&starter_target());
    let first = request(&decoder, Speculation::fixed(4));
    let reply = write(&mut decoder, &first, &mut Drafters::default());
    let next = Request { prompt: text(&first, &reply), ..first };
    let plain = write(&mut decoder, &next, &mut Drafters::default());
    let (listener, heard) = Listener::new();
    let mut drafters = Drafters::one(listener);
    // The first reply it could draft for is written without it.
    let off = Request { speculation: Speculation::off(), ..next.clone() };
    write(&mut decoder, &off, &mut drafters);
    assert_eq!(heard.lock().unwrap().positions, 0);
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
    assert_heard(&heard, &all, all.len() - 1);
    assert!(parts.len() >= 3 && parts.last().is_some_and(|(done, total)| done == total), "{parts:?}");
    assert_eq!(reply.rounds[0].reason, LengthReason::FirstToken, "the first token does not wait for it");
    assert!(reply.rounds[1..].iter().any(|round| !round.drafted.is_empty()));
}

#[test]
fn a_stop_is_heard_while_the_target_runs_what_was_missed() {
    let mut decoder = decoder(&starter_target());
    let first = request(&decoder, Speculation::fixed(4));
    write(&mut decoder, &first, &mut Drafters::default());
    let (listener, heard) = Listener::new();
    let mut drafters = Drafters::one(listener);
    let reply = decoder.reply(&first, &mut drafters, &mut |progress| match progress {
        Progress::Prompt { .. } => ControlFlow::Break(()),
        Progress::Round(_) => ControlFlow::Continue(()),
    });
    assert_eq!(reply.unwrap().tokens.len(), 1);
    assert_eq!(heard.lock().unwrap().positions, 128);
}

#[test]
fn every_position_comes_with_the_states_it_was_asked_for() {
    let mut decoder = decoder(&starter_target());
    let first = request(&decoder, Speculation::fixed(4));
    let (listener, heard) = Listener::new();
    let mut drafters = Drafters::one(listener);
    write(&mut decoder, &first, &mut drafters);
    let heard = heard.lock().unwrap();
    assert_eq!(heard.with_states, heard.positions);
}

#[test]
fn one_that_had_heard_nothing_when_costs_were_measured_is_measured_once_it_has() {
    let mut decoder = decoder(&starter_target());
    let (listener, _) = Listener::new();
    let mut drafters = Drafters::one(listener);
    decoder.measure(&mut drafters).unwrap();
    assert!(drafters.knowledge().is_none(), "what is assumed is kept as if it had been measured");
    let request = request(&decoder, Speculation::default());
    let reply = write(&mut decoder, &request, &mut drafters);
    assert!(drafters.knowledge().is_some());
    assert!(reply.rounds.iter().all(|round| round.reason != LengthReason::CannotPay));
    assert!(reply.summary.drafted > 0);
}

#[test]
fn states_go_to_those_alone_who_read_just_these() {
    let mut decoder = decoder(&starter_target());
    let (first, heard) = Listener::new();
    let (second, others) = Listener::reading(Taps { entering: vec![2], ..Taps::default() });
    let mut drafters = Drafters::new(vec![Box::new(first), Box::new(second)]);
    let request = request(&decoder, Speculation::fixed(4));
    write(&mut decoder, &request, &mut drafters);
    let (heard, others) = (heard.lock().unwrap(), others.lock().unwrap());
    assert_eq!((heard.with_states, others.positions), (heard.positions, heard.positions));
    assert_eq!(others.with_states, 0);
}

/// Never has what it wants, and says so.
struct Stubborn(Listener);

impl Drafter for Stubborn {
    fn kind(&self) -> DrafterKind {
        self.0.kind()
    }

    fn draft(&mut self, _: &Context, _: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        Err(Error::EmptyPrompt)
    }

    fn taps(&self) -> Option<&Taps> {
        self.0.taps()
    }

    fn deaf(&self, _: &Context) -> usize {
        200
    }

    fn cost(&self) -> Cost {
        self.0.cost()
    }
}

#[test]
fn one_that_never_has_heard_enough_is_left_out_after_one_attempt() {
    let mut decoder = decoder(&starter_target());
    let request = request(&decoder, Speculation::fixed(4));
    let plain = write(&mut decoder, &request, &mut Drafters::default());
    let mut drafters = Drafters::one(Stubborn(Listener::new().0));
    let mut run = 0;
    let reply = decoder.reply(&request, &mut drafters, &mut |progress| {
        run += usize::from(matches!(progress, Progress::Prompt { .. }));
        ControlFlow::Continue(())
    });
    assert_eq!(reply.unwrap().tokens, plain.tokens);
    assert!(drafters.has_failed(DrafterKind::Model));
    assert_eq!(run, 2, "200 tokens are run again once, in two parts");
}
