//! A value, and everyone who wants to know when it changes: the engine's status, the downloads.

use std::sync::{Mutex, MutexGuard};

use foretoken_engine::device::DeviceChoice;

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
            targets: Vec::new(),
            drafts: Vec::new(),
            draft: String::new(),
            why,
            device: String::new(),
            device_choice: DeviceChoice::default(),
            draft_device: None,
            device_remarks: Vec::new(),
            devices: Vec::new(),
            memory: MemoryUse::default(),
            revision: 0,
        };
        Self::showing(status)
    }
}

impl<T: Clone + PartialEq> Board<T> {
    pub fn showing(status: T) -> Self {
        Self { inner: Mutex::new(Inner { status, watchers: Vec::new() }) }
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
            let Inner { status, watchers } = &mut *inner;
            watchers.retain(|watcher| watcher(status));
        }
    }

    /// Tells `watcher` the present value at once and every later one.
    pub fn watch(&self, watcher: impl Fn(&T) -> bool + Send + 'static) {
        let mut inner = self.lock();
        if watcher(&inner.status) {
            inner.watchers.push(Box::new(watcher));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        lock(&self.inner)
    }
}
