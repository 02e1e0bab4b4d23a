//! The loop of rounds: draft, verify, accept, emit. Owns the target and how a reply ends; who
//! drafts and how many tokens is given from outside.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crate::accept::{Guess, Verdict, accept};
use crate::distribution::Distribution;
use crate::draft::{Draft, Drafter};
use crate::error::{Error, Result};
use crate::forward::{Logits, Model, catch_up};
use crate::model::{TextStream, Tokenizer};
use crate::sampler::{Sampler, shown_probability};
use crate::sampling::Sampling;
use crate::trace::{
    Drafted, DrafterKind, Extra, ExtraKind, Finish, LengthReason, Outcome, Round, Summary, Times, TokenId,
};
use crate::tree::TokenTree;

/// The most tokens a round may draft.
pub const LONGEST_DRAFT: usize = 16;

/// What is asked of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Never empty.
    pub prompt: Vec<TokenId>,
    pub sampling: Sampling,
    /// Tokens to draft a round, at most [`LONGEST_DRAFT`]; 0 is plain decoding.
    pub draft_length: usize,
    /// Longest reply; `None` means as long as the context allows.
    pub max_tokens: Option<usize>,
    /// Texts that end the reply and are not part of it.
    pub stop: Vec<String>,
    /// Go on after the model ended its text.
    pub ignore_end: bool,
    /// The reply goes on in the middle of the prompt's text, so a space before its first word is its
    /// own.
    pub continues: bool,
}

impl Request {
    /// A reply to `prompt` with the default settings.
    pub fn new(prompt: Vec<TokenId>) -> Self {
        Self {
            prompt,
            sampling: Sampling::default(),
            draft_length: 4,
            max_tokens: None,
            stop: Vec::new(),
            ignore_end: false,
            continues: false,
        }
    }

    /// Whether a model with a context of `limit` tokens can reply.
    ///
    /// # Errors
    /// `Error::EmptyPrompt`, `Error::PromptTooLong` or `Error::Setting`.
    pub fn admit(&self, limit: usize) -> Result<()> {
        let found = self.prompt.len();
        if found == 0 {
            return Err(Error::EmptyPrompt);
        }
        if found >= limit {
            return Err(Error::PromptTooLong { found, limit });
        }
        if self.draft_length > LONGEST_DRAFT {
            let found = self.draft_length.to_string();
            return Err(Error::Setting { name: "draft length", expected: "0 to 16", found });
        }
        self.sampling.validate()
    }
}

/// Reported while a reply is under way; what is done with it decides whether it goes on.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// Prompt tokens processed, of all.
    Prompt {
        done: usize,
        total: usize,
    },
    Round(&'a Round),
}

/// A finished reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Exactly the texts of its rounds, joined.
    pub text: String,
    pub tokens: Vec<TokenId>,
    pub rounds: Vec<Round>,
    pub summary: Summary,
}

/// A target model and what it needs to write.
pub struct Decoder {
    target: Box<dyn Model>,
    tokenizer: Arc<Tokenizer>,
}

impl Decoder {
    pub fn new(target: Box<dyn Model>, tokenizer: Arc<Tokenizer>) -> Self {
        Self { target, tokenizer }
    }

    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    pub fn target(&self) -> &dyn Model {
        self.target.as_ref()
    }

    pub fn target_mut(&mut self) -> &mut dyn Model {
        self.target.as_mut()
    }

    /// Writes a reply. `on_progress` is called after every part of the prompt and every round;
    /// `Break` stops the reply there, which is an outcome and not an error.
    ///
    /// # Errors
    /// `Error::EmptyPrompt`, `Error::PromptTooLong`, `Error::Setting` before anything is computed;
    /// `Error::Compute` if the target fails. A drafter that fails does not end the reply.
    pub fn reply(
        &mut self,
        request: &Request,
        drafter: Option<&mut dyn Drafter>,
        on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Reply> {
        let started = Instant::now();
        let mut writing = Writing::new(self, request, drafter, started)?;
        let finish = writing.run(on_progress)?;
        let Writing { rounds, context, reused, .. } = writing;
        let prompt = request.prompt.len();
        let text = rounds.iter().flat_map(Round::emitted).map(|(_, text)| text).collect();
        let summary = Summary::of(&rounds, finish, prompt, reused, milliseconds(started));
        Ok(Reply { text, tokens: context[prompt..].to_vec(), rounds, summary })
    }
}

/// A reply under way.
struct Writing<'a, 'd> {
    target: &'a mut dyn Model,
    tokenizer: &'a Tokenizer,
    drafter: Option<&'a mut (dyn Drafter + 'd)>,
    drafter_failed: bool,
    request: &'a Request,
    sampler: Sampler,
    text: TextStream,
    started: Instant,
    /// Prompt and reply so far. All but its last token is in the target's cache.
    context: Vec<TokenId>,
    reused: usize,
    rounds: Vec<Round>,
}

/// A draft of this round, and why it is as long as it is.
struct Plan {
    guesses: Vec<Guess>,
    reason: LengthReason,
}

/// What a round adds to the text, in order, and why nothing follows it.
struct Emission {
    tokens: Vec<TokenId>,
    texts: Vec<String>,
    finish: Option<Finish>,
}

impl<'a, 'd> Writing<'a, 'd> {
    fn new(
        decoder: &'a mut Decoder,
        request: &'a Request,
        drafter: Option<&'a mut (dyn Drafter + 'd)>,
        started: Instant,
    ) -> Result<Self> {
        request.admit(decoder.target.config().context)?;
        let text = TextStream::new(Arc::clone(&decoder.tokenizer), &request.stop);
        Ok(Self {
            target: decoder.target.as_mut(),
            text: if request.continues { text.continuing() } else { text },
            tokenizer: &decoder.tokenizer,
            drafter,
            drafter_failed: false,
            request,
            sampler: Sampler::new(&request.sampling)?,
            started,
            context: request.prompt.clone(),
            reused: 0,
            rounds: Vec::new(),
        })
    }

    fn run(&mut self, on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>) -> Result<Finish> {
        let mut on_prompt = |done, total| on_progress(Progress::Prompt { done, total });
        let (reused, carried) = catch_up(self.target, &self.context, &mut on_prompt)?;
        self.reused = reused;
        if carried.is_break() || self.prepare_drafter(&mut on_prompt).is_break() {
            return Ok(Finish::Cancelled);
        }
        if self.request.max_tokens == Some(0) {
            return Ok(Finish::Length);
        }
        loop {
            let (round, finish) = self.round()?;
            let stopped = on_progress(Progress::Round(&round)).is_break();
            self.rounds.push(round);
            if let Some(finish) = finish {
                return Ok(finish);
            }
            if stopped {
                return Ok(Finish::Cancelled);
            }
        }
    }

    fn prepare_drafter(
        &mut self,
        on_prompt: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(drafter) = self.drafter.as_deref_mut().filter(|_| self.request.draft_length > 0) else {
            return ControlFlow::Continue(());
        };
        drafter.prepare(&self.context, on_prompt).unwrap_or_else(|error| {
            self.drop_drafter(&error);
            ControlFlow::Continue(())
        })
    }

    /// The reply goes on by plain decoding.
    fn drop_drafter(&mut self, why: &dyn std::fmt::Display) {
        tracing::warn!("the drafter failed, and the reply goes on without drafts: {why}");
        self.drafter_failed = true;
    }

    /// One round. Afterwards the target's cache holds the context less its last token.
    fn round(&mut self) -> Result<(Round, Option<Finish>)> {
        let start = Instant::now();
        let plan = self.draft();
        let draft_ms = milliseconds(start);

        let verify_start = Instant::now();
        let tree = self.tree(&plan.guesses);
        let logits = self.target.forward(&tree, 0..tree.len())?;
        let verify_ms = milliseconds(verify_start);

        let sample_start = Instant::now();
        let (verdict, judged) = judge(&plan.guesses, &logits, &self.context, &mut self.sampler)?;
        let emission = self.emit(&plan.guesses, &verdict);
        let kept: Vec<usize> = (0..emission.tokens.len()).collect();
        self.target.keep(&kept)?;
        self.context.extend(&emission.tokens);
        let sample_ms = milliseconds(sample_start);

        let finish = emission.finish;
        let mut round = self.record(plan, &verdict, &judged, emission);
        let rest_ms = milliseconds(start) - draft_ms - verify_ms - sample_ms;
        round.times = Times {
            draft_ms: draft_ms as f32,
            verify_ms: verify_ms as f32,
            sample_ms: sample_ms as f32,
            rest_ms: rest_ms as f32,
        };
        round.at_ms = milliseconds(self.started) as f32;
        Ok((round, finish))
    }

    /// Tokens that may still be written.
    fn room(&self) -> usize {
        let context = self.target.config().context - self.context.len();
        let written = self.context.len() - self.request.prompt.len();
        self.request.max_tokens.map_or(context, |most| context.min(most - written))
    }

    fn draft(&mut self) -> Plan {
        let none = |reason| Plan { guesses: Vec::new(), reason };
        let vocabulary = self.target.config().vocabulary;
        let wanted = self.request.draft_length;
        // Every round emits one token beyond the draft.
        let length = wanted.min(self.room() - 1);
        let Some(drafter) = self.drafter.as_deref_mut().filter(|_| wanted > 0) else {
            return none(LengthReason::Off);
        };
        if self.drafter_failed {
            return none(LengthReason::DrafterFailed);
        }
        match drafter.draft(&self.context, length, &mut self.sampler) {
            Ok(Draft { guesses, .. }) if guesses.iter().any(|guess| guess.token as usize >= vocabulary) => {
                self.drop_drafter(&"it drafted a token the target does not have");
                none(LengthReason::DrafterFailed)
            }
            Ok(Draft { mut guesses, shortened }) => {
                guesses.truncate(length);
                let bound = if length < wanted { LengthReason::NoRoom } else { LengthReason::Fixed };
                Plan { guesses, reason: shortened.unwrap_or(bound) }
            }
            Err(error) => {
                self.drop_drafter(&error);
                none(LengthReason::DrafterFailed)
            }
        }
    }

    /// What the target verifies: row `i` of its logits scores what may follow the first `i` guesses.
    fn tree(&self, guesses: &[Guess]) -> TokenTree {
        let last = self.context.last().copied();
        TokenTree::chain(last.into_iter().chain(guesses.iter().map(|guess| guess.token)))
    }

    /// Writes the accepted tokens and the extra one, up to the first that ends the reply.
    fn emit(&mut self, guesses: &[Guess], verdict: &Verdict) -> Emission {
        let accepted = guesses[..verdict.accepted].iter().map(|guess| guess.token);
        let mut emission = Emission { tokens: Vec::new(), texts: Vec::new(), finish: None };
        let mut room = self.room();
        for token in accepted.chain([verdict.extra]) {
            let mut text = self.text.push(token);
            room -= 1;
            emission.finish = self.finish_after(token, room);
            if emission.finish.is_some() {
                text.push_str(&self.text.finish());
            }
            emission.tokens.push(token);
            emission.texts.push(text);
            if emission.finish.is_some() {
                break;
            }
        }
        emission
    }

    fn finish_after(&self, token: TokenId, room: usize) -> Option<Finish> {
        let ended = !self.request.ignore_end && self.tokenizer.ends().contains(&token);
        if ended || self.text.stopped() {
            return Some(Finish::Stop);
        }
        let full = self.target.config().context - self.context.len() == self.room();
        (room == 0).then_some(if full { Finish::ContextFull } else { Finish::Length })
    }

    /// Guesses beyond what was emitted were never judged, whatever the verdict computed for them.
    fn record(&self, plan: Plan, verdict: &Verdict, judged: &[f32], emission: Emission) -> Round {
        let emitted = emission.tokens.len();
        let accepted = verdict.accepted.min(emitted);
        let cut = emitted <= verdict.accepted;
        let kind = self.drafter.as_deref().map_or(DrafterKind::Model, Drafter::kind);
        let whole = plan.guesses.len();
        let mut texts = emission.texts.into_iter();
        let mut drafted = Vec::with_capacity(whole);
        for (index, guess) in plan.guesses.into_iter().enumerate() {
            let outcome = match index {
                _ if index < accepted => Outcome::Accepted,
                _ if index == accepted && !cut => Outcome::Rejected,
                _ => Outcome::Discarded,
            };
            let read = || self.tokenizer.piece(guess.token);
            let text = if outcome == Outcome::Accepted { texts.next() } else { None };
            let target = judged.get(index).copied().filter(|_| outcome != Outcome::Discarded);
            drafted.push(Drafted {
                token: guess.token,
                text: text.unwrap_or_else(read),
                draft_probability: guess.probability,
                target_probability: target,
                acceptance: target.map(|target| (target / guess.probability).min(1.0)),
                outcome,
                drafter: kind,
            });
        }
        let kind = match (whole, accepted) {
            (0, _) => ExtraKind::Plain,
            (whole, accepted) if whole == accepted => ExtraKind::Bonus,
            _ => ExtraKind::Recovered,
        };
        let extra = texts.next().filter(|_| !cut);
        Round {
            index: self.rounds.len() as u32,
            position: (self.context.len() - emitted) as u32,
            drafted,
            extra: extra.map(|text| Extra { token: verdict.extra, text, kind }),
            draft_length: self.request.draft_length as u32,
            reason: plan.reason,
            times: Times::default(),
            at_ms: 0.0,
        }
    }
}

/// The verdict on what follows `context`, and the probability to show for each judged guess.
fn judge(
    guesses: &[Guess],
    logits: &Logits<'_>,
    context: &[TokenId],
    sampler: &mut Sampler,
) -> Result<(Verdict, Vec<f32>)> {
    let Sampler { sampling, generator } = sampler;
    let position = context.len();
    let mut context = context.to_vec();
    context.extend(guesses.iter().map(|guess| guess.token));
    let mut shown = Vec::with_capacity(guesses.len());
    let target = |index: usize| -> Result<Distribution> {
        let row = logits.row(index);
        let p = Distribution::processed(row, sampling, &context[..position + index]);
        if let Some(guess) = guesses.get(index) {
            shown.push(shown_probability(sampling, row, &p, guess.token));
        }
        Ok(p)
    };
    let verdict = accept(guesses, position, target, generator)?;
    Ok((verdict, shown))
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
