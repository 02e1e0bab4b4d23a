//! Parent's side of the child process that renders templates: started on demand, reused, killed
//! when it takes too long, and replaced when it has ended.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::ask::{ARGUMENT, Answer, Ask, LONGEST, TOO_LONG, TOO_MUCH};
use super::memory::OUT_OF_MEMORY;

/// Time limit for compiling and rendering.
const TIME: Duration = Duration::from_secs(5);

/// Additional time for starting the process.
const START: Duration = Duration::from_secs(10);

/// Executable of the child process.
pub(super) enum Program {
    This,
    At(PathBuf),
}

/// Client of the child process.
pub(super) struct Child {
    program: Program,
    /// A process that is ready; `None` before the first start and after one has ended.
    running: Mutex<Option<Running>>,
}

/// A process that waits for requests, and the thread that talks to it. Dropping kills it.
struct Running {
    process: std::process::Child,
    ask: Sender<Vec<u8>>,
    answers: Receiver<Vec<u8>>,
}

impl Child {
    pub(super) fn of(program: Program) -> Self {
        Self { program, running: Mutex::default() }
    }

    pub(super) fn answer(&self, ask: &Ask<'_>) -> Answer {
        let mut line = serde_json::to_vec(ask).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut child, time) = match running.take().and_then(Running::still) {
            Some(child) => (child, TIME),
            None => {
                let started = self.program.start();
                (
                    started.map_err(|error| format!("what renders it cannot be started: {error}"))?,
                    START + TIME,
                )
            }
        };
        // If the process has ended, receiving fails below.
        let _ = child.ask.send(line);
        match child.answers.recv_timeout(time) {
            Ok(answer) => {
                *running = Some(child);
                serde_json::from_slice(&answer).unwrap_or_else(|error| Err(error.to_string()))
            }
            Err(RecvTimeoutError::Timeout) => Err(TOO_LONG.to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err(child.why_ended().to_owned()),
        }
    }
}

impl Program {
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
        let ((ask, asked), (answer, answers)) = (mpsc::channel(), mpsc::channel());
        let running = Running { process, ask, answers };
        let (stdin, stdout) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        let talk = move || talk(stdin, stdout, &asked, &answer);
        thread::Builder::new().name("templates".to_owned()).spawn(talk)?;
        Ok(running)
    }
}

/// Path of this executable. On Linux it refers to the running file itself, even after an update.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Forwards requests and answers until either side ends. An answer that is too long ends it, too.
fn talk(mut stdin: ChildStdin, stdout: ChildStdout, asked: &Receiver<Vec<u8>>, answers: &Sender<Vec<u8>>) {
    let mut stdout = BufReader::new(stdout);
    for ask in asked {
        let mut answer = Vec::new();
        let heard = stdin.write_all(&ask).and_then(|()| {
            stdin.flush()?;
            stdout.by_ref().take(LONGEST).read_until(b'\n', &mut answer)
        });
        if heard.is_err() || !answer.ends_with(b"\n") || answers.send(answer).is_err() {
            return;
        }
    }
}

impl Running {
    /// Returns the process if it is still running.
    fn still(mut self) -> Option<Self> {
        matches!(self.process.try_wait(), Ok(None)).then_some(self)
    }

    /// Kills the process and returns why it did not answer.
    fn why_ended(&mut self) -> &'static str {
        match self.end() {
            Some(OUT_OF_MEMORY) => "it takes too much memory",
            _ => TOO_MUCH,
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
