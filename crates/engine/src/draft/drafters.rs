//! Everybody who drafts for a target, and whose draft is taken in a round: that of the governor's best
//! promise. A drafter that fails is not asked again in the reply.

use std::ops::ControlFlow;
use std::time::Instant;

use super::{Bound, Draft, Drafter, Order};
use crate::accept::{Guess, is_chain};
use crate::error::Result;
use crate::forward::{Model, Row};
use crate::governor::{Costs, Governor, Knowledge, Plan, TextKind};
use crate::sampler::Sampler;
use crate::speculation::{DraftLength, LONGEST_DRAFT, Speculation, Threshold, Tree};
use crate::trace::{Decision, DrafterKind, LengthReason, Round, TokenId};

/// Tokens of the context that a draft is measured on reading, and of those after which it is on drafting.
const SAMPLE: usize = 64;
const FEW: usize = 16;

/// Tokens that take a draft model longer to read than a person should wait for the first one.
const MUCH: usize = 64;

struct Member {
    drafter: Box<dyn Drafter>,
    failed: bool,
}

/// Nobody, one or several drafters, and what was learned about them.
#[derive(Default)]
pub struct Drafters {
    members: Vec<Member>,
    /// From when they were first measured with their target.
    governor: Option<Governor>,
    /// Of this round what was guessed at no cost, taken or not.
    guessed: Vec<Vec<Guess>>,
    /// Tokens that the draft model had to read before it drafted in this round.
    behind: usize,
    /// Of the present reply.
    kind: TextKind,
}

/// A draft and how it came to be what it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drafting {
    pub guesses: Vec<Guess>,
    /// Most tokens on a path that were asked for.
    pub length: usize,
    pub reason: LengthReason,
    pub threshold: Option<f32>,
    pub staged: bool,
    pub decision: Option<Decision>,
}

impl Drafters {
    pub fn new(drafters: Vec<Box<dyn Drafter>>) -> Self {
        let member = |drafter| Member { drafter, failed: false };
        Self { members: drafters.into_iter().map(member).collect(), ..Self::default() }
    }

    /// One drafter alone.
    pub fn one(drafter: impl Drafter + 'static) -> Self {
        Self::new(vec![Box::new(drafter)])
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether anybody of this kind is here.
    pub fn has(&self, kind: DrafterKind) -> bool {
        self.members.iter().any(|member| member.drafter.kind() == kind)
    }

    /// Whether one of this kind failed in the last reply.
    pub fn has_failed(&self, kind: DrafterKind) -> bool {
        self.members.iter().any(|member| member.failed && member.drafter.kind() == kind)
    }

    /// The first of them.
    pub fn first(&mut self) -> Option<&mut (dyn Drafter + 'static)> {
        self.members.first_mut().map(|member| member.drafter.as_mut())
    }

    /// What was learned; `None` before the first measurement.
    pub fn governor(&self) -> Option<&Governor> {
        self.governor.as_ref()
    }

    /// Tokens of `context` that the drafters still have to read, of the one that has to read most.
    pub fn behind(&self, context: &[TokenId]) -> usize {
        self.members.iter().map(|member| member.drafter.behind(context)).max().unwrap_or(0)
    }

    /// Texts of other conversations that this one may repeat, in place of those before.
    pub fn remember(&mut self, texts: &[Vec<TokenId>]) {
        self.members.iter_mut().for_each(|member| member.drafter.remember(texts));
    }

    /// Lets them forget the texts they have learned from, but not what drafting costs and brings.
    pub fn forget(&mut self) {
        self.members.iter_mut().for_each(|member| member.drafter.forget());
    }

    /// What was learned, to be [recalled](Self::recall) another time; `None` before the first measurement.
    pub fn knowledge(&self) -> Option<Knowledge> {
        self.governor.as_ref().map(Governor::knowledge)
    }

    /// Goes on from what was learned before about the same target and the same drafters on the same device, in
    /// place of measuring; without it, and with what cannot have been learned, from nothing.
    pub fn recall(&mut self, knowledge: Option<&Knowledge>) {
        self.governor = knowledge.and_then(Governor::recalling);
    }

    /// Measures what the target's passes and the draft model's tokens cost, unless that is known. The target's
    /// cache stays what it is, the draft's may be emptied.
    ///
    /// # Errors
    /// When the target fails. A drafter that does is not asked in this reply.
    pub fn measure(&mut self, target: &mut dyn Model) -> Result<()> {
        if self.governor.is_none() {
            let mut governor = self.measured(target)?;
            governor.begin_reply(self.kind);
            self.governor = Some(governor);
        }
        Ok(())
    }

    /// The same, and where it is known by what was learned before, looks whether it is still so.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub fn check_costs(&mut self, target: &mut dyn Model) -> Result<()> {
        if let Some(mut governor) = self.governor.take() {
            if !governor.holds(&super::measure::glance(target)?) {
                tracing::info!("passes no longer cost what they did and are measured anew");
                governor.cost(self.measured(target)?);
            }
            self.governor = Some(governor);
        }
        self.measure(target)
    }

    fn measured(&mut self, target: &mut dyn Model) -> Result<Governor> {
        let verify = super::measure::verify(target)?;
        let model = self.members.iter_mut().find(|member| !member.drafter.is_cheap());
        // Of everything a little: what the two vocabularies share is in it.
        let size = target.config().vocabulary;
        let context: Vec<TokenId> = (0..SAMPLE).map(|part| (part * size / SAMPLE) as TokenId).collect();
        let measured = model.and_then(|member| {
            let reading = super::measure::reading(member.drafter.as_mut(), &context).ok()?;
            let draft = super::measure::draft(member.drafter.as_mut(), &context[..FEW]).ok()??;
            Some((reading, draft))
        });
        // One that cannot be measured is not taken for free.
        let slow = || Costs::measured(&[1, 2].map(|length| (length, length as f64 * verify.get(1))));
        let (reading, draft) = measured.map_or_else(|| (None, slow()), |(ms, draft)| (Some(ms), draft));
        let mut governor = Governor::new(verify, draft);
        reading.iter().for_each(|&ms| governor.learn_reading(SAMPLE, ms));
        Ok(governor)
    }

    /// A reply of this kind begins.
    pub(crate) fn begin_reply(&mut self, kind: TextKind) {
        self.members.iter_mut().for_each(|member| member.failed = false);
        self.guessed.clear();
        self.kind = kind;
        self.governor.iter_mut().for_each(|governor| governor.begin_reply(kind));
    }

    /// Whether the draft model shall draft, of a reply of up to `room` tokens, and has so much of `context` to
    /// read that the first token should not wait for it.
    pub(crate) fn late(&mut self, context: &[TokenId], speculation: &Speculation, room: usize) -> bool {
        let drafts = |member: &&Member| speculation.drafter.allows(member.drafter.kind());
        let model = self.members.iter().filter(drafts).find(|member| !member.drafter.is_cheap());
        let behind = model.map_or(0, |member| member.drafter.behind(context));
        let shall = |governor: &mut Governor| governor.plan(speculation, room, behind).length > 0;
        !speculation.is_off() && behind > MUCH && self.governor.as_mut().is_none_or(shall)
    }

    /// Lets those that will draft read `context`. The draft model is left alone as long as drafting does not
    /// pay within `room` tokens.
    pub(crate) fn prepare(
        &mut self,
        context: &[TokenId],
        speculation: &Speculation,
        room: usize,
        on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(governor) = &mut self.governor else { return ControlFlow::Continue(()) };
        for member in &mut self.members {
            if speculation.is_off() || !speculation.drafter.allows(member.drafter.kind()) {
                continue;
            }
            let behind = member.drafter.behind(context);
            if !member.drafter.is_cheap() && governor.plan(speculation, room, behind).length == 0 {
                continue;
            }
            let start = Instant::now();
            match member.drafter.prepare(context, on_progress) {
                Ok(ControlFlow::Continue(())) if member.drafter.is_cheap() => {}
                Ok(ControlFlow::Continue(())) => {
                    governor.learn_reading(behind, start.elapsed().as_secs_f64() * 1e3);
                }
                Ok(ControlFlow::Break(())) => return ControlFlow::Break(()),
                Err(error) => member.fail(&error),
            }
        }
        ControlFlow::Continue(())
    }

    /// The draft of a round that may draft `room` tokens, all of them below `vocabulary`.
    pub(crate) fn draft(
        &mut self,
        context: &[TokenId],
        speculation: &Speculation,
        room: usize,
        vocabulary: usize,
        sampler: &mut Sampler,
    ) -> Drafting {
        self.guessed.clear();
        self.behind = 0;
        let Some(governor) = &mut self.governor else { return Drafting::none(LengthReason::Off) };
        let allowed = |member: &&mut Member| speculation.drafter.allows(member.drafter.kind());
        if speculation.is_off() || !self.members.iter_mut().any(|member| allowed(&member)) {
            return Drafting::none(LengthReason::Off);
        }
        let mut best = Drafting::none(LengthReason::DrafterFailed);
        let mut best_rate = 0.0;
        for member in self.members.iter_mut().filter(allowed).filter(|member| member.drafter.is_cheap()) {
            if let Some(draft) = member.guess(governor, context, speculation, room, vocabulary, sampler) {
                self.guessed.push(draft.guesses.clone());
                let (drafting, rate) = take(governor, draft, speculation, room);
                if rate > best_rate {
                    (best, best_rate) = (drafting, rate);
                }
            }
        }
        let model = self.members.iter_mut().filter(allowed).find(|member| !member.drafter.is_cheap());
        if let Some(member) = model.filter(|member| !member.failed) {
            let behind = member.drafter.behind(context);
            let plan = governor.plan(speculation, room, behind);
            // A plain round that is due waits for one in which nobody else has a guess.
            let trial = plan.reason == LengthReason::Probe && plan.length > 0;
            if best.guesses.is_empty() || plan.rate > best_rate || trial {
                best = member.follow(governor, &plan, context, vocabulary, sampler).unwrap_or(best);
                best.decision = governor.explain(plan.length, plan.staged);
                self.behind = if best.guesses.is_empty() { 0 } else { behind };
                let chain = !best.guesses.is_empty() && is_chain(&best.guesses);
                if chain && speculation.length == DraftLength::Auto && speculation.threshold.is_governed() {
                    self.extend(&mut best, context, speculation, room, vocabulary, sampler);
                }
            }
        }
        best
    }

    /// Lets those who guess at no cost go on where the draft model's chain ends, as far as verifying it pays.
    fn extend(
        &mut self,
        drafting: &mut Drafting,
        context: &[TokenId],
        speculation: &Speculation,
        room: usize,
        vocabulary: usize,
        sampler: &mut Sampler,
    ) {
        let Some(governor) = &self.governor else { return };
        let ahead: Vec<TokenId> = drafting.guesses.iter().map(|guess| guess.token).collect();
        let length = room.min(LONGEST_DRAFT) - ahead.len();
        let order = Order { ahead: &ahead, ..Order::chain(length) };
        let cheap = self.members.iter_mut().filter(|member| member.drafter.is_cheap());
        let allowed = cheap.filter(|member| speculation.drafter.allows(member.drafter.kind()));
        let mut best: (Vec<Guess>, f64) = Default::default();
        for member in allowed {
            let Some(draft) = member.draft(context, &order, vocabulary, sampler) else { continue };
            let mut further = draft.guesses;
            further.truncate(length);
            let (worth, gain) = governor.further(&drafting.guesses, &further);
            if gain > best.1 {
                further.truncate(worth);
                best = (further, gain);
            }
        }
        for guess in best.0 {
            let parent = drafting.guesses.len().checked_sub(1);
            drafting.guesses.push(Guess { parent, ..guess });
        }
        drafting.length = drafting.length.max(drafting.guesses.len());
    }

    /// Takes in a finished round and the tokens it added to the text.
    pub(crate) fn learn(&mut self, round: &Round, guesses: &[Guess], emitted: &[TokenId]) {
        if let Some(governor) = &mut self.governor {
            governor.learn(round, guesses, self.behind);
            self.guessed.iter().for_each(|guesses| governor.score(guesses, emitted));
        }
    }

    /// What the target thought of what may follow `token`.
    pub(crate) fn observe(&mut self, token: TokenId, row: Row<'_>) {
        self.members.iter_mut().for_each(|member| member.drafter.observe(token, row));
    }
}

impl Drafting {
    /// A round that drafts nothing.
    pub(crate) fn none(reason: LengthReason) -> Self {
        Self { reason, ..Self::default() }
    }
}

impl Member {
    /// The reply goes on without it.
    fn fail(&mut self, why: &dyn std::fmt::Display) {
        tracing::warn!("a drafter failed, and the reply goes on without it: {why}");
        self.failed = true;
    }

    fn draft(
        &mut self,
        context: &[TokenId],
        order: &Order<'_>,
        vocabulary: usize,
        sampler: &mut Sampler,
    ) -> Option<Draft> {
        if self.failed {
            return None;
        }
        match self.drafter.draft(context, order, sampler) {
            Ok(draft) if draft.guesses.iter().all(|guess| (guess.token as usize) < vocabulary) => Some(draft),
            Ok(_) => {
                self.fail(&"it drafted a token the target does not have");
                None
            }
            Err(error) => {
                self.fail(&error);
                None
            }
        }
    }

    /// As much as it can guess, at next to no cost.
    fn guess(
        &mut self,
        governor: &Governor,
        context: &[TokenId],
        speculation: &Speculation,
        room: usize,
        vocabulary: usize,
        sampler: &mut Sampler,
    ) -> Option<Draft> {
        let length = match speculation.length {
            DraftLength::Auto => LONGEST_DRAFT.min(room),
            DraftLength::Fixed(length) => (length as usize).min(room),
        };
        // The model's trees are the governor's choice; others grow one where nobody else drafts.
        let kind = self.drafter.kind();
        let shape = match speculation.tree {
            Tree::Width(width @ 2..)
                if kind == DrafterKind::Recycling && speculation.drafter.allows_only(kind) =>
            {
                Some(governor.tree(kind, width as usize, length, room))
            }
            _ => None,
        };
        let order = Order { shape: shape.as_ref(), ..Order::chain(length) };
        let mut draft = self.draft(context, &order, vocabulary, sampler)?;
        if shape.is_none() {
            draft.guesses.truncate(length);
        }
        Some(draft)
    }

    /// Carries out the governor's plan.
    fn follow(
        &mut self,
        governor: &Governor,
        plan: &Plan,
        context: &[TokenId],
        vocabulary: usize,
        sampler: &mut Sampler,
    ) -> Option<Drafting> {
        if plan.length == 0 {
            return Some(Drafting::none(plan.reason));
        }
        let calibration = governor.calibration(self.drafter.kind());
        let order = Order {
            length: plan.length,
            shape: plan.shape.as_ref(),
            bound: plan.least.map(|least| Bound { least, calibration }),
            staged: plan.staged,
            ahead: &[],
        };
        let draft = self.draft(context, &order, vocabulary, sampler)?;
        let mut guesses = draft.guesses;
        if plan.shape.is_none() {
            guesses.truncate(plan.length);
        }
        Some(Drafting {
            guesses,
            length: plan.length,
            reason: draft.shortened.unwrap_or(plan.reason),
            threshold: plan.least.map(|least| least.chance.max(least.further) as f32),
            staged: plan.staged && plan.shape.is_none(),
            decision: None,
        })
    }
}

/// As much of a draft that is there already as is worth verifying, and what that promises.
fn take(governor: &Governor, draft: Draft, speculation: &Speculation, room: usize) -> (Drafting, f64) {
    let Draft { mut guesses, shortened } = draft;
    let whole = speculation.length != DraftLength::Auto;
    let mut drafting = Drafting { length: guesses.len(), ..Drafting::default() };
    if !is_chain(&guesses) {
        drafting.reason = shortened.unwrap_or(LengthReason::Fixed);
        return (Drafting { guesses, ..drafting }, governor.plain_rate());
    }
    if let Threshold::Fixed(least) = speculation.threshold {
        drafting.threshold = Some(least);
        guesses.truncate(governor.likely(&guesses, f64::from(least)));
    }
    let (worth, rate) = governor.worth(&guesses, whole);
    let nothing = guesses.is_empty();
    drafting.reason = match speculation.length {
        DraftLength::Fixed(length) if length as usize > room => LengthReason::NoRoom,
        DraftLength::Fixed(_) => shortened.unwrap_or(LengthReason::Fixed),
        DraftLength::Auto if nothing => LengthReason::NoMatch,
        DraftLength::Auto if worth == 0 => LengthReason::WouldNotPay,
        DraftLength::Auto => LengthReason::Governed,
    };
    if let DraftLength::Fixed(length) = speculation.length {
        drafting.length = (length as usize).min(room);
    } else {
        drafting.length = worth;
    }
    guesses.truncate(worth);
    (Drafting { guesses, ..drafting }, rate)
}
