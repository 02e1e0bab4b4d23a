//! Child's side of template rendering: reads requests, a line of JSON each, and answers with a line
//! each until its input ends.

use std::io::{BufRead, Write, stdin, stdout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::ask::{ARGUMENT, Answer, Ask, LONGEST, TOO_MUCH};
use super::jinja::Jinja;
use super::memory::bound;

/// Memory limit for compiling and rendering, in bytes. A conversation of a million tokens takes
/// about 4 MB.
const MEMORY: usize = 256 << 20;

/// Stack size in bytes.
const STACK: usize = 8 << 20;

/// Renders templates until the input ends if this process was started for that, and returns whether
/// it was. Programs with [`super::Renderer::this_program`] call this first and exit if it returns
/// true.
pub fn serve_if_asked() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let asked = arguments.next().is_some_and(|argument| argument == ARGUMENT) && arguments.next().is_none();
    if asked && bound(MEMORY) {
        leave_no_core();
        serve();
    }
    asked
}

/// Reads in parallel with rendering, so that the process ends as soon as its input does.
fn serve() {
    let (ask, asked) = mpsc::channel();
    let renderer = thread::Builder::new().stack_size(STACK).spawn(move || answer_all(&asked));
    if renderer.is_err() {
        return;
    }
    for line in stdin().lock().split(b'\n') {
        let Ok(line) = line else { return };
        if ask.send(line).is_err() {
            return;
        }
    }
}

fn answer_all(asked: &Receiver<Vec<u8>>) {
    let mut jinja = Jinja::default();
    for line in asked {
        // A panic discards the compiled template.
        let answer = catch_unwind(AssertUnwindSafe(|| answer(&mut jinja, &line)));
        if write(answer.unwrap_or_else(|_| Err(TOO_MUCH.to_owned()))).is_err() {
            return;
        }
    }
}

fn answer(jinja: &mut Jinja, line: &[u8]) -> Answer {
    let ask: Ask<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    jinja.answer(&ask)
}

fn write(answer: Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(&answer)?;
    if line.len() as u64 >= LONGEST {
        line = serde_json::to_vec(&Answer::Err(format!("its text has more than {} MB", LONGEST >> 20)))?;
    }
    line.push(b'\n');
    let mut out = stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

/// Disables core dumps, so that a template that crashes the process cannot fill the disk.
fn leave_no_core() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // Best effort: without permission, a core dump is possible.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}
