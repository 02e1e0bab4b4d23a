//! The arena on the engine thread: finds who drafts for the two set-ups, lets them meet, and names them for people.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foretoken_engine::arena::{self, Contender, Event, Run};
use foretoken_engine::check;
use foretoken_engine::decoder::{Reply, Request};
use foretoken_engine::draft::Drafters;
use foretoken_engine::model::{ChatMessage, Role};
use foretoken_engine::sampling::{Mode, Sampling};
use foretoken_engine::speculation::{DraftLength, DrafterChoice, Speculation, Staged, Threshold, Tree};
use foretoken_engine::trace::Summary;

use super::{Desk, Draft, no_target, request, speculation};
use crate::error::{Result, bad_setting};
use crate::ipc::{
    Arena, ArenaEvent, ArenaRequest, ArenaRun, ArenaSetup, DRAFT_NONE, Settings, Setup, Verdict,
};

/// Pairs of runs, and tokens of each.
const PAIRS: RangeInclusive<u32> = 1..=20;
const TOKENS: RangeInclusive<u32> = 16..=2048;

/// Hears what happens in the arena, on the engine thread.
pub type OnArena = Box<dyn Fn(ArenaEvent) + Send>;

impl Desk {
    /// # Errors
    /// `BadSetting`, `EmptyPrompt`, `NoTarget`, `BadModel` for a draft that cannot be used, `Cancelled`.
    pub(super) fn arena(&mut self, asked: &ArenaRequest, on_event: &OnArena) -> Result<Arena> {
        validate(asked)?;
        let mut drafts = self.drafts(asked)?;
        let outcome = self.contest(asked, &mut drafts, on_event);
        // The one of the settings goes back to its place, and remembers earlier conversations again.
        self.draft = drafts.into_iter().find(|draft| draft.id == self.chosen_draft());
        let why = self.settle_draft();
        self.board.update(|status| status.why = why);
        outcome
    }

    /// Who drafts for the two, each once.
    fn drafts(&mut self, asked: &ArenaRequest) -> Result<Vec<Draft>> {
        self.loaded()?;
        let mut drafts: Vec<Draft> = self.draft.take().into_iter().collect();
        for setup in &asked.setups {
            if drafts.iter().all(|draft| draft.id != setup.draft) {
                match self.draft_for(setup) {
                    Ok(draft) => drafts.push(draft),
                    Err(error) => {
                        self.draft = drafts.into_iter().find(|draft| draft.id == self.chosen_draft());
                        return Err(error);
                    }
                }
            }
        }
        Ok(drafts)
    }

    fn draft_for(&mut self, setup: &Setup) -> Result<Draft> {
        if setup.draft == DRAFT_NONE {
            let nobody = Drafters::default();
            let (id, label) = (setup.draft.clone(), "no draft".to_owned());
            return Ok(Draft { id, label, drafters: nobody, learned: None, place: None });
        }
        let options = self.board.status().drafts;
        if let Some(option) = options.iter().find(|option| option.id == setup.draft) {
            self.fits(option)?;
        }
        let target = self.target.as_ref().ok_or_else(no_target)?;
        self.open_draft(&setup.draft, target, &self.draft_device(target))
    }

    fn contest(&mut self, asked: &ArenaRequest, drafts: &mut [Draft], on_event: &OnArena) -> Result<Arena> {
        let place = |setup: &Setup| drafts.iter().position(|draft| draft.id == setup.draft).unwrap_or(0);
        let places = asked.setups.each_ref().map(place);
        let setups = [0, 1].map(|which| {
            let setup = asked.setups[which].clone();
            ArenaSetup { label: name(&setup, &drafts[places[which]].label), setup }
        });
        let sampling = Sampling { mode: Mode::Reproducible, ..self.settings.sampling.clone() }.seeded();
        let requests = self.requests(asked, &sampling)?;
        let [first, second] = requests;
        let contenders = [
            Contender { request: first, drafters: places[0] },
            Contender { request: second, drafters: places[1] },
        ];
        let stop = Arc::clone(&self.stop);
        let mut tokens = 0;
        let mut tell = |event: Event<'_>| {
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
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut drafters: Vec<Drafters> =
            drafts.iter_mut().map(|draft| std::mem::take(&mut draft.drafters)).collect();
        let decoder = &mut self.loaded()?.decoder;
        let runs = arena::run(decoder, &contenders, &mut drafters, asked.pairs as usize, &mut tell);
        for (draft, drafters) in drafts.iter_mut().zip(drafters) {
            draft.drafters = drafters;
        }
        let runs = runs.map_err(|error| self.failed(error))?;
        let status = self.board.status();
        Ok(Arena {
            id: 0,
            created_at: 0,
            prompt: asked.prompt.clone(),
            target: status.target.map_or_else(String::new, |target| target.label),
            device: status.device,
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

    fn requests(&mut self, asked: &ArenaRequest, sampling: &Sampling) -> Result<[Request; 2]> {
        let settings = Settings { max_tokens: asked.max_tokens, ..self.settings.clone() };
        let target = self.loaded()?;
        let question = ChatMessage { role: Role::User, content: asked.prompt.trim().to_owned() };
        let request = request(target, &[question], &settings)?;
        request.admit(target.decoder.target().config().context)?;
        Ok(asked.setups.each_ref().map(|setup| Request {
            sampling: Sampling { mode: setup.mode, ..sampling.clone() },
            speculation: speculation(&setup.draft, &setup.speculation),
            ..request.clone()
        }))
    }
}

fn validate(asked: &ArenaRequest) -> Result<()> {
    if asked.prompt.trim().is_empty() {
        return Err(foretoken_engine::Error::EmptyPrompt.into());
    }
    if !PAIRS.contains(&asked.pairs) {
        return Err(bad_setting("pairs", "1 to 20", asked.pairs));
    }
    if !TOKENS.contains(&asked.max_tokens) {
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

/// "Starter draft, K auto", and whatever else is not as it comes.
fn name(setup: &Setup, draft: &str) -> String {
    let Speculation { drafter, length, threshold, tree, staged, .. } = &setup.speculation;
    if setup.draft == DRAFT_NONE || setup.speculation.is_off() {
        return "no draft".to_owned();
    }
    // Of a model its name alone.
    let mut parts = vec![draft.split(" · ").next().unwrap_or(draft).to_owned()];
    parts.push(match length {
        DraftLength::Auto => "K auto".to_owned(),
        DraftLength::Fixed(length) => format!("K = {length}"),
    });
    parts.extend(match drafter {
        DrafterChoice::Combined => None,
        DrafterChoice::Model => Some("the model alone".to_owned()),
        DrafterChoice::Ngram => Some("n-grams alone".to_owned()),
        DrafterChoice::Recycling => Some("recycling alone".to_owned()),
    });
    parts.extend(match tree {
        Tree::Auto => None,
        Tree::Off => Some("chains".to_owned()),
        Tree::Width(width) => Some(format!("trees of width {width}")),
    });
    parts.extend(match threshold {
        Threshold::Off => None,
        Threshold::Auto => Some("threshold auto".to_owned()),
        Threshold::Fixed(least) => Some(format!("threshold {least}")),
    });
    parts.extend(match staged {
        Staged::Auto => None,
        Staged::Off => Some("not staged".to_owned()),
        Staged::On => Some("staged".to_owned()),
    });
    if setup.mode == Mode::Reproducible {
        parts.push("reproducible".to_owned());
    }
    parts.join(", ")
}
