//! One target, over and over: damage is drawn, executed and watched; what did something new becomes material.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::memory::peak_of;
use crate::mutate::Material;
use crate::random::Random;
use crate::targets::Target;

/// Inputs kept at most.
const KEPT: usize = 3_000;
/// How long one execution may take where it has next to none of the processor.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often it is said how far it is.
const TELL: u64 = 100_000;

/// Where a run leaves what it finds.
pub struct Places<'a> {
    /// What did something new, which the next run begins with; `None` keeps nothing.
    pub found: Option<&'a Path>,
    /// What failed, a file each.
    pub failures: &'a Path,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Report {
    pub executions: u64,
    /// Inputs that were refused.
    pub refused: u64,
    pub kept: usize,
    pub edges: usize,
    pub taken: usize,
    /// What went wrong, each kind once.
    pub failures: Vec<String>,
}

/// Executes `target` so many times beside its whole files.
pub fn run(target: &mut Target, executions: u64, seed: u64, places: &Places<'_>) -> Report {
    let said = hear_panics();
    let clock = Clock::start(target.name);
    let mut random = Random(seed);
    let mut coverage = Coverage::new();
    let mut report = Report { edges: coverage.edges(), ..Report::default() };
    let mut parents = target.seeds.clone();
    let found = places.found.into_iter().flat_map(files);
    let mut first: Vec<Vec<u8>> = parents.iter().cloned().chain(found).collect();
    fs::create_dir_all(places.failures).unwrap();
    let present = places.failures.join(format!("{}.present", target.name));
    let mut file = File::create(&present).unwrap();
    while report.executions < executions {
        let input = first.pop().unwrap_or_else(|| {
            let material = Material {
                parents: &parents,
                words: target.words,
                head: target.head,
                longest: target.longest,
            };
            material.draw(&mut random)
        });
        // What ends the process itself is found here.
        file.rewind().and_then(|()| file.write_all(&input)).unwrap();
        file.set_len(input.len() as u64).unwrap();
        clock.beat();
        report.executions += 1;
        match execute(target, &input, &said) {
            Ok(refused) => report.refused += u64::from(refused),
            Err(failure) => note(&mut report, target.name, &input, failure, places),
        }
        if coverage.is_new() && parents.len() < KEPT && input.len() <= target.longest && !input.is_empty() {
            if let Some(folder) = places.found {
                fs::create_dir_all(folder).unwrap();
                fs::write(folder.join(name_of(&input)), &input).unwrap();
            }
            parents.push(input);
        }
        if report.executions.is_multiple_of(TELL) {
            eprintln!("{}: {} executions, {} inputs kept", target.name, report.executions, parents.len());
        }
    }
    fs::remove_file(&present).unwrap();
    report.kept = parents.len();
    report.taken = coverage.taken();
    report
}

/// Whether the input was refused.
///
/// # Errors
/// What must not happen.
pub fn execute(target: &mut Target, input: &[u8], said: &Mutex<String>) -> Result<bool, String> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| peak_of(|| (target.run)(input))));
    let (peak, refusal) = outcome.map_err(|_| format!("panicked: {}", said.lock().unwrap()))?;
    if peak > target.memory.bytes(input.len()) {
        return Err(format!("took {peak} bytes for {} bytes", input.len()));
    }
    let Some(message) = refusal else { return Ok(false) };
    if message.contains(char::is_control) || !message.ends_with('.') || message.chars().count() >= 1200 {
        return Err(format!("is no sentence: {message:?}"));
    }
    Ok(true)
}

/// Keeps what panics say instead of printing it.
pub fn hear_panics() -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let hearing = Arc::clone(&said);
    panic::set_hook(Box::new(move |panic| {
        *hearing.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            panic.to_string().replace('\n', " ");
    }));
    said
}

/// Writes the input down, once for each kind of failure.
fn note(report: &mut Report, target: &str, input: &[u8], failure: String, places: &Places<'_>) {
    let kind = |text: &str| text.chars().filter(|sign| !sign.is_ascii_digit()).take(160).collect::<String>();
    if report.failures.iter().any(|known| kind(known) == kind(&failure)) {
        return;
    }
    let file = places.failures.join(format!("{target}-{}", name_of(input)));
    fs::write(&file, input).unwrap();
    report.failures.push(failure.clone());
    eprintln!("{target} {failure}\n  the input is in {}", file.display());
}

/// A name that is another for other bytes (FNV-1a).
fn name_of(input: &[u8]) -> String {
    let hash = input.iter().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{hash:016x}")
}

/// The files of a folder, in order of their names; none where there is no folder.
pub fn files(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Ends the process when an execution does not end.
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn start(target: &'static str) -> Self {
        let beats = Arc::new(AtomicU64::new(0));
        let watched = Arc::clone(&beats);
        let begin = Instant::now();
        std::thread::spawn(move || {
            let mut last = (watched.load(Ordering::Relaxed), begin);
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let beat = watched.load(Ordering::Relaxed);
                if beat != last.0 {
                    last = (beat, Instant::now());
                } else if beat > 0 && last.1.elapsed() > PATIENCE {
                    eprintln!("{target} does not end: execution {beat}");
                    std::process::abort();
                }
            }
        });
        Self(beats)
    }

    fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
