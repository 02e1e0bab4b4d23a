//! Loop over one target: inputs are mutated, executed and checked, also for memory and time against
//! their size; those with new coverage become parents.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::cpu_time::cpu_time_of;
use crate::memory::peak_of;
use crate::mutate::Material;
use crate::random::Random;
use crate::targets::Target;

/// Most inputs that are kept.
const MAX_INPUTS: usize = 3_000;
/// Time limit of one execution on a busy processor.
const TIMEOUT: Duration = Duration::from_secs(300);
/// One in this many inputs is a file with a long list.
const GROWTH_INTERVAL: u64 = 400;
/// Size of such a file in bytes: elements of a few bytes, compared with each other, take seconds.
const GROWN: usize = 256 << 10;
/// Allowed processor time of an execution, and in addition of each byte of its input.
const TIME: Duration = Duration::from_millis(400);
const TIME_PER_BYTE: Duration = Duration::from_micros(2);
/// Executions between two progress messages.
const PROGRESS_INTERVAL: u64 = 100_000;

/// Folders for the results of a run.
pub struct Folders<'a> {
    /// Inputs with new coverage, which the next run starts with; `None` keeps nothing.
    pub found: Option<&'a Path>,
    /// Failing inputs, one per file.
    pub failures: &'a Path,
}

/// Results of a run.
#[derive(Debug, Default)]
pub struct Report {
    pub executions: u64,
    /// Number of refused inputs.
    pub refused: u64,
    pub kept: usize,
    pub edges: usize,
    pub taken: usize,
    /// Failures, one of each kind.
    pub failures: Vec<String>,
}

/// Executes `target` `executions` times, and once for each seed.
pub fn run(target: &mut Target, executions: u64, seed: u64, folders: &Folders<'_>) -> Report {
    let panic_message = capture_panics();
    let clock = Watchdog::start(target.name);
    let mut random = Random(seed);
    let mut coverage = Coverage::new();
    let mut report = Report { edges: coverage.edges(), ..Report::default() };
    let mut parents = target.seeds.clone();
    let found = folders.found.into_iter().flat_map(files);
    let mut first: Vec<Vec<u8>> = parents.iter().cloned().chain(found).collect();
    fs::create_dir_all(folders.failures).unwrap();
    let present = folders.failures.join(format!("{}.present", target.name));
    let mut file = File::create(&present).unwrap();
    while report.executions < executions {
        let input = first.pop().unwrap_or_else(|| {
            let material = Material {
                parents: &parents,
                words: target.words,
                head: target.head,
                longest: target.longest,
            };
            if (report.executions + 1).is_multiple_of(GROWTH_INTERVAL) {
                material.grow(GROWN, &mut random)
            } else {
                material.draw(&mut random)
            }
        });
        // If the process dies, its last input is found here.
        file.rewind().and_then(|()| file.write_all(&input)).unwrap();
        file.set_len(input.len() as u64).unwrap();
        clock.beat();
        report.executions += 1;
        match execute(target, &input, &panic_message) {
            Ok(refused) => report.refused += u64::from(refused),
            Err(failure) => note(&mut report, target.name, &input, failure, folders),
        }
        if coverage.is_new()
            && parents.len() < MAX_INPUTS
            && input.len() <= target.longest
            && !input.is_empty()
        {
            if let Some(folder) = folders.found {
                fs::create_dir_all(folder).unwrap();
                fs::write(folder.join(name_of(&input)), &input).unwrap();
            }
            parents.push(input);
        }
        if report.executions.is_multiple_of(PROGRESS_INTERVAL) {
            eprintln!("{}: {} executions, {} inputs kept", target.name, report.executions, parents.len());
        }
    }
    fs::remove_file(&present).unwrap();
    report.kept = parents.len();
    report.taken = coverage.taken();
    report
}

/// Executes an input and returns whether it was refused.
///
/// # Errors
/// Returns the violated invariant.
pub fn execute(target: &mut Target, input: &[u8], panic_message: &Mutex<String>) -> Result<bool, String> {
    let run = || cpu_time_of(|| peak_of(|| (target.run)(input)));
    let (time, (peak, refusal)) = panic::catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| format!("panicked: {}", panic_message.lock().unwrap()))?;
    if peak > target.memory.bytes(input.len()) {
        return Err(format!("took {peak} bytes for {} bytes", input.len()));
    }
    if time > TIME + TIME_PER_BYTE * input.len() as u32 {
        return Err(format!("took {} ms for {} bytes", time.as_millis(), input.len()));
    }
    let Some(message) = refusal else { return Ok(false) };
    if message.contains(char::is_control) || !message.ends_with('.') || message.chars().count() >= 1200 {
        return Err(format!("message is not a sentence: {message:?}"));
    }
    Ok(true)
}

/// Collects panic messages instead of printing them.
pub fn capture_panics() -> Arc<Mutex<String>> {
    let panic_message = Arc::new(Mutex::new(String::new()));
    let messages = Arc::clone(&panic_message);
    panic::set_hook(Box::new(move |panic| {
        *messages.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            panic.to_string().replace('\n', " ");
    }));
    panic_message
}

/// Stores a failing input, once for each kind of failure.
fn note(report: &mut Report, target: &str, input: &[u8], failure: String, folders: &Folders<'_>) {
    let kind = |text: &str| text.chars().filter(|sign| !sign.is_ascii_digit()).take(160).collect::<String>();
    if report.failures.iter().any(|known| kind(known) == kind(&failure)) {
        return;
    }
    let file = folders.failures.join(format!("{target}-{}", name_of(input)));
    fs::write(&file, input).unwrap();
    report.failures.push(failure.clone());
    eprintln!("{target} {failure}\n  the input is in {}", file.display());
}

/// Returns a file name derived from the bytes (FNV-1a).
fn name_of(input: &[u8]) -> String {
    let hash = input.iter().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{hash:016x}")
}

/// Returns the files of a folder, ordered by name; none if it does not exist.
pub fn files(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Watchdog that ends the process if an execution hangs.
struct Watchdog(Arc<AtomicU64>);

impl Watchdog {
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
                } else if beat > 0 && last.1.elapsed() > TIMEOUT {
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
