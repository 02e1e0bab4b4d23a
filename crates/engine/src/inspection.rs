//! Inspection of model files that nobody chose yet, for lists: in a child process, which may take
//! [`MEMORY`], and [`TIME`] for a file. The template child is the same program with another task.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foretoken_model::child::{Child, Failure, Handler, Program, Task, serve_if_asked};
use foretoken_model::recommended::Recommended;
use foretoken_model::{
    Error, ModelSource, ProblemKind, Renderer, RopeScaling, Tokenizer, VisionSource, label, template,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::compat::{self, Compatibility};

/// Memory limit of an inspection, in bytes.
const MEMORY: usize = 512_000_000;

/// Time limit for a file.
const TIME: Duration = Duration::from_secs(5);

/// Most inspections at a time, each in a process of its own.
pub const CHILDREN: usize = 2;

/// Longest answer to a request, in bytes. A name in a hostile file may have megabytes.
const LONGEST_ANSWER: usize = 1 << 16;

/// Tokens of the context for which memory is estimated.
pub const TOKENS: usize = 8192;

/// Inspection of a model as a task of the child process.
const INSPECT: Task = Task {
    name: "inspect",
    memory: MEMORY,
    time: TIME,
    start: || answering(|path: OsString| inspect(path.as_ref())),
};

/// Comparison of a draft with a target as a task of the child process.
const COMPARE: Task = Task {
    name: "compare",
    memory: MEMORY,
    // Both files are read.
    time: TIME.saturating_mul(2),
    start: || {
        let mut targets = Targets::default();
        answering(move |(target, draft): (OsString, OsString)| {
            targets.compare(target.as_ref(), draft.as_ref())
        })
    },
};

/// Answers requests about untrusted input, also for the tasks `more`, if this process was started
/// for that, and returns whether it was; see [`foretoken_model::child::serve_if_asked`].
pub fn serve_untrusted_input(more: &[Task]) -> bool {
    serve_if_asked(&[&[template::TASK, INSPECT, COMPARE, foretoken_grammar::TASK], more].concat())
}

/// Result of an inspection.
type Outcome<T> = Result<T, FileProblem>;

/// Facts about a model file for lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inspected {
    /// Title from the metadata and the file name.
    pub name: String,
    pub architecture: Option<String>,
    pub quantisation: Option<String>,
    pub licence: Option<String>,
    /// Number of parameters; tied embeddings count once.
    pub parameters: u64,
    /// Size of all weight files on disk.
    pub bytes: u64,
    /// Context length in tokens; `None` for a tokenizer alone.
    pub context: Option<u32>,
    /// Bytes of keys and values per token; 0 for a tokenizer alone.
    pub kv_bytes: u64,
    /// Bytes of an 8-bit KV cache per token; `None` if the model cannot have one.
    pub int8_kv_bytes: Option<u64>,
    pub rope_scaling: Option<RopeScaling>,
    /// Estimate of the memory to run it on a CPU with [`TOKENS`] in its context; `None` for a
    /// tokenizer alone.
    pub memory_bytes: Option<u64>,
    /// Bytes of weights that a pass over one token reads; 0 for a tokenizer alone.
    pub read_bytes: u64,
    pub recommended: Option<Recommended>,
    /// `true` if it has a vision file.
    pub sees: bool,
    /// Reason why it cannot be a target.
    pub problem: Option<FileProblem>,
}

impl Inspected {
    /// Returns the model's line in a list, see [`foretoken_model::Description::label`].
    pub fn label(&self) -> String {
        label(&self.name, self.parameters, self.quantisation.as_deref())
    }
}

/// Problem of a model file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProblem {
    pub kind: ProblemKind,
    /// As a full explanation.
    pub reason: String,
    /// True if the inspection was ended, so that no other process should open the file either.
    #[serde(skip)]
    pub was_ended: bool,
}

impl From<Error> for FileProblem {
    fn from(error: Error) -> Self {
        Self { kind: error.kind(), reason: error.to_string(), was_ended: false }
    }
}

impl From<Failure> for FileProblem {
    fn from(failure: Failure) -> Self {
        let was_ended = !matches!(failure, Failure::NotStarted(_));
        let (kind, reason) = match failure {
            Failure::TooMuchMemory => (
                ProblemKind::TooMuchMemory,
                "it could not be used: inspecting it took more than 512 MB of memory. Download it again, \
                 or choose another model."
                    .to_owned(),
            ),
            Failure::TooLong => (
                ProblemKind::TooLong,
                "it could not be used: inspecting it took longer than 5 s. If it is on a slow disk or \
                 network, restart Foretoken when that answers, or choose another model."
                    .to_owned(),
            ),
            Failure::Ended => (
                ProblemKind::CannotBeRead,
                "it could not be inspected: Foretoken failed while reading it. Download it again, or choose \
                 another model."
                    .to_owned(),
            ),
            Failure::NotStarted(error) => (
                ProblemKind::CannotBeRead,
                format!(
                    "it could not be inspected: the process for that cannot be started: {error}. Restart Foretoken."
                ),
            ),
        };
        Self { kind, reason, was_ended }
    }
}

/// Inspects model files, up to [`CHILDREN`] at a time.
pub struct Inspector(Place);

/// Process that inspects.
enum Place {
    Children([Child; CHILDREN]),
    Here(Mutex<Targets>),
}

impl Inspector {
    /// Inspects in child processes of the program that `renderer` uses, or in this process if the
    /// renderer does.
    pub fn beside(renderer: &Renderer) -> Self {
        let children =
            |program: &Program| Place::Children(std::array::from_fn(|_| Child::of(program.clone())));
        Self(renderer.child_program().map_or_else(|| Place::Here(Mutex::default()), children))
    }

    /// Inspects the model at `path`.
    ///
    /// # Errors
    /// Returns the problem of a file that cannot be opened, or whose inspection was ended.
    pub fn inspect(&self, path: &Path) -> Outcome<Inspected> {
        match &self.0 {
            Place::Children(children) => ask(children, &INSPECT, &path.as_os_str()),
            Place::Here(_) => inspect(path),
        }
    }

    /// Compares the draft at a path with the target at another.
    ///
    /// # Errors
    /// As [`Self::inspect`], for either file.
    pub fn compare(&self, target: &Path, draft: &Path) -> Outcome<Compatibility> {
        match &self.0 {
            Place::Children(children) => ask(children, &COMPARE, &(target.as_os_str(), draft.as_os_str())),
            Place::Here(targets) => {
                targets.lock().unwrap_or_else(PoisonError::into_inner).compare(target, draft)
            }
        }
    }

    /// Ends idle child processes. The next inspection starts one again.
    pub fn rest(&self) {
        if let Place::Children(children) = &self.0 {
            children.iter().for_each(Child::rest);
        }
    }
}

/// Sends a request to the first free child process; if there is none, waits for the first.
fn ask<T: DeserializeOwned>(
    children: &[Child; CHILDREN],
    task: &Task,
    request: &impl Serialize,
) -> Outcome<T> {
    let unreadable = |_| FileProblem::from(Failure::Ended);
    let input = serde_json::to_vec(request).map_err(unreadable)?;
    let free = children.iter().find_map(|child| child.answer_if_free(task, &input));
    let answer = free.unwrap_or_else(|| children[0].answer(task, &input))?;
    serde_json::from_slice::<Outcome<T>>(&answer).map_err(unreadable)?
}

/// Returns a task's function that reads its request and writes its answer in JSON.
fn answering<Request: DeserializeOwned, T: Serialize>(
    mut work: impl FnMut(Request) -> Outcome<T> + 'static,
) -> Handler {
    Box::new(move |input| {
        let Ok(request) = serde_json::from_slice(input) else { return Vec::new() };
        let answer = serde_json::to_vec(&work(request)).unwrap_or_default();
        if answer.len() > LONGEST_ANSWER { Vec::new() } else { answer }
    })
}

fn inspect(path: &Path) -> Outcome<Inspected> {
    let source = ModelSource::open(path)?;
    let description = source.describe();
    let usable = source.check_target().and_then(|()| source.config());
    let usable = usable.and_then(|_| source.template_source());
    let sizes = description.sizes.as_ref();
    Ok(Inspected {
        memory_bytes: source.memory_bytes(TOKENS).ok(),
        read_bytes: source.read_bytes().unwrap_or_default(),
        recommended: source.recommended(),
        sees: source.config().is_ok_and(|config| VisionSource::beside(path, config).is_some()),
        problem: usable.err().map(FileProblem::from),
        context: sizes.map(|sizes| sizes.context as u32),
        kv_bytes: sizes.map_or(0, |sizes| sizes.kv_bytes as u64),
        int8_kv_bytes: sizes.and_then(|sizes| Some(sizes.int8_kv_bytes? as u64)),
        rope_scaling: sizes.and_then(|sizes| sizes.rope_scaling),
        name: description.name,
        architecture: description.architecture,
        quantisation: description.quantisation,
        licence: description.licence,
        parameters: description.parameters,
        bytes: description.bytes,
    })
}

/// The last target that drafts were compared with, since building its tokenizer takes time.
#[derive(Default)]
struct Targets {
    last: Option<(PathBuf, Tokenizer)>,
}

impl Targets {
    fn compare(&mut self, target: &Path, draft: &Path) -> Outcome<Compatibility> {
        let source = ModelSource::open(draft)?;
        source.config()?;
        if source.is_draft_head() {
            return Ok(compat::of_head(&ModelSource::open(target)?, &source)?);
        }
        let theirs = source.tokenizer()?;
        let last = self.last.take().filter(|(path, _)| path == target);
        let (_, ours) = match last {
            Some(last) => self.last.insert(last),
            None => self.last.insert((target.to_owned(), ModelSource::open(target)?.tokenizer()?)),
        };
        Ok(compat::compare(ours, &theirs))
    }
}
