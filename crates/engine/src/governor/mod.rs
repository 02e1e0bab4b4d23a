//! The governor: how far ahead to draft, and in what shape, so that most tokens per second come of it. No
//! draft at all is one of the choices. It reckons with what passes and drafts cost on this device and with
//! how often drafted tokens were accepted; it draws nothing and asks nobody.

mod acceptance;
mod costs;
mod knowledge;
mod learning;
mod probe;
mod shape;
#[cfg(test)]
mod tests;
mod text;

use crate::accept::Guess;
use crate::speculation::{DraftLength, LONGEST_DRAFT, Speculation, Staged, Threshold, Tree, WIDEST_TREE};
use crate::trace::{Decision, DrafterKind, LengthReason};

pub use acceptance::{Acceptance, Calibration};
pub use costs::{Costs, Estimate, MOST_ROWS};
pub use knowledge::Knowledge;
pub use probe::{PlainRuns, Probes};
pub use shape::{Plans, Shape};
pub use text::TextKind;
use text::{Lessons, Record};

/// A change must promise this much to be made.
const HYSTERESIS: f64 = 1.03;

/// What the draft model has to read first must have paid after so many tokens, and as many as were written
/// already: a text that has gone on for long will go on.
const HORIZON: usize = 64;
/// So many tokens to read are more than what a few rounds of others' drafts leave behind.
const FAR_BEHIND: usize = 32;
/// What reading a token costs the draft, which reads many at once, against drafting one, until it is known.
const READING: f64 = 0.25;

/// Rounds after which the trace is told of the same choice again: the curve behind it has moved.
const DECISION_AGE: usize = 64;
/// A draft in this many is made the other way, staged or not, to see which is faster.
const STAGED_TRIAL: usize = 24;

/// What the draft model shall do in a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Most tokens on a path; 0 for no draft.
    pub length: usize,
    pub shape: Option<Shape>,
    pub least: Option<Least>,
    pub staged: bool,
    pub reason: LengthReason,
    /// Tokens per millisecond that are expected.
    pub rate: f64,
}

/// The least chance that all of a draft is accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Least {
    pub chance: f64,
    /// So many tokens are drafted in any case.
    pub spared: usize,
    /// The chance below which no further token is drafted, though those that were are verified.
    pub further: f64,
}

impl Plan {
    fn chain(length: usize, reason: LengthReason, rate: f64) -> Self {
        Self { length, shape: None, least: None, staged: false, reason, rate }
    }
}

/// Rounds after which the best tree is looked for again.
const TREE_AGE: usize = 16;

/// The best tree, as far as is known.
#[derive(Debug, Clone, Default)]
struct KnownTree {
    /// Its width, depth and size at most.
    asked: (usize, usize, usize),
    age: usize,
    best: Option<Prospect>,
}

/// A tree and how many accepted tokens to expect of it.
#[derive(Debug, Clone)]
struct Prospect {
    shape: Shape,
    accepted: f64,
}

/// A length the trace was told of, and how many rounds ago.
#[derive(Debug, Clone, Copy)]
struct Told {
    length: usize,
    age: usize,
}

/// What was learned about a target and who drafts for it.
#[derive(Debug, Clone)]
pub struct Governor {
    /// Of the target's passes, by rows.
    verify: Costs,
    /// Of a round beside drafting and verifying, by rows: each is made a distribution and judged.
    judge: Costs,
    /// What drafts of the model cost by length, by itself and staged.
    draft: [Costs; 2],
    /// What a tree's draft takes against what its levels would as tokens of a chain.
    level: Estimate,
    /// Milliseconds in which the draft reads a token of the context.
    reading: f64,
    tree: KnownTree,
    /// What was learned from texts, by their kind, and the kind of the present one.
    texts: [Lessons; TextKind::COUNT],
    kind: TextKind,
    /// Tokens of the present text.
    written: usize,
    /// The length chosen last.
    length: usize,
    probes: Probes,
    plain: PlainRuns,
    drafts: usize,
    /// What the trace was told last.
    told: Option<Told>,
}

impl Governor {
    /// From what passes of the target cost, and drafts of the draft model.
    pub fn new(verify: Costs, draft: Costs) -> Self {
        let reading = draft.get(1) * READING;
        Self {
            verify,
            judge: Costs::measured(&[(1, 0.01), (2, 0.02)]),
            draft: [draft.clone(), draft],
            level: Estimate::new(1.0),
            reading,
            tree: KnownTree::default(),
            texts: Default::default(),
            kind: TextKind::default(),
            written: 0,
            length: 0,
            probes: Probes::default(),
            plain: PlainRuns::default(),
            drafts: 0,
            told: None,
        }
    }

    pub fn calibration(&self, kind: DrafterKind) -> &Calibration {
        &self.record(kind).calibration
    }

    /// That a guess of a chain is accepted when all before it are.
    fn chance(&self, depth: usize, guess: &Guess) -> f64 {
        self.calibration(guess.drafter).chance(depth, guess.confidence)
    }

    fn record(&self, kind: DrafterKind) -> &Record {
        &self.texts[self.kind.index()].records[kind as usize]
    }

    /// A reply of this kind begins: its trace has been told nothing. Of a kind that is new, what the last one
    /// taught is the best guess.
    pub fn begin_reply(&mut self, kind: TextKind) {
        (self.told, self.written) = (None, 0);
        if self.texts[kind.index()].is_empty() {
            let mut lessons = self.texts[self.kind.index()].clone();
            lessons.fade();
            self.texts[kind.index()] = lessons;
        }
        self.kind = kind;
        self.texts[kind.index()].begin_text();
    }

    /// Tokens per millisecond of plain decoding.
    pub fn plain_rate(&self) -> f64 {
        1.0 / self.time(0, 0.0)
    }

    /// T_s: milliseconds of a token in a long draft.
    fn token_ms(&self, staged: bool) -> f64 {
        self.draft[usize::from(staged)].get(LONGEST_DRAFT) / LONGEST_DRAFT as f64
    }

    /// Of a round with a chain of `length` tokens of the draft model.
    fn chain_time(&self, length: usize, staged: bool) -> f64 {
        let draft_ms = if length > 0 { self.draft[usize::from(staged)].get(length) } else { 0.0 };
        self.time(length, draft_ms)
    }

    /// Of a round that verifies `drafted` tokens, drafted in `draft_ms`.
    fn time(&self, drafted: usize, draft_ms: f64) -> f64 {
        draft_ms + self.verify.get(drafted + 1) + self.judge.get(drafted + 1)
    }

    /// Tokens per millisecond by draft length, 0 to [`LONGEST_DRAFT`]:
    /// (1 + sum over j <= N of S_j) / (time to draft N + T_v(N + 1) + time to judge), S_j the product of a_1 to a_j.
    fn rates(&self, acceptance: &[f64; LONGEST_DRAFT], staged: bool) -> [f64; MOST_ROWS] {
        let (mut reach, mut tokens) = (1.0, 1.0);
        std::array::from_fn(|length| {
            if length > 0 {
                reach *= acceptance[length - 1];
                tokens += reach;
            }
            tokens / self.chain_time(length, staged)
        })
    }

    /// The draft length that promises most where every drafted token has the chance `acceptance`, and the
    /// tokens per millisecond to expect of it.
    pub fn promise(&self, acceptance: f64) -> (usize, f64) {
        let rates = self.rates(&[acceptance; LONGEST_DRAFT], false);
        let best = highest(&rates);
        (best, rates[best])
    }

    /// How many of a chain of certain guesses to verify, and the tokens per millisecond to expect of it. With
    /// `whole` all of them.
    pub fn worth(&self, guesses: &[Guess], whole: bool) -> (usize, f64) {
        let plain = self.plain_rate();
        let mut best = (0, plain);
        for (length, tokens) in (1..).zip(self.tokens(guesses, 1.0)) {
            let rate = (1.0 + tokens) / self.time(length, 0.0);
            if rate > best.1.max(plain * HYSTERESIS) || whole {
                best = (length, rate);
            }
        }
        best
    }

    /// How many of a chain of certain guesses to verify beside the chain `drafted` that they follow, and how
    /// many tokens more to expect of the time that takes than of other rounds.
    pub fn further(&self, drafted: &[Guess], guesses: &[Guess]) -> (usize, f64) {
        let chances = drafted.iter().enumerate();
        let chances = chances.map(|(depth, guess)| self.chance(depth, guess));
        let reach = chances.product();
        let before = 1.0 + self.tokens(drafted, 1.0).last().unwrap_or(0.0);
        let rate = before / self.chain_time(drafted.len(), false);
        let mut best = (0, 0.0);
        for (length, tokens) in (1..).zip(self.tokens(guesses, reach)) {
            let rows = drafted.len() + length;
            let gain = tokens - rate * (self.time(rows, 0.0) - self.time(drafted.len(), 0.0));
            if gain > best.1 {
                best = (length, gain);
            }
        }
        best
    }

    /// The accepted tokens to expect of the first, the first two and so on of a chain of certain guesses, where
    /// what they follow comes with the chance `reach`.
    fn tokens(&self, guesses: &[Guess], mut reach: f64) -> impl Iterator<Item = f64> {
        let mut tokens = 0.0;
        guesses.iter().enumerate().map(move |(depth, guess)| {
            reach *= self.chance(depth, guess);
            tokens += reach;
            tokens
        })
    }

    /// How many of a chain of certain guesses all have at least the chance `least` to be accepted.
    pub fn likely(&self, guesses: &[Guess], least: f64) -> usize {
        let mut reach = 1.0;
        let likely = |&(depth, guess): &(usize, &Guess)| {
            reach *= self.chance(depth, guess);
            reach >= least
        };
        guesses.iter().enumerate().take_while(likely).count()
    }

    /// The best tree that a drafter's guesses can grow to, as far as is known.
    pub fn tree(&self, kind: DrafterKind, width: usize, depth: usize, nodes: usize) -> Shape {
        let ranks = self.record(kind).acceptance.by_depth_and_rank(depth);
        let nodes = nodes.min(LONGEST_DRAFT);
        Plans::new(&ranks, width.min(WIDEST_TREE), nodes).shape(nodes)
    }

    /// What the draft model shall do in the next round, where `room` tokens may be drafted and it has to
    /// read `behind` tokens first.
    pub fn plan(&mut self, speculation: &Speculation, room: usize, behind: usize) -> Plan {
        let staged = self.staged(speculation.staged);
        let acceptance = self.record(DrafterKind::Model).acceptance.by_depth();
        let rates = self.rates(&acceptance, staged);
        let mut plan = match speculation.length {
            DraftLength::Fixed(length) => self.fixed(length as usize, room, &rates),
            DraftLength::Auto => self.choose(room, behind, &rates, staged),
        };
        plan.staged = staged;
        if plan.length > 0 {
            self.spread(&mut plan, speculation, room);
            self.bound(&mut plan, speculation, room);
        }
        plan
    }

    fn fixed(&mut self, length: usize, room: usize, rates: &[f64]) -> Plan {
        let reason = if length > room { LengthReason::NoRoom } else { LengthReason::Fixed };
        let length = length.min(room);
        self.length = length;
        Plan::chain(length, reason, rates[length])
    }

    fn choose(&mut self, room: usize, behind: usize, rates: &[f64; MOST_ROWS], staged: bool) -> Plan {
        let longest = room.min(LONGEST_DRAFT);
        let best = highest(&rates[..=longest]);
        let kept = self.length.min(longest);
        // Not drafting wins at once: what it would cost to go on is known, what it might bring is not.
        let stays = best > 0 && rates[kept] >= rates[0] && rates[best] < rates[kept] * HYSTERESIS;
        let mut length = if stays { kept } else { best };
        let reading = self.reading_ms(behind);
        if 1.0 / rates[length] + reading / self.horizon(room) >= self.otherwise(behind) {
            length = 0;
        }
        self.length = length;
        let plan = |length: usize, reason| Plan::chain(length, reason, rates[length]);
        if length > 0 && self.plain.due(rates[length] / rates[0]) {
            return plan(0, LengthReason::Probe);
        }
        if length > 0 {
            return plan(length, LengthReason::Governed);
        }
        let perfect = self.rates(&[1.0; LONGEST_DRAFT], staged);
        if !perfect[1..].iter().any(|&rate| rate > perfect[0] * HYSTERESIS) {
            return plan(0, LengthReason::CannotPay);
        }
        let loss = self.chain_time(Probes::LENGTH, staged) - self.time(0, 0.0);
        if longest >= Probes::LENGTH && self.probes.due(loss + reading) {
            return plan(Probes::LENGTH, LengthReason::Probe);
        }
        plan(0, LengthReason::WouldNotPay)
    }

    /// Tokens over which reading has to pay, where at most `room` will be written.
    fn horizon(&self, room: usize) -> f64 {
        (HORIZON + self.written).min(room + 1) as f64
    }

    /// Milliseconds a token without the draft model: plain, and where it is far behind, which others have seen
    /// to, as they do.
    fn otherwise(&self, behind: usize) -> f64 {
        let plain = self.time(0, 0.0);
        let alone = self.texts[self.kind.index()].alone.tokens();
        if behind < FAR_BEHIND { plain } else { plain / alone.max(1.0) }
    }

    /// Makes a tree of the plan where that is asked for. What the best tree is changes slowly, and finding it
    /// takes as long as a small draft.
    fn spread(&mut self, plan: &mut Plan, speculation: &Speculation, room: usize) {
        let (width, must) = match speculation.tree {
            Tree::Off | Tree::Width(..=1) => return,
            Tree::Auto => (WIDEST_TREE, false),
            Tree::Width(width) => ((width as usize).min(WIDEST_TREE), true),
        };
        if plan.reason == LengthReason::Probe {
            return;
        }
        // A tree is as deep as the chain it stands for, where that length is fixed.
        let auto = speculation.length == DraftLength::Auto;
        let depth = if auto { room.min(LONGEST_DRAFT) } else { plan.length };
        let asked = (width, depth, room.min(LONGEST_DRAFT));
        if self.tree.asked != asked || self.tree.age >= TREE_AGE {
            let best = self.best_tree(asked, auto, plan.staged);
            self.tree = KnownTree { asked, age: 0, best };
        }
        self.tree.age += 1;
        let Some(tree) = &self.tree.best else { return };
        let rate = self.tree_rate(tree, plan.staged);
        if must || rate > plan.rate * HYSTERESIS {
            (plan.rate, plan.shape) = (rate, Some(tree.shape.clone()));
        }
    }

    /// The tree of most tokens per millisecond, up to so wide, so deep and so large; unless `any` size will
    /// do, of the largest.
    fn best_tree(
        &self,
        (width, depth, most): (usize, usize, usize),
        any: bool,
        staged: bool,
    ) -> Option<Prospect> {
        let ranks = self.record(DrafterKind::Model).acceptance.by_depth_and_rank(depth);
        let plans = Plans::new(&ranks, width, most);
        let least = if any { 2 } else { most };
        let trees = (least..=most)
            .map(|nodes| Prospect { shape: plans.shape(nodes), accepted: plans.expected(nodes) })
            .map(|tree| (self.tree_rate(&tree, staged), tree));
        trees.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, tree)| tree)
    }

    /// Tokens per millisecond of a tree.
    fn tree_rate(&self, Prospect { shape, accepted }: &Prospect, staged: bool) -> f64 {
        let levels: f64 = shape.inner_widths().iter().map(|&rows| self.level_ms(rows, staged)).sum();
        let draft_ms = self.draft[usize::from(staged)].get(1) + levels * self.level.get();
        (1.0 + accepted) / self.time(shape.len(), draft_ms)
    }

    /// Of a pass of the draft over several rows, which is taken to cost more by as much as the target's.
    fn level_ms(&self, rows: usize, staged: bool) -> f64 {
        self.token_ms(staged) * self.verify.get(rows) / self.verify.get(1)
    }

    /// Lets a chain end where it gets unlikely, and be longer where it does not.
    fn bound(&self, plan: &mut Plan, speculation: &Speculation, room: usize) {
        if plan.shape.is_some() || plan.reason == LengthReason::Probe {
            return;
        }
        let least = match speculation.threshold {
            Threshold::Off => return,
            Threshold::Fixed(least) => Least { chance: f64::from(least), spared: 0, further: 0.0 },
            // To verify a token takes dT_v, in which `rate` would bring as many others; to draft one first, T_s
            // more. What was drafted is there already, so it is only left out where verifying does not pay.
            Threshold::Auto => {
                let step = (self.verify.get(MOST_ROWS) - self.verify.get(2)) / (MOST_ROWS - 2) as f64;
                let (verify_ms, draft_ms) = (step.max(0.0), self.token_ms(plan.staged));
                let usual = self.record(DrafterKind::Model).acceptance.by_depth()[0].max(0.1);
                let further = (plan.rate * (draft_ms + verify_ms) / usual).min(1.0);
                Least { chance: (plan.rate * verify_ms).min(1.0), spared: 1, further }
            }
        };
        plan.least = Some(least);
        if speculation.length == DraftLength::Auto {
            plan.length = LONGEST_DRAFT.min(room);
        }
    }

    fn staged(&mut self, wanted: Staged) -> bool {
        self.drafts += 1;
        match wanted {
            Staged::Off => false,
            Staged::On => true,
            Staged::Auto => {
                let faster = self.token_ms(true) < self.token_ms(false);
                faster != self.drafts.is_multiple_of(STAGED_TRIAL)
            }
        }
    }

    /// The curve behind the choice of `chosen` tokens, if the trace has not been told of late.
    pub fn explain(&mut self, chosen: usize, staged: bool) -> Option<Decision> {
        if let Some(told) = self.told.as_mut().filter(|told| told.length == chosen) {
            told.age += 1;
            if told.age < DECISION_AGE {
                return None;
            }
        }
        let acceptance = self.record(DrafterKind::Model).acceptance.by_depth();
        let rates = self.rates(&acceptance, staged);
        let draft = &self.draft[usize::from(staged)];
        let before = self.told.replace(Told { length: chosen, age: 0 });
        Some(Decision {
            before: before.map(|told| told.length as u32),
            chosen: chosen as u32,
            drafting_ms: (1..=LONGEST_DRAFT).map(|length| draft.get(length) as f32).collect(),
            verify_ms: (1..=MOST_ROWS).map(|rows| self.verify.get(rows) as f32).collect(),
            acceptance: acceptance.iter().map(|&chance| chance as f32).collect(),
            tokens_per_second: rates.iter().map(|&rate| (rate * 1e3) as f32).collect(),
        })
    }
}

/// Where the largest of `rates` is.
fn highest(rates: &[f64]) -> usize {
    (0..rates.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).unwrap_or(0)
}
