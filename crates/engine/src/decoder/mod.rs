//! The loop of rounds: draft, verify, accept, emit. Owns the target and the end of a reply; the
//! drafters and their governor decide who drafts and how many tokens.

mod judge;
mod loops;
mod output;
mod record;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{
    Features, LogitSubset, Model, PrefillChunk, Row, Want, catch_up_with, rerun_if_outgrown, rewind,
};
use foretoken_grammar::Grammars;
use foretoken_model::child::Program;
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::{ModelPenalties, Sampling};
use foretoken_model::token::TokenId;
use foretoken_model::{TextStream, Tokenizer};

use self::judge::judge;
use self::loops::Loops;
use self::output::Output;
use crate::accept::Guesses;
use crate::constraint::{Constraint, Masks};
use crate::context::Context;
use crate::draft::{Drafters, Drafting, FeatureGap, Observation, RoundInput};
use crate::governor::TextKind;
use crate::logprobs::{self, Logprobs};
use crate::owner::Owner;
use crate::penalties::PenaltyTokens;
use crate::sampler::Sampler;
use crate::speculation::{Room, Speculation};
use crate::trace::{Finish, LengthReason, ReplySettings, Round, Summary, Times};

/// Tokens at the end of a prompt that decide the reply's [`TextKind`].
const END: usize = 256;

/// Request for a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Prompt tokens, at least one.
    pub prompt: Vec<TokenId>,
    pub sampling: Sampling,
    pub speculation: Speculation,
    /// Maximum length of the reply; `None` for as long as the context allows.
    pub max_tokens: Option<usize>,
    /// Stop strings: they end the reply and are not part of it.
    pub stop: Vec<String>,
    /// True to continue after an end-of-text token.
    pub ignore_end: bool,
    /// True if the reply continues the last text of the prompt, so that a space before its first
    /// word is kept.
    pub continues: bool,
    /// Bytes of a character that the prompt's last tokens began; the reply's text begins with the
    /// whole character.
    pub unfinished: Vec<u8>,
    /// Owner of the text: no other owner's caches are used for it.
    pub owner: Owner,
    /// Grammar that the reply follows; `None` for any text.
    pub constraint: Option<Constraint>,
    /// Number of alternatives for which each round records log probabilities, beside those of its
    /// tokens; `None` to record none.
    pub logprobs: Option<usize>,
}

impl Request {
    /// Requests a reply to `prompt` with the default settings.
    pub fn new(prompt: Vec<TokenId>) -> Self {
        Self {
            prompt,
            sampling: Sampling::default(),
            speculation: Speculation::default(),
            max_tokens: None,
            stop: Vec::new(),
            ignore_end: false,
            continues: false,
            unfinished: Vec::new(),
            owner: Owner::default(),
            constraint: None,
            logprobs: None,
        }
    }

    /// Checks that a model with a context of `limit` tokens can reply.
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
        if self.constraint.is_some() && self.ignore_end {
            let (name, found) = ("ignore_eos", "true with a grammar".to_owned());
            return Err(Error::Setting { name, expected: "false, since a grammar ends the reply", found });
        }
        if let Some(top) = self.logprobs.filter(|&top| top > logprobs::MAX_TOP) {
            return Err(Error::Setting { name: "logprobs", expected: "0 to 20", found: top.to_string() });
        }
        self.speculation.validate()?;
        self.sampling.validate()
    }
}

/// Progress of a reply; the callback's result decides whether it continues.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// Prompt tokens processed, and their total.
    Prompt {
        done: usize,
        total: usize,
    },
    Round(&'a Round),
}

/// A finished reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Concatenated texts of the rounds.
    pub text: String,
    pub tokens: Vec<TokenId>,
    pub rounds: Vec<Round>,
    pub summary: Summary,
    /// Stop string that ended the reply, if one did.
    pub stop: Option<String>,
}

impl Reply {
    /// Returns the reply if it is complete.
    ///
    /// # Errors
    /// `Error::Cancelled` if the reply was stopped.
    pub fn uncancelled(self) -> Result<Self> {
        if self.summary.finish == Finish::Cancelled { Err(Error::Cancelled) } else { Ok(self) }
    }
}

/// Target model with its tokenizer and penalties.
pub struct Decoder {
    target: Box<dyn Model>,
    tokenizer: Arc<Tokenizer>,
    /// Tokens without penalties, for these sequence breakers.
    penalty_tokens: Option<(Vec<String>, Arc<PenaltyTokens>)>,
    /// Recommended penalties of the target, for replies with automatic penalties.
    penalties: Option<ModelPenalties>,
    /// Grammars of constrained replies.
    grammars: Arc<Grammars>,
}

impl Decoder {
    /// Creates a decoder that compiles grammars in this process; see [`Self::with_grammars`].
    pub fn new(target: Box<dyn Model>, tokenizer: Arc<Tokenizer>) -> Self {
        let grammars = Grammars::in_this_process(&tokenizer, target.config().vocabulary);
        Self { target, tokenizer, penalty_tokens: None, penalties: None, grammars }
    }

    /// Compiles grammars in a child process of `program`, for a target whose file is at `path`.
    #[must_use]
    pub fn with_grammars(self, program: &Program, path: &Path) -> Self {
        let rows = self.target.config().vocabulary;
        Self { grammars: Grammars::in_child(program, path, &self.tokenizer, rows), ..self }
    }

    /// Sets the penalties that are recommended for the target.
    #[must_use]
    pub fn with_penalties(self, penalties: Option<ModelPenalties>) -> Self {
        Self { penalties, ..self }
    }

    /// Returns the penalties of replies with automatic penalties.
    pub fn penalties(&self) -> ModelPenalties {
        self.penalties.unwrap_or_default()
    }

    /// `sampling` with the target's penalties if they are automatic.
    pub fn sampling(&self, sampling: &Sampling) -> Sampling {
        sampling.with_penalties_of(self.penalties.as_ref())
    }

    /// Tokens without penalties. The vocabulary is searched once per set of sequence breakers.
    pub(crate) fn penalty_tokens(&mut self, sampling: &Sampling) -> Arc<PenaltyTokens> {
        let exempts =
            [sampling.penalises_tokens(), sampling.penalises_sequences(), sampling.penalises_counts()];
        if !exempts.contains(&true) {
            return Arc::default();
        }
        let breakers = &sampling.dry_sequence_breakers;
        let known = self.penalty_tokens.take().filter(|(known, _)| known == breakers);
        let (breakers, tokens) = known
            .unwrap_or_else(|| (breakers.clone(), Arc::new(PenaltyTokens::of(&self.tokenizer, breakers))));
        self.penalty_tokens = Some((breakers, Arc::clone(&tokens)));
        tokens
    }

    /// Checks that the target can write the reply, and compiles its grammar.
    ///
    /// # Errors
    /// As [`Request::admit`], and `Error::Grammar`.
    pub fn admit(&self, request: &Request) -> Result<()> {
        self.check(request)?;
        self.masks(request).map(|_| ())
    }

    /// As [`Request::admit`], and refuses a bias of a token that the target does not score.
    fn check(&self, request: &Request) -> Result<()> {
        request.admit(self.target.config().context)?;
        let vocabulary = self.target.config().vocabulary;
        let unknown = request.sampling.logit_bias.iter().find(|(token, _)| *token as usize >= vocabulary);
        let Some((token, _)) = unknown else { return Ok(()) };
        let (name, expected) = ("logit bias", "tokens of the model's vocabulary");
        Err(Error::Setting { name, expected, found: token.to_string() })
    }

    /// Sampler of a reply, with the rules of its text.
    ///
    /// # Errors
    /// As [`Sampler::new`] and [`Self::admit`].
    pub(crate) fn sampler(&mut self, request: &Request) -> Result<Sampler> {
        let tokens = self.penalty_tokens(&request.sampling);
        let sampler = Sampler::with_tokens(&request.sampling, tokens)?.after_prompt(request.prompt.len());
        Ok(sampler.constrained(self.masks(request)?))
    }

    /// Masks of a reply; `None` if its text is free.
    fn masks(&self, request: &Request) -> Result<Option<Masks>> {
        let Some(constraint) = &request.constraint else { return Ok(None) };
        Masks::begin(&self.grammars, constraint, &request.prompt, &self.tokenizer).map(Some)
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

    /// Drops all texts from the target and `drafters`. Both are cleared, since a target with a
    /// cached prompt would run it again for a head without one.
    pub fn forget(&mut self, drafters: &mut Drafters) {
        self.target.truncate(0);
        drafters.forget();
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
        drafters: &mut Drafters,
        on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Reply> {
        let started = Instant::now();
        let request = &Request { sampling: self.sampling(&request.sampling).seeded(), ..request.clone() };
        let mut writing = Writing::new(self, request, drafters, started)?;
        let finish = writing.run(on_progress)?;
        let Writing { rounds, context, reused, restored, output, .. } = writing;
        // After an end token nothing completes the character.
        let unfinished = if finish == Finish::Stop { Vec::new() } else { output.text.unfinished().to_vec() };
        let stop = output.text.stop_string().map(str::to_owned);
        drop(output);
        let prompt = request.prompt.len();
        let text = rounds.iter().flat_map(Round::emitted).map(|(_, text)| text).collect();
        let settings = ReplySettings {
            speculation: request.speculation.clone(),
            sampling: request.sampling.clone(),
            stop: request.stop.clone(),
            system_prompt: String::new(),
            thinking: None,
        };
        let governor = drafters.governor().filter(|_| !request.speculation.is_off());
        let summary = Summary {
            plain_tokens_per_second: governor.map(|governor| governor.plain_rate() * 1e3),
            settings: Some(settings),
            restored_tokens: restored as u32,
            kv_dtype: self.target.config().kv_dtype,
            unfinished,
            ..Summary::of(&rounds, finish, prompt, reused, milliseconds(started))
        };
        Ok(Reply { text, tokens: context[prompt..].to_vec(), rounds, summary, stop })
    }
}

/// State of a reply.
struct Writing<'a> {
    target: &'a mut dyn Model,
    drafters: &'a mut Drafters,
    request: &'a Request,
    sampler: Sampler,
    output: Output<'a>,
    started: Instant,
    /// Prompt and reply so far. The target's cache holds all but the last token.
    context: Context,
    reused: usize,
    /// Reused tokens whose caches were read from files.
    restored: usize,
    rounds: Vec<Round>,
}

impl<'a> Writing<'a> {
    fn new(
        decoder: &'a mut Decoder,
        request: &'a Request,
        drafters: &'a mut Drafters,
        started: Instant,
    ) -> Result<Self> {
        decoder.check(request)?;
        let sampler = decoder.sampler(request)?;
        let text = TextStream::new(Arc::clone(&decoder.tokenizer), &request.stop).after(&request.prompt);
        Ok(Self {
            target: decoder.target.as_mut(),
            output: Output {
                tokenizer: &decoder.tokenizer,
                text: if request.continues { text.continuing(&request.unfinished) } else { text },
                ignore_end: request.ignore_end,
                loops: (request.sampling.stop_loops && !request.ignore_end).then(Loops::default),
            },
            drafters,
            request,
            sampler,
            started,
            context: Context::new(request.prompt.clone()),
            reused: 0,
            restored: 0,
            rounds: Vec::new(),
        })
    }

    fn run(&mut self, on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>) -> Result<Finish> {
        let mut on_prompt = |done, total| on_progress(Progress::Prompt { done, total });
        self.drafters.begin_reply(self.kind(), &self.request.speculation);
        let cached = rewind(self.target, &self.context);
        let kept = self.drafters.kept(&self.context, &self.request.speculation, cached);
        self.target.truncate(kept);
        let start = Instant::now();
        let (reused, carried) = self.catch_up(None, &mut on_prompt)?;
        (self.reused, self.restored) = (reused, self.target.restored());
        self.drafters.learn_prompt(self.context.len().saturating_sub(1 + reused), milliseconds(start));
        if carried.is_break() {
            return Ok(Finish::Cancelled);
        }
        if self.request.max_tokens == Some(0) {
            return Ok(Finish::Length);
        }
        let mut waits = self.waits();
        if waits.is_none() && self.prepare_drafters(&mut on_prompt)?.is_break() {
            return Ok(Finish::Cancelled);
        }
        loop {
            let mut on_prompt = |done, total| on_progress(Progress::Prompt { done, total });
            if rerun_if_outgrown(self.target, &self.context, &mut on_prompt)?.is_break() {
                return Ok(Finish::Cancelled);
            }
            if waits.is_none() && self.replay_missing(&mut on_prompt)?.is_break() {
                return Ok(Finish::Cancelled);
            }
            let (round, finish) = self.round(waits)?;
            let stopped = on_progress(Progress::Round(&round)).is_break();
            self.rounds.push(round);
            if let Some(finish) = finish {
                return Ok(finish);
            }
            let mut on_prompt = |done, total| on_progress(Progress::Prompt { done, total });
            if stopped {
                return Ok(Finish::Cancelled);
            }
            if waits.is_some() {
                waits = self.waits();
                if waits.is_none() && self.prepare_drafters(&mut on_prompt)?.is_break() {
                    return Ok(Finish::Cancelled);
                }
            }
        }
    }

    /// Reason why the next round is plain whatever would be drafted; `None` if drafts may begin.
    fn waits(&self) -> Option<LengthReason> {
        let is_first = self.rounds.is_empty();
        if self.drafters.needs_plain_rounds(&self.request.speculation) {
            return Some(if is_first { LengthReason::FirstToken } else { LengthReason::Probe });
        }
        (is_first && self.drafters.delays_first_token(self.round_input())).then_some(LengthReason::FirstToken)
    }

    /// Expected kind of text of the reply, by the end of the prompt.
    fn kind(&self) -> TextKind {
        let end = &self.context[self.context.len().saturating_sub(END)..];
        let bytes = end.iter().flat_map(|&token| self.output.tokenizer.decode_bytes(token));
        let end: Vec<u8> = bytes.copied().collect();
        TextKind::of(&String::from_utf8_lossy(&end), &self.request.sampling)
    }

    fn prepare_drafters(
        &mut self,
        on_prompt: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let speculation = &self.request.speculation;
        if self.drafters.is_empty() || speculation.is_off() {
            return Ok(ControlFlow::Continue(()));
        }
        let (room, vocabulary) = (self.room_for_drafts(), self.target.config().vocabulary);
        let input = RoundInput { context: &self.context, speculation, room, vocabulary };
        Ok(self.drafters.prepare(input, on_prompt))
    }

    /// Fills the target's cache with the context except its last token. The drafters observe what
    /// is run, or with `gap` only the drafter that missed it. See [`catch_up_with`].
    fn catch_up(
        &mut self,
        gap: Option<&FeatureGap>,
        on_prompt: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<(usize, ControlFlow<()>)> {
        let (drafters, context) = (&mut *self.drafters, &self.context);
        let is_off = self.request.speculation.is_off();
        let taps = drafters.taps().clone();
        let mut start = Instant::now();
        let mut on_chunk = |PrefillChunk { at, tokens, total, features }: PrefillChunk<'_>| {
            let observed = Observation { at, tokens, rows: None, features };
            match gap {
                _ if is_off => {}
                Some(gap) => drafters.observe_again(gap, &observed, start),
                None => drafters.observe(&observed),
            }
            let goes_on = on_prompt(at + tokens.len(), total);
            start = Instant::now();
            goes_on
        };
        catch_up_with(self.target, context, &taps, &mut on_chunk)
    }

    /// Runs tokens again whose hidden states the next drafter is missing.
    fn replay_missing(
        &mut self,
        on_prompt: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let gap = self.drafters.feature_gap(self.round_input());
        let Some(gap) = gap else { return Ok(ControlFlow::Continue(())) };
        self.target.truncate(self.context.len().saturating_sub(1 + gap.tokens));
        let carried = self.catch_up(Some(&gap), on_prompt)?.1;
        if carried.is_continue() {
            self.drafters.require_features(&gap, &self.context);
        }
        Ok(carried)
    }

    /// Runs a round, without drafts if it `waits` for a reason. Afterwards the target's cache holds
    /// the context except its last token.
    fn round(&mut self, waits: Option<LengthReason>) -> Result<(Round, Option<Finish>)> {
        let start = Instant::now();
        self.sampler.follow(&self.context);
        let (vocabulary, room) = (self.target.config().vocabulary, self.room());
        let fills = self.target.config().context - self.context.len() == room;
        let full = if fills { Finish::ContextFull } else { Finish::Length };
        let drafting = if let Some(reason) = waits {
            Drafting::none(reason)
        } else {
            let (speculation, room) = (&self.request.speculation, self.room_for_drafts());
            let input = RoundInput { context: &self.context, speculation, room, vocabulary };
            self.drafters.draft(input, &mut self.sampler)
        };
        let draft_ms = milliseconds(start);

        let verify_start = Instant::now();
        let tree = self.context.last().map_or_else(TokenTree::default, |&last| drafting.guesses.tree(last));
        let asked = self.request.logprobs;
        let subset = asked.map_or_else(|| self.sampler.logit_subset(1), |_| LogitSubset::Everything);
        let guesses = &drafting.guesses;
        let paths = (0..guesses.len()).map(|guess| guesses.path(Some(guess)));
        let penalised = self.sampler.rules.penalties.tokens(&self.context, paths);
        let want = Want::all_rows().subset(subset).penalised(&penalised).features(self.drafters.taps());
        let pass = self.target.run(&tree, &want)?;
        let (logits, experts) = (pass.logits(), pass.experts_read());
        let verify_ms = milliseconds(verify_start);

        let sample_start = Instant::now();
        let verification = self.request.speculation.rule();
        let (verdict, judged) =
            judge(&drafting.guesses, verification, &logits, &self.context, &mut self.sampler)?;
        let kept: Vec<usize> =
            std::iter::once(None).chain(verdict.path.iter().copied().map(Some)).map(Guesses::row).collect();
        let accepted = verdict.path.iter().map(|&guess| drafting.guesses[guess].token);
        let emission = self.output.emit(accepted.chain([verdict.extra]), room, full);
        let kept = &kept[..emission.tokens.len()];
        if !self.request.speculation.is_off() {
            let tokens: Vec<TokenId> = kept.iter().map(|&node| tree.token(node)).collect();
            let rows: Vec<Row<'_>> = kept.iter().map(|&node| logits.row(node)).collect();
            let at = self.context.len() - 1;
            let states = pass.features().map(|features| (features.gather(kept), features.width()));
            let features = states.as_ref().map(|(rows, width)| Features::new(rows, *width));
            self.drafters.observe(&Observation { at, tokens: &tokens, rows: Some(&rows), features });
        }
        let logprobs = asked.map_or(Ok(Vec::new()), |top| {
            let written = kept.iter().zip(&emission.tokens);
            written.map(|(&node, &token)| Logprobs::of(logits.row(node), token, top)).collect()
        })?;
        pass.keep(kept)?;
        self.context.extend(emission.tokens.iter().copied());
        let sample_ms = milliseconds(sample_start);

        let (finish, tokens) = (emission.finish, emission.tokens.clone());
        let mut round = self.record(&drafting, &verdict, &judged, emission);
        let rest_ms = milliseconds(start) - draft_ms - verify_ms - sample_ms;
        round.times = Times {
            draft_ms: to_microseconds(draft_ms),
            verify_ms: to_microseconds(verify_ms),
            sample_ms: to_microseconds(sample_ms),
            rest_ms: to_microseconds(rest_ms),
        };
        round.logprobs = logprobs;
        round.experts = experts.map(|experts| ((experts * 1e2).round() / 1e2) as f32);
        round.at_ms = to_microseconds(milliseconds(self.started));
        self.drafters.learn(&round, &drafting, &tokens);
        if waits.is_some() {
            self.drafters.learn_plain_pass(verify_ms);
        }
        Ok((round, finish))
    }

    /// Inputs of the next round's drafts.
    fn round_input(&self) -> RoundInput<'_> {
        RoundInput {
            context: &self.context,
            speculation: &self.request.speculation,
            room: self.room_for_drafts(),
            vocabulary: self.target.config().vocabulary,
        }
    }

    /// Room for drafts. A draft never crosses the target's RoPE switch length: tokens beyond it
    /// would be scored differently than by plain decoding.
    fn room_for_drafts(&self) -> Room {
        let switch = self.target.config().rope_switch_length();
        let to_switch = switch.and_then(|switch| switch.checked_sub(self.context.len()));
        Room::new(to_switch.map_or(usize::MAX, |tokens| tokens + 1).min(self.room()))
    }

    /// Number of tokens that may still be written.
    fn room(&self) -> usize {
        let context = self.target.config().context - self.context.len();
        let written = self.context.len() - self.request.prompt.len();
        self.request.max_tokens.map_or(context, |most| context.min(most - written))
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Rounds to microseconds: further digits are noise and only take space in traces.
fn to_microseconds(milliseconds: f64) -> f32 {
    ((milliseconds * 1e3).round() / 1e3) as f32
}
