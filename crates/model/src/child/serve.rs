//! Child's side: reads requests, a line each, and answers with a line each until its input ends.

use std::collections::HashMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use super::memory::bound;
use super::{ARGUMENT, LONGEST_ANSWER, READY};

/// Stack size in bytes.
const STACK: usize = 8 << 20;

/// Work of the child process.
#[derive(Clone, Copy)]
pub struct Task {
    pub name: &'static str,
    /// Memory limit in bytes, with all that the process keeps from earlier requests.
    pub memory: usize,
    /// Time limit of a request.
    pub time: Duration,
    /// Returns the function that answers requests. It may keep state from one to the next; after a
    /// panic a new one replaces it.
    pub start: fn() -> Handler,
}

/// Function from a request's input to its answer, both without line breaks; an empty answer means
/// that there is none.
pub type Handler = Box<dyn FnMut(&[u8]) -> Vec<u8>>;

/// Answers requests for `tasks` until the input ends if this process was started for that, and
/// returns whether it was. Programs with [`super::Program::This`] call this first and exit if it
/// returns true.
pub fn serve_if_asked(tasks: &[Task]) -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let asked = arguments.next().is_some_and(|argument| argument == ARGUMENT) && arguments.next().is_none();
    let least = tasks.iter().map(|task| task.memory).min().unwrap_or(0);
    if asked && bound(least) {
        leave_no_core();
        serve(tasks.to_vec());
    }
    asked
}

/// Answers requests on a thread of its own until the input ends, also while it works.
#[cfg(target_os = "linux")]
fn serve(tasks: Vec<Task>) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;

    let lines = || stdin().lock().split(b'\n').map_while(Result::ok);
    let worker = thread::Builder::new().stack_size(STACK).spawn(move || answer_all(&tasks, lines()));
    // Without flags, only the end of a pipe's other side is reported.
    let ends = || poll(&mut [PollFd::new(&stdin(), PollFlags::empty())], None);
    while worker.is_ok() && ends() == Err(Errno::INTR) {}
}

/// Reads in parallel with the work, so that the process ends as soon as its input does.
#[cfg(not(target_os = "linux"))]
fn serve(tasks: Vec<Task>) {
    let (request, requests) = std::sync::mpsc::channel();
    let worker = thread::Builder::new().stack_size(STACK).spawn(move || answer_all(&tasks, requests));
    let mut lines = stdin().lock().split(b'\n').map_while(Result::ok);
    while worker.is_ok() && lines.next().is_some_and(|line| request.send(line).is_ok()) {}
}

fn answer_all(tasks: &[Task], requests: impl IntoIterator<Item = Vec<u8>>) {
    if write(READY).is_err() {
        return;
    }
    let mut handlers: HashMap<&str, Handler> = HashMap::new();
    for line in requests {
        let space = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
        let Some(task) = tasks.iter().find(|task| task.name.as_bytes() == &line[..space]) else { return };
        let input = line.get(space + 1..).unwrap_or_default();
        bound(task.memory);
        let handler = handlers.entry(task.name).or_insert_with(task.start);
        let answer = catch_unwind(AssertUnwindSafe(|| handler(input)));
        let mut answer = answer.unwrap_or_else(|_| {
            handlers.remove(task.name);
            Vec::new()
        });
        if answer.len() as u64 >= LONGEST_ANSWER {
            answer.clear();
        }
        answer.push(b'\n');
        if write(&answer).is_err() {
            return;
        }
    }
}

fn write(line: &[u8]) -> std::io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(line)?;
    out.flush()
}

/// Disables core dumps, so that input that crashes the process cannot fill the disk.
fn leave_no_core() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // Best effort: without permission, a core dump is possible.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}
