//! What a program does that was started as a renderer: reads what it is asked for, a line of JSON each, and answers
//! with a line each, until its input ends.

use std::io::{BufRead, Write, stdin, stdout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::ask::{ARGUMENT, Answer, Ask, LONGEST, TOO_MUCH};
use super::jinja::Jinja;
use super::memory::bound;

/// Bytes that compiling and rendering may take: a conversation of a million tokens is four of its megabytes.
const MEMORY: usize = 256 << 20;

/// Bytes of stack.
const STACK: usize = 8 << 20;

/// Renders templates until the input ends, where this process was started for that, and says whether it was. To be
/// the first call of a program that has a [`super::Renderer::this_program`]; it ends when it was one.
pub fn serve_if_asked() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let asked = arguments.next().is_some_and(|argument| argument == ARGUMENT) && arguments.next().is_none();
    if asked && bound(MEMORY) {
        leave_no_core();
        serve();
    }
    asked
}

/// Reads beside the rendering: however long that takes, this process ends when nobody can ask any more.
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
        // After a panic nothing is left of what was compiled.
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

/// A template that ends this process shall not fill the disk.
fn leave_no_core() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // Where the system does not allow it, a core may be left.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}
