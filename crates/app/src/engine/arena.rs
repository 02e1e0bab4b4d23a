//! The arena on the engine thread: prepares the drafts of both set-ups and lets them reply.

use foretoken_engine::arena::{self, Contender, Event, Run};
use foretoken_engine::check;
use foretoken_engine::decoder::{Reply, Request};
use foretoken_engine::draft::Drafters;
use foretoken_engine::session::Draft;
use foretoken_engine::trace::Summary;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::{ChatMessage, Role};

use super::job::OnArena;
use super::local::Local;
use super::replying::{request, speculation};
use crate::cancel::Cancel;
use crate::error::{Result, bad_setting};
use crate::ipc::{
    ARENA_PAIRS, ARENA_TOKENS, Arena, ArenaEvent, ArenaRequest, ArenaRun, ArenaSetup, DRAFT_NONE, Settings,
    Setup, Verdict,
};

impl Local {
    /// # Errors
    /// Returns `BadSetting`, `EmptyPrompt`, `NoTarget`, `BadModel` for a draft that cannot be used,
    /// `Cancelled`.
    pub(super) fn arena(
        &mut self,
        asked: &ArenaRequest,
        on_event: &OnArena,
        cancel: &Cancel,
    ) -> Result<Arena> {
        validate(asked)?;
        let mut drafts = self.drafts(asked)?;
        let outcome = self.contest(asked, &mut drafts, on_event, cancel);
        // The draft of the settings returns to its place, with its earlier conversations.
        self.restore_draft(drafts);
        let why = self.prepare_draft();
        self.status.update(|status| status.why = why);
        outcome
    }

    /// Opens the drafts of both set-ups, each once.
    fn drafts(&mut self, asked: &ArenaRequest) -> Result<Vec<Draft>> {
        let mut drafts = vec![std::mem::take(&mut self.loaded()?.session.draft)];
        for setup in &asked.setups {
            if drafts.iter().all(|draft| draft.id != setup.draft) {
                match self.draft_for(setup) {
                    Ok(draft) => drafts.push(draft),
                    Err(error) => {
                        self.restore_draft(drafts);
                        return Err(error);
                    }
                }
            }
        }
        Ok(drafts)
    }

    fn draft_for(&mut self, setup: &Setup) -> Result<Draft> {
        if setup.draft == DRAFT_NONE {
            return Ok(Draft::default().named(&setup.draft, "no draft"));
        }
        if let Some(option) = self.draft_options().iter().find(|option| option.id == setup.draft) {
            self.fits(option)?;
        }
        self.open_draft(&setup.draft, None)
    }

    /// Restores the chosen draft for conversations.
    fn restore_draft(&mut self, drafts: Vec<Draft>) {
        let chosen = drafts.into_iter().find(|draft| draft.id == self.chosen_draft());
        if let Some(target) = &mut self.target {
            target.session.draft = chosen.unwrap_or_default();
        }
    }

    fn contest(
        &mut self,
        asked: &ArenaRequest,
        drafts: &mut [Draft],
        on_event: &OnArena,
        cancel: &Cancel,
    ) -> Result<Arena> {
        let place = |setup: &Setup| drafts.iter().position(|draft| draft.id == setup.draft).unwrap_or(0);
        let places = asked.setups.each_ref().map(place);
        let setups = [0, 1].map(|which| {
            let setup = asked.setups[which].clone();
            ArenaSetup { draft: drafts[places[which]].label.clone(), setup }
        });
        let sampling = Sampling { mode: Mode::Reproducible, ..self.settings.sampling.clone() }.seeded();
        let requests = self.requests(asked, &sampling, cancel)?;
        let [first, second] = requests;
        let contenders = [
            Contender { request: first, drafters: places[0] },
            Contender { request: second, drafters: places[1] },
        ];
        let mut tokens = 0;
        let mut on_run = |event: Event<'_>| {
            match event {
                Event::Begun { pair, contender } => {
                    tokens = 0;
                    on_event(ArenaEvent::Run { pair: pair as u32, setup: contender as u32 });
                }
                Event::Round(round) => {
                    tokens += round.emitted().count() as u32;
                    let text = round.emitted().map(|(_, text)| text).collect();
                    on_event(ArenaEvent::Progress { tokens, at_ms: round.at_ms, text });
                }
                Event::Finished(run) => on_event(ArenaEvent::Finished { run: summed_up(run) }),
            }
            cancel.flow()
        };
        let mut drafters: Vec<Drafters> =
            drafts.iter_mut().map(|draft| std::mem::take(&mut draft.drafters)).collect();
        let session = &mut self.loaded()?.session;
        session.put_text_aside();
        let decoder = &mut session.decoder;
        let runs = arena::run(decoder, &contenders, &mut drafters, asked.pairs as usize, &mut on_run);
        for (draft, drafters) in drafts.iter_mut().zip(drafters) {
            draft.drafters = drafters;
        }
        let runs = runs.map_err(|error| self.failed(error))?;
        let target = self.loaded()?;
        Ok(Arena {
            id: 0,
            created_at: 0,
            prompt: asked.prompt.clone(),
            target: target.entry.label.clone(),
            device: target.session.device().label.to_string(),
            sampling,
            max_tokens: asked.max_tokens,
            setups: setups.to_vec(),
            verdict: verdict(&runs),
            first_difference: first_difference(&runs),
            texts: [0, 1]
                .map(|which| first_of(&runs, which).map_or_else(String::new, |reply| reply.text.clone()))
                .to_vec(),
            runs: runs.iter().map(summed_up).collect(),
        })
    }

    fn requests(
        &mut self,
        asked: &ArenaRequest,
        sampling: &Sampling,
        cancel: &Cancel,
    ) -> Result<[Request; 2]> {
        let settings = Settings { max_tokens: asked.max_tokens, ..self.settings.clone() };
        let session = &self.loaded()?.session;
        let question = ChatMessage::new(Role::User, asked.prompt.trim());
        let request = request(session, &[question], &[], &settings, &|| cancel.is_cancelled())?;
        request.admit(session.context())?;
        Ok(asked.setups.each_ref().map(|setup| Request {
            sampling: Sampling { mode: setup.mode, ..sampling.clone() },
            speculation: speculation(&setup.draft, &setup.speculation),
            ..request.clone()
        }))
    }
}

fn validate(asked: &ArenaRequest) -> Result<()> {
    if asked.prompt.trim().is_empty() {
        return Err(foretoken_model::Error::EmptyPrompt.into());
    }
    if !ARENA_PAIRS.contains(&asked.pairs) {
        return Err(bad_setting("pairs", "1 to 20", asked.pairs));
    }
    if !ARENA_TOKENS.contains(&asked.max_tokens) {
        return Err(bad_setting("tokens", "16 to 2048", asked.max_tokens));
    }
    for setup in &asked.setups {
        setup.speculation.validate()?;
    }
    Ok(())
}

fn summed_up(run: &Run) -> ArenaRun {
    let Summary { tokens, elapsed_ms, ttft_ms, tokens_per_second, acceptance_rate, tokens_per_round, .. } =
        run.reply.summary;
    ArenaRun {
        pair: run.pair as u32,
        setup: run.contender as u32,
        tokens,
        elapsed_ms,
        ttft_ms,
        tokens_per_second,
        acceptance_rate,
        tokens_per_round,
        curve: arena::curve(&run.reply.rounds),
    }
}

fn verdict(runs: &[Run]) -> Verdict {
    let time = |run: &Run| run.reply.summary.elapsed_ms / f64::from(run.reply.summary.tokens.max(1));
    let times: Vec<(usize, f64)> = runs.iter().map(|run| (run.contender, time(run))).collect();
    let arena::Verdict { winner, ratio, lowest, highest, pairs } = arena::verdict(&times);
    Verdict { winner: winner.map(|winner| winner as u32), ratio, lowest, highest, pairs: pairs as u32 }
}

fn first_of(runs: &[Run], contender: usize) -> Option<&Reply> {
    runs.iter().find(|run| run.contender == contender).map(|run| &run.reply)
}

fn first_difference(runs: &[Run]) -> Option<u32> {
    let [left, right] = [first_of(runs, 0)?, first_of(runs, 1)?];
    check::first_difference(&left.tokens, &right.tokens).map(|position| position as u32)
}
