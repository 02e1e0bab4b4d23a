//! Status of the engine for the page: the worker's status, overlaid with the user's newest choice
//! until the worker has applied it.

use std::sync::{Arc, Mutex};

use crate::ipc::{EngineChange, EngineStatus, Settings};
use crate::lock::lock;
use crate::observable::Observable;

/// A choice in the settings, with their revision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PendingChoice {
    pub revision: u64,
    pub target: String,
    /// Chosen draft; `None` lets the worker choose.
    pub draft: Option<String>,
}

impl PendingChoice {
    pub fn of(settings: &Settings, revision: u64) -> Self {
        let draft = settings.drafts.get(&settings.target).cloned();
        Self { revision, target: settings.target.clone(), draft }
    }

    /// Shows the choice immediately, even during a reply.
    fn over(&self, status: &mut EngineStatus) {
        let loaded = status.target.as_ref().is_some_and(|target| target.id == self.target);
        if let Some(draft) = self.draft.as_ref().filter(|_| loaded && status.revision < self.revision) {
            status.draft.clone_from(draft);
        }
    }
}

/// State of one watcher.
#[derive(Default)]
struct View {
    status: Option<EngineStatus>,
    choice: PendingChoice,
}

/// Calls `watcher` with the current status immediately and with every later one, until it returns
/// false.
pub fn watch(
    status: &Observable,
    pending: &Observable<PendingChoice>,
    watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static,
) {
    let (on_choice, on_status) = with_pending(watcher);
    pending.watch(on_choice);
    status.watch(on_status);
}

/// Watches the status for the page, see [`Observable::watch_from_page`].
pub fn watch_from_page(
    status: &Observable,
    pending: &Observable<PendingChoice>,
    watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static,
) {
    let (on_choice, on_status) = with_pending(watcher);
    pending.watch_from_page(on_choice);
    status.watch_from_page(on_status);
}

/// Returns the watchers of the choice and of the status, which call `watcher` with both combined.
fn with_pending(
    watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static,
) -> (impl Fn(&PendingChoice) -> bool + Send + 'static, impl Fn(&EngineStatus) -> bool + Send + 'static) {
    let (view, watcher) = (Arc::<Mutex<View>>::default(), Arc::new(watcher));
    let show = move |change: &dyn Fn(&mut View)| {
        let mut view = lock(&view);
        change(&mut view);
        let Some(mut status) = view.status.clone() else { return true };
        view.choice.over(&mut status);
        watcher(&status)
    };
    let show_choice = show.clone();
    (
        move |choice: &PendingChoice| show_choice(&|view| view.choice.clone_from(choice)),
        move |status: &EngineStatus| show(&|view| view.status = Some(status.clone())),
    )
}

/// Converts a watcher of changes: the first change is the whole status, later ones only what
/// differs.
pub fn changes(
    watcher: impl Fn(EngineChange) -> bool + Send + Sync + 'static,
) -> impl Fn(&EngineStatus) -> bool + Send + Sync + 'static {
    let before = Mutex::new(None);
    move |status| {
        let mut before = lock(&before);
        let change = status.changes(before.as_ref());
        *before = Some(status.clone());
        change.is_empty() || watcher(change)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::ipc::EnginePhase;
    use crate::models::InstalledModel;

    #[test]
    fn a_choice_shows_immediately_until_the_worker_has_applied_it() {
        let (status, pending) = (Observable::starting(), Observable::new(PendingChoice::default()));
        let target = InstalledModel::added("/nowhere/a.gguf").unread();
        let choice =
            PendingChoice { revision: 2, target: target.id.clone(), draft: Some("chosen".to_owned()) };
        status.update(|status| {
            (status.target, status.draft, status.revision) = (Some(target), "before".to_owned(), 1);
        });
        let (sender, shown) = mpsc::channel();
        watch(&status, &pending, move |status| sender.send(status.draft.clone()).is_ok());
        pending.update(|shown| *shown = choice);
        status.update(|status| status.phase = EnginePhase::Replying);
        status.update(|status| (status.draft, status.revision) = ("instead".to_owned(), 2));
        assert_eq!(shown.try_iter().collect::<Vec<_>>(), ["before", "chosen", "chosen", "instead"]);
    }

    #[test]
    fn a_watcher_of_changes_receives_the_whole_status_then_only_differences() {
        let (status, pending) = (Observable::starting(), Observable::new(PendingChoice::default()));
        let target = InstalledModel::added("/nowhere/a.gguf").unread();
        let choice =
            PendingChoice { revision: 2, target: target.id.clone(), draft: Some("chosen".to_owned()) };
        status.update(|status| (status.target, status.revision) = (Some(target), 1));
        let (sender, changed) = mpsc::channel();
        watch(&status, &pending, changes(move |change| sender.send(change).is_ok()));
        let whole = changed.try_recv().unwrap();
        assert_eq!(whole, status.get().changes(None));
        pending.update(|shown| *shown = choice);
        let difference = changed.try_recv().unwrap();
        assert_eq!(serde_json::Value::from(difference), serde_json::json!({ "draft": "chosen" }));
        // The worker applies the choice that is shown already.
        status.update(|status| (status.draft, status.revision) = ("chosen".to_owned(), 2));
        assert_eq!(changed.try_iter().count(), 0);
    }

    #[test]
    fn a_page_that_is_reloaded_repeatedly_leaves_one_watcher() {
        let (status, pending) = (Observable::starting(), Observable::new(PendingChoice::default()));
        let held = Arc::new(());
        for _ in 0..50 {
            let held = Arc::clone(&held);
            watch_from_page(&status, &pending, move |_| Arc::strong_count(&held) > 0);
        }
        assert_eq!(Arc::strong_count(&held), 2);
    }
}
