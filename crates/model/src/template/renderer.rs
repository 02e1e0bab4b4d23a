//! Renderer of chat templates, in a child process or in this one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::ask::{Answer, Ask};
use super::child::{Child, Program};
use super::jinja::Jinja;

/// Compiles and renders chat templates, one at a time.
pub struct Renderer(Place);

/// Process that renders.
enum Place {
    Child(Child),
    Here(Box<Mutex<Jinja>>),
}

impl Renderer {
    /// Renders in a child process of this program, started on demand. The program must begin with
    /// [`super::serve_if_asked`] and use the allocator [`super::Bounded`].
    pub fn this_program() -> Arc<Self> {
        Arc::new(Self(Place::Child(Child::of(Program::This))))
    }

    /// Renders in a child process of another such program.
    pub fn program(path: PathBuf) -> Arc<Self> {
        Arc::new(Self(Place::Child(Child::of(Program::At(path)))))
    }

    /// Renders in this process, for tests with their own templates. An untrusted template could
    /// take all memory, overflow the stack or run for hours.
    pub fn in_this_process() -> Arc<Self> {
        Arc::new(Self(Place::Here(Box::default())))
    }

    pub(super) fn answer(&self, ask: &Ask<'_>) -> Answer {
        match &self.0 {
            Place::Child(child) => child.answer(ask),
            Place::Here(jinja) => jinja.lock().unwrap_or_else(PoisonError::into_inner).answer(ask),
        }
    }
}
