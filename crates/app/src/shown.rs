//! What a page is shown of the engine: the board, which the worker writes, and over it what a person has chosen and
//! the worker has not taken up yet.

use std::sync::{Arc, Mutex};

use crate::board::Board;
use crate::ipc::{EngineChange, EngineStatus, Settings};
use crate::lock::lock;

/// What was chosen, by the number of the settings that said so.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    pub revision: u64,
    pub target: String,
    /// `None` where that is left to the worker.
    pub draft: Option<String>,
}

impl Wish {
    pub fn of(settings: &Settings, revision: u64) -> Self {
        let draft = settings.drafts.get(&settings.target).cloned();
        Self { revision, target: settings.target.clone(), draft }
    }

    /// The choice shows at once, also while a reply is under way.
    fn over(&self, status: &mut EngineStatus) {
        let loaded = status.target.as_ref().is_some_and(|target| target.id == self.target);
        if let Some(draft) = self.draft.as_ref().filter(|_| loaded && status.revision < self.revision) {
            status.draft.clone_from(draft);
        }
    }
}

/// What one watcher knows.
#[derive(Default)]
struct View {
    status: Option<EngineStatus>,
    wish: Wish,
}

/// Calls `watcher` with the present status at once and with every later one, until it returns false.
pub fn watch(
    board: &Board,
    wishes: &Board<Wish>,
    watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static,
) {
    let (on_wish, on_status) = over_wishes(watcher);
    wishes.watch(on_wish);
    board.watch(on_status);
}

/// The same for the page, see [`Board::watch_from_page`].
pub fn watch_from_page(
    board: &Board,
    wishes: &Board<Wish>,
    watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static,
) {
    let (on_wish, on_status) = over_wishes(watcher);
    wishes.watch_from_page(on_wish);
    board.watch_from_page(on_status);
}

/// What watches the wishes, and then what watches the board, for one who is to see the one over the other.
fn over_wishes(
    watcher: impl Fn(&EngineStatus) -> bool + Send + Sync + 'static,
) -> (impl Fn(&Wish) -> bool + Send + 'static, impl Fn(&EngineStatus) -> bool + Send + 'static) {
    let (view, watcher) = (Arc::<Mutex<View>>::default(), Arc::new(watcher));
    let show = move |change: &dyn Fn(&mut View)| {
        let mut view = lock(&view);
        change(&mut view);
        let Some(mut status) = view.status.clone() else { return true };
        view.wish.over(&mut status);
        watcher(&status)
    };
    let show_wish = show.clone();
    (
        move |wish: &Wish| show_wish(&|view| view.wish.clone_from(wish)),
        move |status: &EngineStatus| show(&|view| view.status = Some(status.clone())),
    )
}

/// The same, told of changes alone: all of the present status, then what is different.
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
    fn a_choice_shows_at_once_until_the_worker_has_taken_it_up() {
        let (board, wishes) = (Board::starting(), Board::showing(Wish::default()));
        let target = InstalledModel::added("/nowhere/a.gguf").entry();
        let wish = Wish { revision: 2, target: target.id.clone(), draft: Some("chosen".to_owned()) };
        board.update(|status| {
            (status.target, status.draft, status.revision) = (Some(target), "before".to_owned(), 1);
        });
        let (sender, shown) = mpsc::channel();
        watch(&board, &wishes, move |status| sender.send(status.draft.clone()).is_ok());
        wishes.update(|shown| *shown = wish);
        board.update(|status| status.phase = EnginePhase::Replying);
        board.update(|status| (status.draft, status.revision) = ("instead".to_owned(), 2));
        assert_eq!(shown.try_iter().collect::<Vec<_>>(), ["before", "chosen", "chosen", "instead"]);
    }

    #[test]
    fn who_is_told_changes_hears_all_of_the_first_status_then_what_is_different_and_nothing_of_the_same() {
        let (board, wishes) = (Board::starting(), Board::showing(Wish::default()));
        let target = InstalledModel::added("/nowhere/a.gguf").entry();
        let wish = Wish { revision: 2, target: target.id.clone(), draft: Some("chosen".to_owned()) };
        board.update(|status| (status.target, status.revision) = (Some(target), 1));
        let (sender, changed) = mpsc::channel();
        watch(&board, &wishes, changes(move |change| sender.send(change).is_ok()));
        let whole = changed.try_recv().unwrap();
        assert_eq!(whole, board.status().changes(None));
        wishes.update(|shown| *shown = wish);
        let difference = changed.try_recv().unwrap();
        assert_eq!(serde_json::Value::from(difference), serde_json::json!({ "draft": "chosen" }));
        // The worker takes up what shows already.
        board.update(|status| (status.draft, status.revision) = ("chosen".to_owned(), 2));
        assert_eq!(changed.try_iter().count(), 0);
    }

    #[test]
    fn of_a_page_that_is_opened_again_and_again_one_watcher_is_left() {
        let (board, wishes) = (Board::starting(), Board::showing(Wish::default()));
        let held = Arc::new(());
        for _ in 0..50 {
            let held = Arc::clone(&held);
            watch_from_page(&board, &wishes, move |_| Arc::strong_count(&held) > 0);
        }
        assert_eq!(Arc::strong_count(&held), 2);
    }
}
