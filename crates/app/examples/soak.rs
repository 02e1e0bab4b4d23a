//! Soak test without a window: messages, changing drafts and targets, arenas. Prints the resources
//! of the process, and fails if they grow. `make soak` runs it; MESSAGES sets the number of
//! messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foretoken_app::App;
use foretoken_app::ipc::{ArenaRequest, DRAFT_NGRAM, DRAFT_NONE, EnginePhase, EngineStatus, Settings, Setup};
use foretoken_engine::session::ThisComputer;
use foretoken_engine::speculation::Speculation;
use foretoken_library::{Folders, SMOLLM2, STARTER, STARTER_DRAFT};
use foretoken_model::Renderer;
use foretoken_model::sampling::{Mode, Sampling};

const PATIENCE: Duration = Duration::from_secs(300);

/// With 2,000 messages: 200 drafts, 50 targets, 10 arenas, 100 conversations.
const MESSAGES: u32 = 2_000;
const DRAFT_EVERY: u32 = 10;
const TARGET_EVERY: u32 = 40;
const ARENA_EVERY: u32 = 200;
const CONVERSATION_EVERY: u32 = 20;
const SAMPLE_EVERY: u32 = 40;
/// Share of messages before the first sample that counts: then everything has been loaded once.
const WARM_UP: f64 = 0.2;

/// Allowed growth of memory since then.
const MAX_GROWTH: f64 = 1.05;
/// Largest write-ahead log in bytes: SQLite checkpoints it at 4 MB.
const MAX_LOG: u64 = 16 << 20;

/// Resources of the process.
#[derive(Debug, Clone, Copy)]
struct Sample {
    message: u32,
    /// Resident memory in bytes.
    resident: u64,
    threads: usize,
    files: usize,
    /// Bytes of the database's log.
    log: u64,
    /// Files in the temporary folder.
    temporary: usize,
}

impl Sample {
    fn take(message: u32, folder: &Path) -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
        let count = |folder: &Path| std::fs::read_dir(folder).map_or(0, Iterator::count);
        Self {
            message,
            resident: 1024 * kilobytes,
            threads: count(Path::new("/proc/self/task")),
            files: count(Path::new("/proc/self/fd")),
            log: std::fs::metadata(folder.join("foretoken.db-wal")).map_or(0, |log| log.len()),
            temporary: count(&std::env::temp_dir()),
        }
    }
}

/// The application and its statuses.
struct Soak {
    app: Arc<App>,
    statuses: Receiver<EngineStatus>,
    targets: Vec<&'static str>,
}

impl Soak {
    fn start(folder: &Path) -> Self {
        let renderer = Renderer::in_this_process();
        let app = App::start_on(Folders::at(folder), None, Arc::new(ThisComputer), renderer, None);
        let app = Arc::new(app.unwrap());
        let (sender, statuses) = mpsc::channel();
        app.watch_engine(move |status| sender.send(status.clone()).is_ok());
        let smollm2 = foretoken_tests::repository().join("smollm2/SmolLM2-135M-Instruct-Q4_1.gguf").exists();
        let targets = if smollm2 { vec![STARTER, SMOLLM2] } else { vec![STARTER] };
        let soak = Self { app, statuses, targets };
        soak.set(|settings| {
            settings.target = STARTER.to_owned();
            settings.sampling = Sampling { temperature: 0.7, ..Sampling::default() };
            settings.max_tokens = 24;
        });
        soak
    }

    /// Changes the settings and waits until the engine has applied them.
    fn set(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.app.settings();
        change(&mut settings);
        let target = settings.target.clone();
        self.app.save_settings(settings).unwrap();
        let is = |status: &EngineStatus| status.target.as_ref().is_some_and(|entry| entry.id == target);
        while self.statuses.try_recv().is_ok() {}
        let (sender, now) = mpsc::channel();
        self.app.watch_engine(move |status| {
            let _ = sender.send(status.clone());
            false
        });
        let mut status = now.recv().unwrap();
        while status.phase != EnginePhase::Ready || !is(&status) {
            status = self.statuses.recv_timeout(PATIENCE).unwrap();
        }
    }

    /// Changes draft or target, or runs an arena, depending on the message number.
    fn change(&self, message: u32) {
        if message.is_multiple_of(TARGET_EVERY) {
            let target = self.targets[(message / TARGET_EVERY) as usize % self.targets.len()];
            self.set(|settings| settings.target = target.to_owned());
        } else if self.is_second_target() && message % TARGET_EVERY == DRAFT_EVERY / 2 {
            // The second target is slow, so the first returns after some messages.
            self.set(|settings| settings.target = STARTER.to_owned());
        }
        if message.is_multiple_of(DRAFT_EVERY) {
            let draft = [STARTER_DRAFT, DRAFT_NGRAM, DRAFT_NONE][(message / DRAFT_EVERY) as usize % 3];
            self.set(|settings| drop(settings.drafts.insert(STARTER.to_owned(), draft.to_owned())));
        }
        if message.is_multiple_of(ARENA_EVERY) {
            self.set(|settings| settings.target = STARTER.to_owned());
            self.arena();
        }
    }

    fn is_second_target(&self) -> bool {
        self.app.settings().target != STARTER
    }

    fn arena(&self) {
        let setup = |draft: &str| Setup {
            draft: draft.to_owned(),
            speculation: Speculation::default(),
            mode: Mode::Reproducible,
        };
        let request = ArenaRequest {
            prompt: "Tell me a story about a fox.".to_owned(),
            setups: [setup(STARTER_DRAFT), setup(DRAFT_NONE)],
            pairs: 2,
            max_tokens: 32,
        };
        self.app.run_arena(request, Box::new(|_| ())).unwrap();
    }
}

fn main() -> ExitCode {
    let messages = std::env::var("MESSAGES").map_or(MESSAGES, |number| number.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    let soak = Soak::start(folder.path());
    let mut samples = Vec::new();
    let mut conversation = None;
    let events = Arc::new(Mutex::new(0u64));
    println!("message  MB  threads  files  log KB  temporary");
    for message in 0..messages {
        soak.change(message);
        if message.is_multiple_of(CONVERSATION_EVERY) {
            conversation = None;
        }
        let count = Arc::clone(&events);
        let on_event = Arc::new(move |_| *count.lock().unwrap() += 1);
        let reply =
            soak.app.send(conversation, format!("Tell me about fox {message}.").as_str(), on_event).unwrap();
        assert_eq!(reply.reply.problem, None);
        conversation = Some(reply.conversation.id);
        // Compares samples with the same target.
        if (message + 1).is_multiple_of(SAMPLE_EVERY) {
            let sample = Sample::take(message + 1, folder.path());
            let Sample { resident, threads, files, log, temporary, .. } = sample;
            println!(
                "{:7} {:4} {threads:7} {files:6} {:7} {temporary:4}",
                sample.message,
                resident >> 20,
                log >> 10
            );
            samples.push(sample);
        }
    }
    let complaints = complaints(&samples, messages);
    println!("{messages} messages, {} events, {} s", events.lock().unwrap(), begin.elapsed().as_secs());
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Lists resources that grew: compares the median of the last fifth with that of the first fifth
/// after the warm-up.
fn complaints(samples: &[Sample], messages: u32) -> Vec<String> {
    let warm: Vec<Sample> = samples
        .iter()
        .copied()
        .filter(|sample| f64::from(sample.message) > WARM_UP * f64::from(messages))
        .collect();
    let part = (warm.len() / 5).max(1);
    let (first, last) = (&warm[..part], &warm[warm.len() - part..]);
    let middle = |samples: &[Sample], of: fn(&Sample) -> u64| {
        let mut values: Vec<u64> = samples.iter().map(of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let mut complaints = Vec::new();
    let mut grown = |what: &str, of: fn(&Sample) -> u64, most: f64| {
        let (before, after) = (middle(first, of), middle(last, of));
        println!("{what}: {before} when warm, {after} at the end");
        if after as f64 > most * before as f64 {
            complaints.push(format!("{what} grew from {before} to {after}"));
        }
    };
    grown("bytes in memory", |sample| sample.resident, MAX_GROWTH);
    grown("threads", |sample| sample.threads as u64, 1.0);
    grown("open files", |sample| sample.files as u64, 1.0);
    grown("temporary files", |sample| sample.temporary as u64, 1.0);
    let log = samples.iter().map(|sample| sample.log).max().unwrap_or_default();
    println!("the log of the database: {log} bytes at most");
    if log > MAX_LOG {
        complaints.push(format!("the log of the database has {log} bytes"));
    }
    complaints
}
