//! The governor on simulated pairs with known costs and acceptance: its choices against the best
//! possible ones.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::explaining::DECISION_AGE;
use super::*;
use crate::accept::Guesses;
use crate::context::Context;
use crate::draft::{Draft, DraftRequest, Search};
use crate::speculation::{Room, Speculation, Staged, Tree};
use crate::trace::{Drafted, Extra, ExtraKind, LengthReason, Outcome, Round, Times};

/// Indices of the drafters.
const MODEL: usize = 0;
const NGRAM: usize = 1;
/// Their kinds, and whether their drafts are free.
const ROSTER: [(DrafterKind, bool); 2] = [(DrafterKind::Model, false), (DrafterKind::Ngram, true)];

/// Simulated pair: milliseconds of a pass by rows and of a drafted token, and the chance of
/// acceptance by depth.
struct Pair {
    verify: fn(usize) -> f64,
    token_ms: f64,
    acceptance: fn(usize) -> f64,
}

impl Pair {
    fn governor(&self) -> Governor {
        let points = [1, 2, 3, 5, 9, 17].map(|rows| (rows, (self.verify)(rows)));
        let draft = Costs::measured(&[1, 2].map(|length| (length, length as f64 * self.token_ms)));
        Governor::new(
            Costs::measured(&points),
            vec![(DrafterKind::Model, Some(no_eviction(draft))), (DrafterKind::Ngram, None)],
        )
    }

    /// Tokens per millisecond with chains of `length` tokens.
    fn rate(&self, length: usize) -> f64 {
        let mut survival = 1.0;
        let tokens: f64 = (0..length)
            .map(|depth| {
                survival *= (self.acceptance)(depth);
                survival
            })
            .sum();
        (1.0 + tokens) / ((self.verify)(length + 1) + length as f64 * self.token_ms)
    }

    fn best(&self) -> f64 {
        (0..=MAX_DRAFT_LENGTH).map(|length| self.rate(length)).fold(0.0, f64::max)
    }

    /// Tokens per millisecond of the governor's plans over `tokens` tokens, and the number of
    /// rounds with a draft.
    fn run(&self, governor: &mut Governor, speculation: &Speculation, tokens: usize) -> (f64, usize) {
        self.run_with_eviction(governor, speculation, tokens, 1.0)
    }

    /// Tokens per millisecond of a new governor's plans over `tokens` tokens, over 8 texts.
    fn run_new(&self, new: &dyn Fn() -> Governor, tokens: usize) -> f64 {
        let rate = |seed| self.run_seeded(&mut new(), &chains(), tokens, 1.0, seed).0;
        8.0 / (0..8).map(|seed| 1.0 / rate(seed)).sum::<f64>()
    }

    /// Like [`Self::run`], with passes that take `eviction_cost` times as long after a draft.
    fn run_with_eviction(
        &self,
        governor: &mut Governor,
        speculation: &Speculation,
        tokens: usize,
        eviction_cost: f64,
    ) -> (f64, usize) {
        self.run_seeded(governor, speculation, tokens, eviction_cost, 1)
    }

    fn run_seeded(
        &self,
        governor: &mut Governor,
        speculation: &Speculation,
        tokens: usize,
        eviction_cost: f64,
        seed: u64,
    ) -> (f64, usize) {
        let random = &mut StdRng::seed_from_u64(seed);
        let (mut written, mut ms, mut drafts) = (0, 0.0, 0);
        let mut behind = 0;
        while written < tokens {
            let plan = governor.plan(MODEL, speculation, room(100), behind);
            assert_eq!(governor.plan(MODEL, speculation, room(100), behind), plan, "asking changes nothing");
            governor.commit(&plan);
            let draft = self.draft(governor, &plan, random);
            let is_drafted = plan.length > 0;
            let prefill_ms = if is_drafted { behind as f64 * self.token_ms * PREFILL_COST } else { 0.0 };
            let times = Times {
                draft_ms: (draft.steps.len() as f64 * self.token_ms + prefill_ms) as f32,
                verify_ms: ((self.verify)(draft.guesses.len() + 1)
                    * if is_drafted { eviction_cost } else { 1.0 }) as f32,
                ..Times::default()
            };
            written += learn(governor, &plan, &draft, if is_drafted { behind } else { 0 }, times);
            drafts += usize::from(is_drafted);
            behind = if is_drafted { 0 } else { behind + 1 };
            ms += f64::from(times.draft_ms + times.verify_ms);
        }
        (written as f64 / ms, drafts)
    }

    /// Draft of a chain as `plan` says. The token at depth d is d + 1 where the guess is right, and
    /// 0 elsewhere.
    fn draft(&self, governor: &Governor, plan: &Plan, random: &mut StdRng) -> Draft {
        if plan.length == 0 {
            return Draft::default();
        }
        let chances = governor.chances(plan.drafter);
        let worth = plan.prices.as_ref().map(|prices| Worth { prices, chances, least_survival: 0.0 });
        let length = if worth.is_some() { MAX_DRAFT_LENGTH } else { plan.length };
        let request = DraftRequest { worth, ..DraftRequest::chain(length) };
        let context = Context::new(vec![0]);
        let mut search = Search::new(&request, &context, DrafterKind::Model, &[]);
        while let [place] = search.next_step()[..] {
            let depth = search.depth(place);
            let is_right = random.random::<f64>() < (self.acceptance)(depth);
            search.add(place, [guess(if is_right { depth as u32 + 1 } else { 0 })]);
        }
        search.finish()
    }
}

/// Lets the governor learn from a draft of a chain; returns the number of tokens written.
fn learn(governor: &mut Governor, plan: &Plan, draft: &Draft, behind: usize, times: Times) -> usize {
    let right = (1..).zip(draft.guesses.iter()).take_while(|(token, guess)| guess.token == *token);
    let accepted = right.count();
    let (mut round, _) = round(&Plan { length: draft.guesses.len(), ..plan.clone() }, accepted, times);
    for (drafted, guess) in round.drafted.iter_mut().zip(draft.guesses.iter()) {
        drafted.token = guess.token;
    }
    let extra = round.extra.as_mut().expect("a round has an extra token");
    extra.token = accepted as u32 + 1;
    let known = plan.length > 0 && plan.prices.is_some();
    let survivals = governor.survivals(plan.drafter, &draft.guesses, 1.0);
    round.expected = known.then(|| 1.0 + survivals.iter().sum::<f32>());
    round.row_price = known.then_some(0.0);
    let part = Part { drafter: plan.drafter, guesses: draft.guesses.len() };
    let parts = if plan.length > 0 { vec![part] } else { Vec::new() };
    let (steps, candidates) = (&draft.steps[..], &draft.candidates[..]);
    governor.learn(&round, &draft.guesses, &DraftWork { parts: &parts, behind, steps, candidates });
    accepted + 1
}

fn guess(token: u32) -> Guess {
    let (probability, confidence, drafter) = (0.5, 0.5, DrafterKind::Model);
    Guess { token, parent: None, drawn_from: None, probability, confidence, drafter }
}

fn no_eviction(draft: Costs) -> DraftCosts {
    DraftCosts { draft, eviction_cost: 1.0 }
}

fn round(plan: &Plan, accepted: usize, times: Times) -> (Round, Guesses) {
    let guess = |index: usize| Guess { parent: index.checked_sub(1), ..guess(0) };
    let drafted = |index: usize| Drafted {
        token: 0,
        text: String::new(),
        parent: index.checked_sub(1).map(|parent| parent as u32),
        draft_probability: 1.0,
        target_probability: None,
        acceptance: None,
        outcome: match index {
            _ if index < accepted => Outcome::Accepted,
            _ if index == accepted => Outcome::Rejected,
            _ => Outcome::Discarded,
        },
        drafter: DrafterKind::Model,
        survival: None,
    };
    let round = Round {
        index: 0,
        position: 0,
        drafted: (0..plan.length).map(drafted).collect(),
        extra: Some(Extra { token: 0, text: String::new(), kind: ExtraKind::Plain }),
        draft_length: plan.length as u32,
        reason: plan.reason,
        threshold: None,
        expected: None,
        row_price: None,
        staged: false,
        decision: None,
        experts: None,
        times,
        at_ms: 0.0,
        logprobs: Vec::new(),
    };
    (round, (0..plan.length).map(guess).collect())
}

/// Room of a reply for `tokens` drafted tokens and one more.
fn room(tokens: usize) -> Room {
    Room::new(tokens + 1)
}

/// All `guesses` as one part of a drafter.
fn by(drafter: usize, guesses: &Guesses) -> Parts {
    let part = Part { drafter, guesses: guesses.len() };
    Parts(if guesses.is_empty() { Vec::new() } else { vec![part] })
}

struct Parts(Vec<Part>);

impl Parts {
    fn work(&self) -> DraftWork<'_> {
        DraftWork { parts: &self.0, ..DraftWork::default() }
    }
}

fn chains() -> Speculation {
    Speculation { tree: Tree::Off, staged: Staged::Off, ..Speculation::default() }
}

/// E_0 of Leviathan et al. (2023): expected accepted tokens of a chain of N guesses that are each
/// accepted with probability P, P(1 - P^N) / (1 - P).
#[test]
fn expected_tokens_equal_the_closed_form_for_every_length() {
    let governor = Pair { verify: |rows| 10.0 + rows as f64, token_ms: 1.5, acceptance: |_| 0.5 }.governor();
    for chance in [0.05, 0.3, 0.5, 0.8, 0.99] {
        let prospects = governor.prospects(MODEL, &[chance; MAX_DRAFT_LENGTH], false);
        for (length, prospect) in prospects.iter().enumerate() {
            let accepted = chance * (1.0 - chance.powi(length as i32)) / (1.0 - chance);
            let tokens = prospect.tokens;
            assert!((tokens - 1.0 - accepted).abs() < 1e-12, "{tokens} tokens, {length} guesses at {chance}");
        }
        let (best, rate) = governor.expected_speed(MODEL, chance);
        assert!((rate - prospects[best].tokens / prospects[best].ms).abs() < 1e-12);
    }
}

#[test]
fn the_chosen_length_is_within_five_percent_of_the_best() {
    let verify: fn(usize) -> f64 = |rows| 10.0 * (1.0 + 0.03 * (rows - 1) as f64);
    let pairs = [
        Pair { verify, token_ms: 0.8, acceptance: |_| 0.8 },
        Pair { verify, token_ms: 0.8, acceptance: |_| 0.5 },
        Pair { verify, token_ms: 2.0, acceptance: |depth| 0.9 - 0.1 * depth.min(6) as f64 },
        Pair { verify, token_ms: 0.1, acceptance: |_| 0.95 },
        Pair { verify: |rows| 2.0 + 3.0 * rows as f64, token_ms: 0.2, acceptance: |_| 0.7 },
    ];
    for (number, pair) in pairs.iter().enumerate() {
        let mut governor = pair.governor();
        pair.run(&mut governor, &chains(), 500);
        let (rate, _) = pair.run(&mut governor, &chains(), 40_000);
        assert!(rate > 0.95 * pair.best(), "pair {number}: {rate} of {}", pair.best());
    }
}

#[test]
fn a_draft_that_is_never_right_costs_less_than_two_percent() {
    let pair = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 0.8, acceptance: |_| 0.0 };
    let (rate, drafts) = pair.run(&mut pair.governor(), &chains(), 2000);
    assert!(rate > 0.98 * pair.rate(0), "{rate} of {}", pair.rate(0));
    assert!(drafts > 3, "it was given a chance");
}

#[test]
fn no_draft_is_made_if_its_eviction_cost_exceeds_its_gain() {
    let pair = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 0.5, acceptance: |_| 0.18 };
    let mut governor = pair.governor();
    pair.run(&mut governor, &chains(), 500);
    assert!(governor.plan(MODEL, &chains(), room(100), 0).length > 0, "it pays where nothing is slower");
    let mut governor = pair.governor();
    pair.run_with_eviction(&mut governor, &chains(), 1000, 1.2);
    let (rate, drafts) = pair.run_with_eviction(&mut governor, &chains(), 2000, 1.2);
    assert!(rate > 0.98 * pair.rate(0) && drafts < 100, "{rate} of {}, {drafts} drafts", pair.rate(0));
    // The computer also becomes slower while everything is drafted.
    let good = Pair { acceptance: |_| 0.8, ..pair };
    let slower = Pair { verify: |rows| 2.0 * (10.0 + 0.3 * rows as f64), ..good };
    let mut governor = good.governor();
    good.run_with_eviction(&mut governor, &chains(), 1000, 1.2);
    slower.run_with_eviction(&mut governor, &chains(), 1000, 1.2);
    let plain = governor.plain_rate() / slower.rate(0);
    assert!((0.95..1.05).contains(&plain), "plain decoding is known: {plain}");
}

#[test]
fn a_draft_as_slow_as_the_target_is_never_tried() {
    let pair = Pair { verify: |rows| 10.0 + 0.1 * rows as f64, token_ms: 10.0, acceptance: |_| 1.0 };
    let mut governor = pair.governor();
    let (_, drafts) = pair.run(&mut governor, &chains(), 1000);
    assert_eq!(drafts, 0);
    assert_eq!(governor.plan(MODEL, &chains(), room(100), 0).reason, LengthReason::CannotPay);
}

#[test]
fn a_draft_that_gets_better_is_used_again() {
    let bad = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 0.3, acceptance: |_| 0.0 };
    let mut governor = bad.governor();
    bad.run(&mut governor, &chains(), 300);
    assert_eq!(governor.plan(MODEL, &chains(), room(100), 0).reason, LengthReason::WouldNotPay);
    let good = Pair { acceptance: |_| 0.9, ..bad };
    good.run(&mut governor, &chains(), 20_000);
    let (rate, _) = good.run(&mut governor, &chains(), 40_000);
    assert!(rate > 0.95 * good.best(), "{rate} of {}", good.best());
}

#[test]
fn plans_never_exceed_the_room() {
    let pair = Pair { verify: |_| 10.0, token_ms: 0.01, acceptance: |_| 0.99 };
    let governor = pair.governor();
    for tokens in 0..6 {
        for speculation in [Speculation::default(), chains(), Speculation::fixed(16)] {
            let plan = governor.plan(MODEL, &speculation, room(tokens), 0);
            assert!(plan.length <= tokens);
        }
    }
}

#[test]
fn the_chosen_length_is_the_maximum_of_its_speed_curve() {
    let pair = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 0.5, acceptance: |_| 0.8 };
    let mut governor = pair.governor();
    let plan = governor.plan(MODEL, &chains(), room(100), 0);
    let decision = governor.explain(&plan).expect("nothing was explained yet");
    assert_eq!(governor.explain(&plan).as_ref(), Some(&decision), "asking changes nothing");
    governor.commit_explanation(&plan);
    let highest = decision.tokens_per_second.iter().copied().fold(0.0, f32::max);
    assert_eq!(decision.tokens_per_second[plan.length], highest);
    assert_eq!((decision.before, decision.chosen as usize), (None, plan.length));
    assert!(governor.explain(&plan).is_none(), "it did not change");
    (1..DECISION_AGE).for_each(|_| governor.commit_explanation(&plan));
    let again = governor.explain(&plan).expect("it is old by now");
    assert_eq!(again.before, Some(again.chosen));
    let other = Plan { length: 0, ..plan.clone() };
    assert_eq!(governor.explain(&other).unwrap().before, Some(plan.length as u32));
}

#[test]
fn certain_guesses_are_verified_as_far_as_they_pay() {
    let pair = Pair { verify: |rows| 5.0 + 5.0 * rows as f64, token_ms: 0.0, acceptance: |_| 0.5 };
    let governor = pair.governor();
    let guess = |confidence| Guess {
        token: 0,
        parent: None,
        drawn_from: None,
        probability: confidence,
        confidence,
        drafter: DrafterKind::Ngram,
    };
    let guesses = [0.9, 0.9, 0.1, 0.9].map(guess);
    assert_eq!(governor.verifiable(NGRAM, &guesses, false).0, 2);
    assert_eq!(governor.verifiable(NGRAM, &guesses, true).0, 4);
    let (length, nothing) = governor.verifiable(NGRAM, &[guess(0.05)], false);
    assert_eq!((length, nothing.rate()), (0, governor.plain_rate()));
    assert_eq!(governor.likely(NGRAM, &guesses, 0.5), 2);
}

#[test]
fn a_computer_that_has_become_slower_is_noticed_within_a_few_rounds() {
    let then = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 2.0, acceptance: |_| 0.7 };
    let mut governor = then.governor();
    then.run(&mut governor, &chains(), 1000);
    // Drafting has become too expensive to pay.
    let now = Pair { token_ms: 14.0, ..then };
    let mut restored = Governor::restored(&governor.saved_stats(), &ROSTER).unwrap();
    assert!(restored.plan(MODEL, &chains(), room(100), 0).length > 0);
    now.run(&mut restored, &chains(), 30);
    let (rate, _) = now.run(&mut restored, &chains(), 300);
    assert!(rate > 0.95 * now.best(), "{rate} of {}", now.best());
}

#[test]
fn saved_costs_of_another_computer_are_replaced_within_a_hundred_tokens() {
    let here = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 2.0, acceptance: |_| 0.7 };
    let mut governor = Governor::restored(&here.governor().saved_stats(), &ROSTER).unwrap();
    let there = Pair { verify: |rows| 4.0 + 6.0 * rows as f64, token_ms: 9.0, ..here };
    there.run(&mut governor, &chains(), 100);
    let (rate, _) = there.run(&mut governor, &chains(), 1000);
    assert!(rate > 0.95 * there.best(), "{rate} of {}", there.best());
}

/// Governor of a pair that was never measured, after three plain rounds.
fn new_pair(pair: &Pair, ratios: &RowRatios, share: f64) -> Governor {
    let draft = AssumedDraft { share, at_once: false, prompt_ms: None };
    let drafters = vec![(DrafterKind::Model, Some(draft)), (DrafterKind::Ngram, None)];
    let mut governor = Governor::assumed(Some((pair.verify)(1)), ratios, drafters);
    governor.begin_reply(TextKind::default());
    governor
}

#[test]
fn a_new_pair_is_soon_as_fast_as_a_measured_one_whatever_was_assumed() {
    let pairs = [
        Pair { verify: |rows| 15.0 + rows as f64, token_ms: 1.0, acceptance: |_| 0.7 },
        Pair { verify: |rows| 10.0 + 6.0 * rows as f64, token_ms: 1.0, acceptance: |_| 0.8 },
        Pair { verify: |rows| 15.0 + 0.1 * rows as f64, token_ms: 8.0, acceptance: |_| 0.6 },
        Pair { verify: |rows| 15.0 + 0.1 * rows as f64, token_ms: 14.0, acceptance: |_| 0.5 },
        Pair { verify: |rows| 15.0 + rows as f64, token_ms: 0.5, acceptance: |_| 0.05 },
    ];
    let gpu = RowRatios::shipped(&CostClass { on_gpu: true, ..CostClass::default() });
    for pair in &pairs {
        for (ratios, share) in
            [(&gpu, 0.03), (&gpu, 0.4), (&RowRatios::default(), 0.03), (&RowRatios::default(), 0.4)]
        {
            let known = || {
                let mut known = pair.governor();
                known.begin_reply(TextKind::default());
                known
            };
            for (tokens, least) in [(100, 0.9), (1000, 0.93)] {
                let new = pair.run_new(&|| new_pair(pair, ratios, share), tokens);
                let known = pair.run_new(&known, tokens);
                let plain = pair.rate(0);
                assert!(new > least * known, "{tokens} tokens: {new} of {known}, share {share}");
                assert!(new > 0.95 * plain, "{tokens} tokens: {new}, plain {plain}, share {share}");
            }
        }
    }
}

#[test]
fn interrupted_first_passes_do_not_end_drafting() {
    let pair = Pair { verify: |rows| 15.0 + rows as f64, token_ms: 1.0, acceptance: |_| 0.7 };
    let ratios = RowRatios::shipped(&CostClass { instructions: "AVX2".to_owned(), ..CostClass::default() });
    let mut governor = new_pair(&pair, &ratios, 0.03);
    for rows in [2, 4] {
        governor.verify.learn(rows, 50.0 * (pair.verify)(rows));
    }
    assert_ne!(governor.plan(MODEL, &chains(), room(1000), 0).reason, LengthReason::CannotPay);
    let (rate, _) = pair.run(&mut governor, &chains(), 2000);
    let known = pair.run_new(&|| pair.governor(), 2000);
    assert!(rate > 0.85 * known, "{rate} of {known}, plain {}", pair.rate(0));
}

#[test]
fn a_long_prefill_is_done_once_the_text_is_long_enough_to_pay_for_it() {
    let pair = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 2.0, acceptance: |_| 0.8 };
    let mut governor = pair.governor();
    assert!(governor.plan(MODEL, &chains(), room(1000), 10).length > 0);
    assert_eq!(governor.plan(MODEL, &chains(), room(1000), 2000).reason, LengthReason::WouldNotPay);
    let plain = Plan::chain(MODEL, 0, LengthReason::WouldNotPay, Prospect { tokens: 1.0, ms: 10.3 });
    let times = Times { verify_ms: 10.3, ..Times::default() };
    let (round, guesses) = round(&plain, 0, times);
    (0..400).for_each(|_| governor.learn(&round, &guesses, &DraftWork::default()));
    assert!(governor.plan(MODEL, &chains(), room(1000), 2000).length > 0, "a text of 400 tokens goes on");
    assert_eq!(governor.plan(MODEL, &chains(), room(20), 2000).length, 0, "but not where there is no room");
}

#[test]
fn a_long_draft_with_little_gain_gives_way_to_short_rounds_that_gain_more() {
    let pair = Pair { verify: |rows| 40.0 + 8.0 * rows as f64, token_ms: 18.0, acceptance: |_| 0.85 };
    let mut governor = pair.governor();
    (0..200).for_each(|case| governor.texts[0].records[0].acceptance.learn(case % 3, case % 20 < 17));
    assert!(governor.plan(MODEL, &chains(), room(100), 0).length > 0, "it is faster than plain decoding");
    // One round in four repeats five tokens.
    let round = |length: usize, governor: &mut Governor| {
        let plan = Plan::chain(MODEL, length, LengthReason::Governed, Prospect { tokens: 1.0, ms: 1.0 });
        let times = Times { verify_ms: (pair.verify)(length + 1) as f32, ..Times::default() };
        let (round, guesses) = round(&plan, length, times);
        governor.learn(&round, &guesses, &by(NGRAM, &guesses).work());
    };
    for at in 0..80 {
        round(if at % 4 == 0 { 5 } else { 0 }, &mut governor);
    }
    let plan = governor.plan(MODEL, &chains(), room(100), 0);
    assert!(plan.length == 0 || plan.is_trial(), "what repeats is worth waiting for");
}

#[test]
fn a_draft_is_not_prefilled_where_other_drafters_write_most_tokens() {
    let pair = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 2.0, acceptance: |_| 0.7 };
    let mut governor = pair.governor();
    assert!(governor.plan(MODEL, &chains(), room(1000), 100).length > 0);
    let repeats = Plan::chain(MODEL, 6, LengthReason::Governed, Prospect { tokens: 7.0, ms: 12.1 });
    let (round, guesses) = round(&repeats, 6, Times { verify_ms: 12.1, ..Times::default() });
    (0..20).for_each(|_| governor.learn(&round, &guesses, &by(NGRAM, &guesses).work()));
    assert_eq!(governor.plan(MODEL, &chains(), room(1000), 100).length, 0);
    assert!(
        governor.plan(MODEL, &chains(), room(1000), 3).length > 0,
        "one that has read is used where they have nothing"
    );
}

#[test]
fn certain_guesses_extend_a_chain_as_far_as_verifying_pays() {
    let guess = |drafter, confidence| Guess {
        token: 0,
        parent: None,
        drawn_from: None,
        probability: confidence,
        confidence,
        drafter,
    };
    let chain = [0.9, 0.9].map(|confidence| guess(DrafterKind::Model, confidence));
    let more = [0.9, 0.8, 0.3, 0.9].map(|confidence| guess(DrafterKind::Ngram, confidence));
    let cheap = Pair { verify: |rows| 10.0 + 0.3 * rows as f64, token_ms: 2.0, acceptance: |_| 0.5 };
    assert_eq!(cheap.governor().further(MODEL, &chain, NGRAM, &more).0, 4);
    let dear = Pair { verify: |rows| 1.0 + 9.0 * rows as f64, ..cheap };
    assert_eq!(dear.governor().further(MODEL, &chain, NGRAM, &more), (0, 0.0));
    let unsure = [0.2, 0.1].map(|confidence| guess(DrafterKind::Model, confidence));
    assert_eq!(
        cheap.governor().further(MODEL, &unsure, NGRAM, &more).0,
        0,
        "what follows it does not come either"
    );
}

/// Tokens per millisecond over `tokens` tokens with two drafters, and the number of drafts of each.
fn run_two(governor: &mut Governor, pairs: &[Pair; 2], tokens: usize) -> (f64, [usize; 2]) {
    let random = &mut StdRng::seed_from_u64(2);
    let (mut written, mut ms, mut drafts) = (0, 0.0, [0; 2]);
    while written < tokens {
        let mut plans = [0, 1].map(|drafter| governor.plan(drafter, &chains(), room(100), 0));
        let picked = governor.pick(&mut plans).expect("there are plans");
        plans.iter().for_each(|plan| governor.commit(plan));
        let (plan, pair) = (&plans[picked], &pairs[picked]);
        let draft = pair.draft(governor, plan, random);
        let times = Times {
            draft_ms: (draft.steps.len() as f64 * pair.token_ms) as f32,
            verify_ms: (pair.verify)(draft.guesses.len() + 1) as f32,
            ..Times::default()
        };
        drafts[picked] += usize::from(plan.length > 0);
        written += learn(governor, plan, &draft, 0, times);
        ms += f64::from(times.draft_ms + times.verify_ms);
    }
    (written as f64 / ms, drafts)
}

#[test]
fn the_better_of_two_drafters_drafts_even_after_a_change() {
    let verify: fn(usize) -> f64 = |rows| 10.0 + 0.3 * rows as f64;
    let good = || Pair { verify, token_ms: 0.8, acceptance: |_| 0.85 };
    let poor = || Pair { verify, token_ms: 0.8, acceptance: |_| 0.4 };
    let costs = || Some(no_eviction(Costs::measured(&[1, 2].map(|length| (length, 0.8 * length as f64)))));
    let points = [1, 9, 17].map(|rows| (rows, verify(rows)));
    let drafters = vec![(DrafterKind::Model, costs()), (DrafterKind::Model, costs())];
    let mut governor = Governor::new(Costs::measured(&points), drafters);
    run_two(&mut governor, &[poor(), good()], 500);
    let (rate, drafts) = run_two(&mut governor, &[poor(), good()], 5000);
    assert!(rate > 0.95 * good().best(), "{rate} of {}", good().best());
    assert!(drafts[0] > 3 && drafts[0] * 10 < drafts[1], "the other is tried now and then: {drafts:?}");
    run_two(&mut governor, &[good(), poor()], 20_000);
    let (rate, drafts) = run_two(&mut governor, &[good(), poor()], 5000);
    assert!(rate > 0.95 * good().best(), "{rate} of {}, {drafts:?}", good().best());
}

/// Plans chains for a drafter of blocks of eight in `draft_ms` of the requested length; returns the
/// length mostly requested in the end.
fn governed_length(draft_ms: fn(usize) -> f64) -> usize {
    let draft = Costs::measured(&[1, 4, 8].map(|length| (length, draft_ms(length))));
    let mut governor = Governor::new(
        Costs::measured(&[(1, 20.0), (9, 20.0)]),
        vec![(DrafterKind::Head, Some(no_eviction(draft)))],
    );
    governor.set_block_length(0, 8);
    let random = &mut StdRng::seed_from_u64(1);
    let mut requested = [0u16; MAX_ROWS];
    for turn in 0..600 {
        let plan = governor.plan(0, &chains(), room(1000), 0);
        governor.commit(&plan);
        let length = plan.length;
        let accepted = (0..length).take_while(|_| random.random::<f64>() < 0.85).count();
        let draft_ms = if length > 0 { draft_ms(length) } else { 0.0 };
        let times = Times { draft_ms: draft_ms as f32, verify_ms: 20.0, ..Times::default() };
        let (round, guesses) = round(&plan, accepted, times);
        governor.learn(&round, &guesses, &by(0, &guesses).work());
        requested[length] += u16::from(turn >= 300);
    }
    highest(&requested.map(f64::from))
}

#[test]
fn only_a_block_of_constant_cost_is_drafted_at_full_length() {
    assert_eq!(governed_length(|_| 5.0), 8);
    let by_token = governed_length(|length| 5.0 * length as f64);
    assert!((3..=5).contains(&by_token), "{by_token}");
}

#[test]
fn a_one_pass_draft_that_ends_early_costs_the_requested_length() {
    let draft = Costs::measured(&[(1, 4.0), (8, 4.0)]);
    let mut governor = Governor::new(
        Costs::measured(&[(1, 20.0), (9, 20.0)]),
        vec![(DrafterKind::Head, Some(no_eviction(draft)))],
    );
    governor.set_block_length(0, 8);
    let fixed = Speculation::fixed(16);
    for _ in 0..100 {
        let plan = governor.plan(0, &fixed, room(1000), 0);
        assert_eq!(plan.length, 8, "no more than a block");
        governor.commit(&plan);
        let times = Times { draft_ms: 12.0, verify_ms: 20.0, ..Times::default() };
        let (round, guesses) = round(&Plan { length: 2, ..plan }, 2, times);
        governor.learn(&round, &guesses, &by(0, &guesses).work());
    }
    let [eight, two] = [8, 2].map(|length| governor.drafters[0].draft[0].get(length));
    assert!((eight - 12.0).abs() < 0.5 && two < eight, "{eight} ms for eight, {two} for two");
}
