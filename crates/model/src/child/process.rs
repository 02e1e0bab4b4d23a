//! Parent's side of a child process: started on demand, reused, killed when it takes too long, and
//! replaced when it has ended.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use super::answers::{Answers, Missing};
use super::memory::OUT_OF_MEMORY;
use super::{ARGUMENT, Failure, READY, Task};

/// Time limit for starting the process.
const START: Duration = Duration::from_secs(10);

/// Executable of a child process.
#[derive(Debug, Clone)]
pub enum Program {
    /// This program, which begins with [`super::serve_if_asked`] and uses the allocator
    /// [`super::Bounded`].
    This,
    /// Another such program.
    At(PathBuf),
}

/// Client of one child process.
pub struct Child {
    program: Program,
    /// A process that is ready; `None` before the first start and after one has ended.
    running: Mutex<Option<Running>>,
}

/// A process that waits for requests. Dropping kills it.
struct Running {
    process: std::process::Child,
    requests: ChildStdin,
    answers: Answers,
}

impl Child {
    pub fn of(program: Program) -> Self {
        Self { program, running: Mutex::default() }
    }

    /// Returns the answer of `task` to `input`, both without line breaks. Requests
    /// wait for each other.
    ///
    /// # Errors
    /// Every [`Failure`]; the next request starts a new process.
    pub fn answer(&self, task: &Task, input: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.answer_with(&mut running, task, input)
    }

    /// Returns the answer as [`Self::answer`]; `None` while another request has the process.
    pub fn answer_if_free(&self, task: &Task, input: &[u8]) -> Option<Result<Vec<u8>, Failure>> {
        let mut running = match self.running.try_lock() {
            Ok(running) => running,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(self.answer_with(&mut running, task, input))
    }

    /// Ends the process, unless a request has it.
    pub fn rest(&self) {
        if let Ok(mut running) = self.running.try_lock() {
            *running = None;
        }
    }

    fn answer_with(
        &self,
        running: &mut Option<Running>,
        task: &Task,
        input: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let line = [task.name.as_bytes(), b" ", input, b"\n"].concat();
        let child = match running.take().and_then(Running::still) {
            Some(child) => Ok(child),
            None => self.program.start(),
        };
        let mut child = child.map_err(|error| Failure::NotStarted(error.to_string()))?;
        // If the process has ended, there is no answer below. It waits for a request, so that this
        // one is read at once.
        let _ = child.requests.write_all(&line);
        match child.answers.next(task.time) {
            Ok(mut answer) => {
                *running = Some(child);
                answer.pop();
                if answer.is_empty() { Err(Failure::Ended) } else { Ok(answer) }
            }
            Err(Missing::TooLong) => Err(Failure::TooLong),
            Err(Missing::Ended) => Err(child.why_ended()),
        }
    }
}

impl Program {
    /// Starts the process and waits until it is ready.
    fn start(&self) -> io::Result<Running> {
        let mut command = Command::new(match self {
            Self::This => this_program()?,
            Self::At(path) => path.clone(),
        });
        command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl-C in a terminal must not reach the child.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = command.spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (requests, stdout) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        let mut running = Running { process, requests, answers: Answers::of(stdout)? };
        match running.answers.next(START) {
            Ok(line) if line == READY => Ok(running),
            _ => Err(io::Error::other("it did not become ready")),
        }
    }
}

/// Path of this executable. On Linux it refers to the running file itself, even after an update.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

impl Running {
    /// Returns the process if it is still running.
    fn still(mut self) -> Option<Self> {
        matches!(self.process.try_wait(), Ok(None)).then_some(self)
    }

    /// Kills the process and returns why it did not answer.
    fn why_ended(&mut self) -> Failure {
        match self.end() {
            Some(OUT_OF_MEMORY) => Failure::TooMuchMemory,
            _ => Failure::Ended,
        }
    }

    /// Kills the process and returns its exit code, if it has one.
    fn end(&mut self) -> Option<i32> {
        let _ = self.process.kill();
        self.process.wait().ok()?.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
