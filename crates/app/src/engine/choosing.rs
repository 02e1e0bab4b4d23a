//! Choice of the draft for the loaded target: keeps the list of candidates and takes the best.

use foretoken_forward::device::free_memory;
use foretoken_model::ProblemKind;

use super::local::{Choice, Local};
use crate::ipc::{CommandError, DraftOption, Problem};
use crate::models::LoadedTarget;
use crate::models::drafts::{choose, rank, usable};

impl Local {
    /// Lists the drafts for the target, the best first, and chooses one. The choice stays while it
    /// is usable and the settings do not change: a new model changes no draft.
    pub(super) fn choose_draft(&mut self) {
        self.compare_drafts();
        let Some(target) = &self.target else { return };
        let asked = self.settings.drafts.get(&target.id).cloned();
        let room = self.room();
        let mut candidates = std::mem::take(&mut self.candidates);
        for candidate in &mut candidates {
            let tried = self.trials.get(&(target.id.clone(), candidate.option.id.clone()));
            candidate.speedup = tried.copied();
            candidate.room = self.drafts_now(&candidate.option.id) || candidate.needs <= room;
        }
        rank(&mut candidates);
        let before = self.choice.take().filter(|choice| choice.asked == asked);
        let stays =
            before.filter(|choice| usable(&candidates, &choice.id).is_some() || self.drafts_now(&choice.id));
        self.choice = stays.or_else(|| {
            let id = choose(&candidates, asked.as_deref())?.option.id.clone();
            Some(Choice { id, asked })
        });
        self.candidates = candidates;
        let options = self.draft_options();
        let draft = self.chosen_draft().to_owned();
        let revision = self.revision;
        self.status.update(|status| {
            (status.drafts, status.draft, status.revision) = (options, draft, revision);
        });
    }

    /// Compares the listed models with the target, unless they were compared with it already.
    fn compare_drafts(&mut self) {
        let Some(target) = &self.target else { return };
        if self.listed_for.as_ref() != Some(&target.id) {
            let beside = LoadedTarget { entry: &target.entry, path: target.session.path() };
            self.candidates = self.models.drafts(&self.listed, &beside);
            self.listed_for = Some(target.id.clone());
        }
    }

    /// Returns the candidates for the target, the best first.
    pub(super) fn draft_options(&self) -> Vec<DraftOption> {
        self.candidates.iter().map(|candidate| candidate.option.clone()).collect()
    }

    /// Returns the id of the draft; empty before one was chosen.
    pub(super) fn chosen_draft(&self) -> &str {
        self.choice.as_ref().map_or("", |choice| &choice.id)
    }

    /// Excludes the chosen draft, which could not be loaded, and chooses another.
    pub(super) fn refuse_draft(&mut self, error: &CommandError) {
        let Some(Choice { id, .. }) = self.choice.take() else { return };
        tracing::warn!("{id} cannot draft: {}", error.message);
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.option.id == id) {
            let (kind, reason) = (ProblemKind::CannotBeLoaded, error.message.clone());
            candidate.option.problem = Some(Problem { kind, reason });
        }
        self.choose_draft();
    }

    fn drafts_now(&self, id: &str) -> bool {
        self.target.as_ref().is_some_and(|target| target.session.draft.id == id)
    }

    /// Returns the bytes free for a draft: the target is in memory already, and a larger draft
    /// would evict it.
    pub(super) fn room(&self) -> u64 {
        let choice = self.draft_device();
        let gpu =
            self.target.as_ref().and_then(|target| target.session.draft_device(choice.as_ref()).memory());
        gpu.map_or_else(free_memory, |gpu| gpu.free_bytes)
    }
}
