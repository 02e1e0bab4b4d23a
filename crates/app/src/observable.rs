//! A value with watchers that are called when it changes: the engine's status, the downloads.

use std::sync::{Mutex, MutexGuard};

use foretoken_forward::device::{DeviceChoice, DeviceLabel};
use foretoken_model::sampling::ModelPenalties;

use crate::ipc::{EnginePhase, EngineStatus, MemoryUse, OffReason, Why};
use crate::lock::lock;

/// Called with every new value; returns false to stop watching.
type Watcher<T> = Box<dyn Fn(&T) -> bool + Send>;

pub struct Observable<T = EngineStatus> {
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    status: T,
    watchers: Vec<Watcher<T>>,
    /// Watcher of the page; a reloaded page replaces it.
    page: Option<Watcher<T>>,
}

impl Observable {
    /// Creates a status that says the engine is starting.
    pub fn starting() -> Self {
        let why = Why::off(OffReason::Starting);
        let status = EngineStatus {
            phase: EnginePhase::Loading,
            message: None,
            loading: None,
            target: None,
            thinks: None,
            sees: false,
            merges_system: false,
            penalties: ModelPenalties::default(),
            targets: Vec::new(),
            drafts: Vec::new(),
            draft: String::new(),
            why,
            device: DeviceLabel::default(),
            device_choice: DeviceChoice::default(),
            draft_device: None,
            device_remarks: Vec::new(),
            device_notes: Vec::new(),
            devices: Vec::new(),
            memory: MemoryUse::default(),
            reading_rate: None,
            read_context: None,
            revision: 0,
        };
        Self::new(status)
    }
}

impl<T: Clone + PartialEq> Observable<T> {
    pub fn new(status: T) -> Self {
        Self { inner: Mutex::new(Inner { status, watchers: Vec::new(), page: None }) }
    }

    pub fn get(&self) -> T {
        self.lock().status.clone()
    }

    /// Changes the value and calls the watchers if it changed.
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

    /// Calls `watcher` with the current value immediately and with every later one.
    pub fn watch(&self, watcher: impl Fn(&T) -> bool + Send + 'static) {
        let mut inner = self.lock();
        if watcher(&inner.status) {
            inner.watchers.push(Box::new(watcher));
        }
    }

    /// Watches for the page: replaces and drops the watcher of the page before a reload.
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
    fn fifty_reloads_leave_one_watcher_and_drop_the_earlier_ones() {
        let value = Observable::new(0);
        let (sender, received) = mpsc::channel();
        let held = Arc::new(());
        for page in 0..50 {
            let (sender, held) = (sender.clone(), Arc::clone(&held));
            value.watch_from_page(move |value| {
                let _held = &held;
                sender.send((page, *value)).is_ok()
            });
        }
        assert_eq!(Arc::strong_count(&held), 2);
        assert_eq!(received.try_iter().count(), 50, "each received the current value");
        value.update(|value| *value = 1);
        assert_eq!(received.try_iter().collect::<Vec<_>>(), [(49, 1)]);
        let other = sender.clone();
        value.watch(move |value| other.send((100, *value)).is_ok());
        value.update(|value| *value = 2);
        assert_eq!(received.try_iter().collect::<Vec<_>>(), [(100, 1), (100, 2), (49, 2)], "others stay");
    }
}
