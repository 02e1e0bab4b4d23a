//! Who compiles and renders chat templates.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::ask::{Answer, Ask};
use super::child::{Child, Program};
use super::jinja::Jinja;

/// Compiles and renders chat templates, one after the other.
pub struct Renderer(Place);

/// Where it does so.
enum Place {
    Child(Child),
    Here(Box<Mutex<Jinja>>),
}

impl Renderer {
    /// A child process of this program, started when it is first needed. The program has to begin with
    /// [`super::serve_if_asked`] and to allocate by [`super::Bounded`].
    pub fn this_program() -> Arc<Self> {
        Arc::new(Self(Place::Child(Child::of(Program::This))))
    }

    /// A child process of another such program.
    pub fn program(path: PathBuf) -> Arc<Self> {
        Arc::new(Self(Place::Child(Child::of(Program::At(path)))))
    }

    /// This process: for tests with templates of their own. A stranger's can take all memory, overflow the stack and
    /// keep it busy for hours.
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
