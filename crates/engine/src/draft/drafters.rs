//! All drafters of a target, and the choice among their drafts: the one with the highest round
//! value.
//!
//! Drafters that cost nothing are asked in every round. Their guesses are scored against the text
//! that follows, verified or not, so that their confidence is calibrated before its first use.
//! After a chain by another drafter they are asked for its continuation.
//!
//! A drafter that fails is not asked again in the same reply. `costs` assumes the costs of a new
//! pair; `features` passes on hidden states.

mod costs;
mod features;

use std::ops::ControlFlow;
use std::time::Instant;

use self::costs::Assumptions;
pub(crate) use self::features::FeatureGap;
use foretoken_forward::Taps;
use foretoken_model::token::TokenId;

use super::drafting::{Drafting, RoundInput};
use super::member::Member;
use super::{DraftRequest, Drafter, ParkedDrafter};
use crate::accept::Guesses;
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::governor::{Governor, GovernorStats, Plan, TextKind};
use crate::sampler::Sampler;
use crate::speculation::{DraftLength, Speculation};
use crate::trace::{LengthReason, Round};

/// Prefill tokens that should not delay the first token of a reply.
const MAX_FIRST_PREFILL: usize = 64;

/// Any number of drafters, and the governor that learns about them.
#[derive(Default)]
pub struct Drafters {
    members: Vec<Member>,
    /// `None` until plain passes of the target were measured.
    governor: Option<Governor>,
    /// Costs before they are measured.
    assumptions: Assumptions,
    /// Free drafts of this round, used or not.
    guessed: Vec<(usize, Guesses)>,
    /// Kind of text of the present reply.
    kind: TextKind,
    /// Hidden states that are read in the present reply.
    taps: Taps,
}

impl Drafters {
    pub fn new(drafters: Vec<Box<dyn Drafter>>) -> Self {
        let members = drafters.into_iter().enumerate();
        let members = members.map(|(number, drafter)| Member::new(number, drafter));
        Self { members: members.collect(), ..Self::default() }
    }

    /// A single drafter.
    pub fn one(drafter: impl Drafter + 'static) -> Self {
        Self::new(vec![Box::new(drafter)])
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns true if there is a drafter of this kind.
    pub fn has(&self, kind: DrafterKind) -> bool {
        self.members.iter().any(|member| member.kind() == kind)
    }

    /// Returns true if a drafter of this kind failed in the last reply.
    pub fn has_failed(&self, kind: DrafterKind) -> bool {
        self.members.iter().any(|member| member.has_failed() && member.kind() == kind)
    }

    /// Reason why the first drafter that failed in the last reply is left out, as a sentence.
    pub fn failure(&self) -> Option<String> {
        self.members.iter().find_map(Member::failure)
    }

    /// The first drafter.
    pub fn first(&mut self) -> Option<&mut (dyn Drafter + 'static)> {
        self.members.first_mut().map(|member| &mut member.drafter as &mut dyn Drafter)
    }

    /// The governor; `None` before the first reply.
    pub fn governor(&self) -> Option<&Governor> {
        self.governor.as_ref()
    }

    /// Most tokens of `context` that any drafter still has to read.
    pub fn behind(&self, context: &Context) -> usize {
        self.members.iter().map(|member| member.drafter.behind(context)).max().unwrap_or(0)
    }

    /// Replaces the texts of other conversations that this one may repeat.
    pub fn remember(&mut self, texts: &[Vec<TokenId>]) {
        self.members.iter_mut().for_each(|member| member.drafter.remember(texts));
    }

    /// Drops the texts that the drafters learned from, but keeps measured costs and acceptance.
    pub fn forget(&mut self) {
        self.members.iter_mut().for_each(|member| member.drafter.forget());
    }

    /// Puts the caches of each drafter aside; `None` for those without.
    pub fn park(&self) -> Vec<Option<ParkedDrafter>> {
        self.members.iter().map(|member| member.drafter.park()).collect()
    }

    /// Replaces the drafters' caches by those that the same drafters parked.
    pub fn resume(&mut self, parked: &[Option<ParkedDrafter>]) {
        let parked = self.members.iter_mut().zip(parked);
        parked.for_each(|(member, parked)| {
            if let Some(parked) = parked {
                member.drafter.resume(parked);
            }
        });
    }

    /// Statistics to be [restored](Self::restore) later; `None` before the first reply.
    pub fn saved_stats(&self) -> Option<GovernorStats> {
        self.governor.as_ref().map(Governor::saved_stats)
    }

    /// Restores statistics of the same target, drafters and device. Without statistics, or with
    /// ones that do not fit, the next reply measures everything again.
    pub fn restore(&mut self, stats: Option<&GovernorStats>) {
        self.governor = stats.and_then(|stats| Governor::restored(stats, &self.roster()));
        self.governor.iter_mut().for_each(|governor| Self::set_block_lengths(&self.members, governor));
    }

    /// Kind of each drafter, and whether its drafts are free.
    fn roster(&self) -> Vec<(DrafterKind, bool)> {
        self.members.iter().map(|member| (member.kind(), member.is_free())).collect()
    }

    /// Starts a reply of this kind, drafted as `speculation` says.
    pub(crate) fn begin_reply(&mut self, kind: TextKind, speculation: &Speculation) {
        self.members.iter_mut().for_each(Member::begin_reply);
        let mut readers = self.members.iter().filter(|member| member.drafts_in(speculation));
        self.taps = readers.find_map(|member| member.drafter.taps()).cloned().unwrap_or_default();
        self.guessed.clear();
        self.begin_costs(speculation);
        self.kind = kind;
        self.governor.iter_mut().for_each(|governor| governor.begin_reply(kind));
    }

    /// Returns true if the chosen drafter has too much of `context` to prefill before the first
    /// token.
    pub(crate) fn delays_first_token(&self, input: RoundInput<'_>) -> bool {
        let RoundInput { context, speculation, .. } = input;
        let paid = || self.members.iter().filter(|member| !member.is_free() && member.drafts_in(speculation));
        if paid().all(|member| member.behind(context) <= MAX_FIRST_PREFILL) {
            return false;
        }
        self.wanted(input).is_some_and(|plan| self.members[plan.drafter].behind(context) > MAX_FIRST_PREFILL)
    }

    /// Plan of the drafter chosen among those whose drafts take time; `None` for plain decoding.
    fn wanted(&self, input: RoundInput<'_>) -> Option<Plan> {
        let governor = self.governor.as_ref()?;
        let mut plans = self.plans(governor, input);
        let picked = governor.pick(&mut plans)?;
        Some(plans.swap_remove(picked)).filter(|plan| plan.length > 0)
    }

    /// Plan of each drafter whose drafts take time.
    fn plans(&self, governor: &Governor, input: RoundInput<'_>) -> Vec<Plan> {
        let RoundInput { context, speculation, room, .. } = input;
        let paid = self.members.iter().filter(|member| !member.is_free() && member.drafts_in(speculation));
        paid.map(|member| governor.plan(member.number(), speculation, room, member.behind(context))).collect()
    }

    /// Prefills the drafters that will draft. Those whose drafts take time are skipped while
    /// drafting does not pay.
    pub(crate) fn prepare(
        &mut self,
        input: RoundInput<'_>,
        on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let RoundInput { context, speculation, .. } = input;
        let wanted = self.wanted(input);
        let Some(governor) = &mut self.governor else { return ControlFlow::Continue(()) };
        for member in self.members.iter_mut().filter(|member| member.drafts_in(speculation)) {
            let plan = wanted.as_ref().filter(|plan| plan.drafter == member.number());
            if !member.is_free() && plan.is_none() {
                continue;
            }
            let behind = member.drafter.behind(context);
            let start = Instant::now();
            match member.drafter.prepare(context, on_progress) {
                Ok(ControlFlow::Continue(())) if member.is_free() => {}
                Ok(ControlFlow::Continue(())) => {
                    let ms = start.elapsed().as_secs_f64() * 1e3;
                    governor.learn_prefill(member.number(), behind, ms);
                    if plan.is_some_and(Plan::is_trial) {
                        governor.charge_trial(member.number(), ms);
                    }
                }
                Ok(ControlFlow::Break(())) => return ControlFlow::Break(()),
                Err(error) => member.fail(&error),
            }
        }
        ControlFlow::Continue(())
    }

    /// Drafts for a round. Guesses are below the input's vocabulary.
    pub(crate) fn draft(&mut self, input: RoundInput<'_>, sampler: &mut Sampler) -> Drafting {
        let RoundInput { context, speculation, .. } = input;
        self.guessed.clear();
        let allowed = |member: &Member| speculation.drafter.allows(member.kind());
        if self.governor.is_none() || speculation.is_off() || !self.members.iter().any(allowed) {
            return Drafting::none(LengthReason::Off);
        }
        let input = self.limited(input);
        let (mut best, most) = self.guess(input, sampler);
        let Some(governor) = &self.governor else { return best };
        let mut plans = self.plans(governor, input);
        // The plan may have changed since the missing features were requested.
        plans.retain(|plan| self.members[plan.drafter].has_features(context));
        let picked = governor.pick(&mut plans);
        let Some(governor) = &mut self.governor else { return best };
        plans.iter().for_each(|plan| governor.commit(plan));
        let Some(plan) = picked.map(|number| &plans[number]) else { return best };
        // A due plain round waits until no free drafter has a guess.
        if best.guesses.is_empty() || governor.round_value(plan.prospect) > most || plan.is_trial() {
            let member = &mut self.members[plan.drafter];
            let behind = member.behind(context);
            if let Some(drafting) = member.follow(governor, plan, input, sampler) {
                best = drafting.or(best);
            }
            best.decision = governor.explain(plan);
            governor.commit_explanation(plan);
            best.behind = if best.parts.is_empty() { 0 } else { behind };
            let chain = best.parts.len() == 1 && !best.guesses.is_empty() && best.guesses.is_chain();
            let goes_on = chain && best.reason != LengthReason::EndOfText;
            if goes_on && speculation.length == DraftLength::Auto && speculation.threshold.is_governed() {
                self.extend(&mut best, input, sampler);
            }
        }
        best
    }

    /// Limits automatic drafts to numbers of rows whose cost is known well enough.
    fn limited<'a>(&self, input: RoundInput<'a>) -> RoundInput<'a> {
        match &self.governor {
            Some(governor) if input.speculation.length == DraftLength::Auto => {
                RoundInput { room: input.room.limited(governor.longest_draft()), ..input }
            }
            _ => input,
        }
    }

    /// Best free draft, and the value of a round with it.
    fn guess(&mut self, input: RoundInput<'_>, sampler: &mut Sampler) -> (Drafting, f64) {
        let RoundInput { context, speculation, .. } = input;
        let mut best = (Drafting::none(LengthReason::DrafterFailed), f64::NEG_INFINITY);
        let Some(governor) = &self.governor else { return best };
        let free = self.members.iter_mut().filter(|member| member.is_free() && member.drafts_in(speculation));
        for member in free.filter(|member| member.has_features(context)) {
            let number = member.number();
            if let Some(draft) = member.guess(input, sampler) {
                self.guessed.push((number, draft.guesses.clone()));
                let (drafting, worth) = Drafting::take(governor, number, draft, input);
                if worth > best.1 {
                    best = (drafting, worth);
                }
            }
        }
        best
    }

    /// Lets the free drafters continue a chain, as far as verifying it pays.
    fn extend(&mut self, drafting: &mut Drafting, input: RoundInput<'_>, sampler: &mut Sampler) {
        let RoundInput { speculation, room, .. } = input;
        let (Some(governor), [author]) = (&self.governor, &drafting.parts[..]) else { return };
        let ahead: Vec<TokenId> = drafting.guesses.iter().map(|guess| guess.token).collect();
        let length = room.longest() - ahead.len();
        let request = DraftRequest { ahead: &ahead, ..DraftRequest::chain(length) };
        let free = self.members.iter_mut().filter(|member| member.is_free() && member.drafts_in(speculation));
        let mut best: Option<(usize, Guesses)> = None;
        let mut most = 0.0;
        for member in free {
            let Some(draft) = member.draft(input, &request, sampler) else { continue };
            let mut further = draft.guesses;
            further.truncate(length);
            let (worth, gain) =
                governor.further(author.drafter, &drafting.guesses, member.number(), &further);
            if gain > most {
                further.truncate(worth);
                (best, most) = (Some((member.number(), further)), gain);
            }
        }
        if let Some((number, guesses)) = best {
            let reached = drafting.survivals.last().map_or(0.0, |&survival| f64::from(survival));
            let survivals = governor.survivals(number, &guesses, reached);
            drafting.extend(number, guesses, survivals);
        }
    }

    /// Learns from a finished round and the tokens it added to the text.
    pub(crate) fn learn(&mut self, round: &Round, drafting: &Drafting, emitted: &[TokenId]) {
        if let Some(governor) = &mut self.governor {
            governor.learn(round, &drafting.guesses, &drafting.work());
            for (number, guesses) in &self.guessed {
                governor.score(*number, guesses, emitted);
            }
        }
    }
}
