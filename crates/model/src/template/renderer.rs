//! Renderer of chat templates, in a child process or in this one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::ask::{Answer, Ask, LONG_TEXT, TOO_LONG, TOO_MUCH, TOO_MUCH_MEMORY};
use super::jinja::Jinja;
use crate::child::{Child, Failure, Handler, LONGEST_ANSWER, Program, Task};

/// Rendering of templates as a task of the child process. A conversation of a million tokens takes
/// about 4 MB.
pub const TASK: Task = Task { name: "template", memory: 256 << 20, time: Duration::from_secs(5), start };

/// Compiles and renders chat templates, one at a time.
pub struct Renderer(Place);

/// Process that renders.
enum Place {
    Child { child: Child, program: Program },
    Here(Box<Mutex<Jinja>>),
}

impl Renderer {
    /// Renders in a child process of this program, started on demand. The program must begin with
    /// [`crate::child::serve_if_asked`], with [`TASK`] among its tasks, and use the allocator
    /// [`crate::child::Bounded`].
    pub fn this_program() -> Arc<Self> {
        Self::in_child(Program::This)
    }

    /// Renders in a child process of another such program.
    pub fn program(path: PathBuf) -> Arc<Self> {
        Self::in_child(Program::At(path))
    }

    fn in_child(program: Program) -> Arc<Self> {
        Arc::new(Self(Place::Child { child: Child::of(program.clone()), program }))
    }

    /// Renders in this process, for tests with their own templates. An untrusted template could
    /// take all memory, overflow the stack or run for hours.
    pub fn in_this_process() -> Arc<Self> {
        Arc::new(Self(Place::Here(Box::default())))
    }

    /// Returns the program that renders; `None` if this process does.
    pub fn child_program(&self) -> Option<&Program> {
        match &self.0 {
            Place::Child { program, .. } => Some(program),
            Place::Here(_) => None,
        }
    }

    pub(super) fn answer(&self, ask: &Ask<'_>) -> Answer {
        let child = match &self.0 {
            Place::Child { child, .. } => child,
            Place::Here(jinja) => {
                return jinja.lock().unwrap_or_else(PoisonError::into_inner).answer(ask);
            }
        };
        let input = serde_json::to_vec(ask).map_err(|error| error.to_string())?;
        let answer = child.answer(&TASK, &input).map_err(|failure| match failure {
            Failure::NotStarted(error) => format!("what renders it cannot be started: {error}"),
            Failure::TooLong => TOO_LONG.to_owned(),
            Failure::TooMuchMemory => TOO_MUCH_MEMORY.to_owned(),
            Failure::Ended => TOO_MUCH.to_owned(),
        })?;
        serde_json::from_slice(&answer).unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// Returns the function that answers requests in the child process.
fn start() -> Handler {
    let mut jinja = Jinja::default();
    Box::new(move |input| {
        let answer = match serde_json::from_slice::<Ask<'_>>(input) {
            Ok(ask) => jinja.answer(&ask),
            Err(error) => Err(error.to_string()),
        };
        let line = serde_json::to_vec(&answer).unwrap_or_default();
        if (line.len() as u64) < LONGEST_ANSWER {
            return line;
        }
        serde_json::to_vec(&Answer::Err(LONG_TEXT.to_owned())).unwrap_or_default()
    })
}
