//! A value, and everyone who wants to know when it changes: the engine's status, the downloads.

use std::sync::{Mutex, MutexGuard};

use foretoken_engine::device::DeviceChoice;
use foretoken_engine::sampling::ModelPenalties;

use crate::ipc::{EnginePhase, EngineStatus, MemoryUse, Why};
use crate::lock::lock;

/// Told of every new value; false when it is no longer interested.
type Watcher<T> = Box<dyn Fn(&T) -> bool + Send>;

pub struct Board<T = EngineStatus> {
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    status: T,
    watchers: Vec<Watcher<T>>,
    /// A page that is opened again is the same listener.
    page: Option<Watcher<T>>,
}

impl Board {
    /// A board that says the engine is starting.
    pub fn starting() -> Self {
        let why = Why::off("no model is loaded yet");
        let status = EngineStatus {
            phase: EnginePhase::Loading,
            message: None,
            loading: None,
            target: None,
            thinks: None,
            penalties: ModelPenalties::default(),
            targets: Vec::new(),
            drafts: Vec::new(),
            draft: String::new(),
            why,
            device: String::new(),
            device_choice: DeviceChoice::default(),
            draft_device: None,
            device_remarks: Vec::new(),
            device_notes: Vec::new(),
            devices: Vec::new(),
            memory: MemoryUse::default(),
            reading_rate: None,
            revision: 0,
        };
        Self::showing(status)
    }
}

impl<T: Clone + PartialEq> Board<T> {
    pub fn showing(status: T) -> Self {
        Self { inner: Mutex::new(Inner { status, watchers: Vec::new(), page: None }) }
    }

    pub fn status(&self) -> T {
        self.lock().status.clone()
    }

    /// Changes the value and tells everyone, unless nothing changed.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        let mut inner = self.lock();
        let before = inner.status.clone();
        change(&mut inner.status);
        if inner.status != before {
            let Inner { status, watchers, page } = &mut *inner;
            watchers.retain(|watcher| watcher(status));
            page.take_if(|watcher| !watcher(status));
        }
    }

    /// Tells `watcher` the present value at once and every later one.
    pub fn watch(&self, watcher: impl Fn(&T) -> bool + Send + 'static) {
        let mut inner = self.lock();
        if watcher(&inner.status) {
            inner.watchers.push(Box::new(watcher));
        }
    }

    /// The same for the page, in the place of the one that it was before it was opened again: nobody hears that one
    /// any more, and it is let go.
    pub fn watch_from_page(&self, watcher: impl Fn(&T) -> bool + Send + 'static) {
        let mut inner = self.lock();
        inner.page = watcher(&inner.status).then(|| Box::new(watcher) as Watcher<T>);
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        lock(&self.inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn fifty_reloads_leave_one_watcher_and_those_before_are_let_go() {
        let board = Board::showing(0);
        let (sender, heard) = mpsc::channel();
        let held = Arc::new(());
        for page in 0..50 {
            let (sender, held) = (sender.clone(), Arc::clone(&held));
            board.watch_from_page(move |value| {
                let _held = &held;
                sender.send((page, *value)).is_ok()
            });
        }
        assert_eq!(Arc::strong_count(&held), 2);
        assert_eq!(heard.try_iter().count(), 50, "each was told what there was");
        board.update(|value| *value = 1);
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [(49, 1)]);
        let elsewhere = sender.clone();
        board.watch(move |value| elsewhere.send((100, *value)).is_ok());
        board.update(|value| *value = 2);
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [(100, 1), (100, 2), (49, 2)], "others stay");
    }
}
