//! The application, killed at random moments while it writes: afterwards its database opens and is
//! intact, and everything reported as stored is there. `make kill-test` does this 200 times; KILLS
//! and SEED set how often and when.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use foretoken_app::App;
use foretoken_app::conversations::reply::Events;
use foretoken_app::ipc::{DownloadState, EnginePhase, Message, ReplyEvent, Role, Settings};
use foretoken_engine::session::ThisComputer;
use foretoken_library::Folders;
use foretoken_model::Renderer;
use foretoken_model::sampling::Sampling;
use foretoken_store::Store;
use foretoken_tests::hub::{Faults, Hub};
use foretoken_tests::repository;
use rusqlite::Connection;
use serde_json::{Value, json};

/// Environment variable with the data folder of the process to be killed.
const FOLDER: &str = "FORETOKEN_TEST_VICTIM";
/// Environment variable with the name of its scene.
const SCENE: &str = "FORETOKEN_TEST_SCENE";
/// Prefix of the victim's own lines, because the test harness prints text too.
const MARK: &str = "report: ";

const REPOSITORY: &str = "owner/name";
const FILE: &str = "draft.gguf";
/// Makes a download take about half a second.
const BYTES_PER_SECOND: u64 = 3_000_000;

/// Conversations in a database of the first version.
const OLD_CONVERSATIONS: i64 = 60;
const OLD_ROUNDS: i64 = 40;

const SCENES: [Scene; 5] = [
    Scene { name: "chat", within: (6, 60_000), prepare: nothing, act: chat, check: replies_are_there },
    Scene {
        name: "regenerate",
        within: (6, 60_000),
        prepare: nothing,
        act: regenerate,
        check: all_replies_stand_beside_each_other,
    },
    Scene { name: "download", within: (3, 80_000), prepare: nothing, act: download, check: nothing },
    Scene {
        name: "migration",
        within: (1, 60_000),
        prepare: old_database,
        act: migrate,
        check: the_old_database_is_there,
    },
    Scene {
        name: "settings",
        within: (6, 10_000),
        prepare: nothing,
        act: settings,
        check: settings_are_there,
    },
];

/// A sequence of actions that is interrupted by kills.
struct Scene {
    name: &'static str,
    /// Latest kill: after this many reports, plus this many microseconds.
    within: (u64, u64),
    /// Runs before the first process.
    prepare: fn(&Path, &[Value]),
    /// Runs until the kill, and reports what is stored.
    act: fn(&Path),
    /// Checks that everything reported by all processes so far is there.
    check: fn(&Path, &[Value]),
}

fn nothing(_: &Path, _: &[Value]) {}

/// SplitMix64 generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

#[test]
fn a_killed_application_loses_nothing_that_was_shown_as_stored() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let scene = std::env::var(SCENE).unwrap();
        let scene = SCENES.iter().find(|known| known.name == scene).unwrap();
        return (scene.act)(Path::new(&folder));
    }
    let number = |name: &str, usual| std::env::var(name).map_or(usual, |value| value.parse().unwrap());
    let (kills, seed) = (number("KILLS", 10), number("SEED", 1));
    let mut random = Random(seed);
    for scene in &SCENES {
        let begin = Instant::now();
        let share = kills / SCENES.len() as u64;
        let reports = match scene.name {
            "download" => kill_downloads(scene, share, &mut random),
            _ => kill(scene, share, &mut random),
        };
        println!(
            "{}: {share} of {share} kills, {reports} reports, seed {seed}, {} s",
            scene.name,
            begin.elapsed().as_secs()
        );
    }
}

/// Kills a scene in one folder after another, five times each; returns the number of reports.
fn kill(scene: &Scene, kills: u64, random: &mut Random) -> usize {
    let (mut killed, mut all) = (0, 0);
    while killed < kills {
        let folder = tempfile::tempdir().unwrap();
        let mut reports = Vec::new();
        (scene.prepare)(folder.path(), &reports);
        for _ in 0..5.min(kills - killed) {
            let (was_killed, lines) = start(scene, folder.path(), "nowhere").killed(scene, random);
            reports.extend(lines);
            is_whole(folder.path());
            (scene.check)(folder.path(), &reports);
            if !was_killed {
                // The scene had ended.
                break;
            }
            killed += 1;
        }
        all += reports.len();
    }
    all
}

/// Kills downloads of one file at most ten times; then it completes, identical to the hub's file.
fn kill_downloads(scene: &Scene, kills: u64, random: &mut Random) -> usize {
    let served = tempfile::tempdir().unwrap();
    let source = repository().join("starter/starter-draft-Q8_0.gguf");
    let folder = served.path().join(REPOSITORY);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(&source, folder.join(FILE)).unwrap();
    let hub = Hub::start(served.path());
    hub.set(Faults { bytes_per_second: Some(BYTES_PER_SECOND), ..Faults::default() });
    let (mut killed, mut all) = (0, 0);
    while killed < kills {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..10.min(kills - killed) {
            let (was_killed, lines) = start(scene, folder.path(), &hub.url).killed(scene, random);
            all += lines.len();
            is_whole(folder.path());
            if !was_killed {
                break;
            }
            killed += 1;
        }
        let mut last = start(scene, folder.path(), &hub.url);
        let reports: Vec<Value> = std::iter::from_fn(|| last.next_report()).collect();
        assert!(
            last.child.wait().unwrap().success() && reports.last() == Some(&json!("done")),
            "{reports:?}"
        );
        let arrived = find(&folder.path().join("hub"), FILE).expect("the file did not arrive");
        assert!(std::fs::read(arrived).unwrap() == std::fs::read(&source).unwrap(), "other bytes arrived");
        all += reports.len();
    }
    all
}

/// A process to be killed.
struct Victim {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// Starts this test again as another process.
fn start(scene: &Scene, folder: &Path, hub: &str) -> Victim {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_application_loses_nothing_that_was_shown_as_stored", "--nocapture"])
        .env(FOLDER, folder)
        .env(SCENE, scene.name)
        .env("HF_ENDPOINT", hub)
        .env("HF_HUB_CACHE", folder.join("hub"))
        .env("HOME", folder)
        .env("FORETOKEN_SMOLLM2_DIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    Victim { child, output }
}

impl Victim {
    /// Kills the process at a random moment of its scene; returns whether that was before its end,
    /// and all reports.
    fn killed(mut self, scene: &Scene, random: &mut Random) -> (bool, Vec<Value>) {
        let (lines, micros) = (random.below(scene.within.0), random.below(scene.within.1));
        // The first report is "begin".
        let mut reports: Vec<Value> = (0..=lines).map_while(|_| self.next_report()).collect();
        std::thread::sleep(Duration::from_micros(micros));
        self.child.kill().unwrap();
        reports.extend(std::iter::from_fn(|| self.next_report()));
        reports.retain(|value| value != "begin");
        let status = self.child.wait().unwrap();
        // A killed process has no exit code; on Windows it has this one, and a failing test
        // another.
        let killed = if cfg!(windows) { Some(1) } else { None };
        assert!(status.success() || status.code() == killed, "{} failed by itself: {status}", scene.name);
        (!status.success(), reports)
    }

    /// Returns the next report; `None` at the end.
    fn next_report(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            // A line interrupted by the kill does not count.
            let found =
                line.trim_end().split_once(MARK).and_then(|(_, json)| serde_json::from_str(json).ok());
            if found.is_some() {
                return found;
            }
            line.clear();
        }
        None
    }
}

fn report(value: &Value) {
    let mut output = std::io::stdout().lock();
    // One write, so a line is complete or missing.
    output.write_all(format!("{MARK}{value}\n").as_bytes()).unwrap();
    output.flush().unwrap();
}

fn is_whole(folder: &Path) {
    let path = Folders::at(folder).database();
    if !path.exists() {
        return;
    }
    let found: String =
        Connection::open(&path).unwrap().query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => find(&path, name),
        path => (entry.file_name() == name).then_some(path),
    })
}

fn start_app(folders: Folders) -> App {
    App::start_on(folders, None, Arc::new(ThisComputer), Renderer::in_this_process(), None).unwrap()
}

/// Starts the application on the starter pair, with short replies.
fn application(folder: &Path) -> Arc<App> {
    let folders = Folders::at(folder);
    let store = Store::open(&folders.database()).unwrap();
    let settings = json!({"target": "starter", "max_tokens": 24, "sampling": Sampling::greedy()});
    store.save_settings(&settings.to_string()).unwrap();
    drop(store);
    let app = Arc::new(start_app(folders));
    let (ready, is_ready) = mpsc::channel();
    app.watch_engine(move |status| {
        let _ = ready.send(status.phase == EnginePhase::Ready);
        true
    });
    is_ready.iter().find(|ready| *ready).unwrap();
    report(&json!("begin"));
    app
}

/// Reports the question that was stored when the reply began.
fn reporter() -> Events {
    Arc::new(|event| {
        if let ReplyEvent::Started { user: Some(user), .. } = event {
            report(&json!({"id": user.id, "conversation": user.conversation, "text": user.text}));
        }
    })
}

fn tell_of(message: &Message) {
    let Message { id, conversation, text, .. } = message;
    report(&json!({"id": id, "conversation": conversation, "text": text, "over": true}));
}

fn chat(folder: &Path) {
    let app = application(folder);
    for turn in 0.. {
        // Every fourth message starts a new conversation.
        let conversation =
            app.conversations().unwrap().first().map(|latest| latest.id).filter(|_| turn % 4 > 0);
        let reply =
            app.send(conversation, format!("Tell me about fox {turn}.").as_str(), reporter()).unwrap();
        tell_of(&reply.reply);
    }
}

fn replies_are_there(folder: &Path, reports: &[Value]) {
    let store = Store::open(&Folders::at(folder).database()).unwrap();
    for message in reports {
        let stored = store.message(message["id"].as_i64().unwrap()).unwrap();
        assert_eq!(json!(stored.text), message["text"]);
        assert_eq!(stored.finish.is_some(), message["over"] == true, "{stored:?}");
        assert!(message["over"] != true || !store.rounds(stored.id).unwrap().is_empty(), "no trace");
    }
}

fn regenerate(folder: &Path) {
    let app = application(folder);
    let stored = app.conversations().unwrap().first().map(|latest| app.messages(latest.id).unwrap());
    let by_model = |message: &Message| message.role == Role::Assistant;
    let mut reply = match stored.unwrap_or_default().into_iter().rfind(by_model) {
        Some(reply) => reply,
        None => app.send(None, "Tell me about foxes.", reporter()).unwrap().reply,
    };
    loop {
        // A reply interrupted by a kill was not finished.
        if reply.finish.is_some() {
            tell_of(&reply);
        }
        reply = app.regenerate(reply.id, reporter()).unwrap().reply;
    }
}

/// Checks that the conversation shows the question and one reply, and that all reported replies are
/// its siblings.
fn all_replies_stand_beside_each_other(folder: &Path, reports: &[Value]) {
    let Some(last) = reports.iter().rev().find(|message| message["over"] == true) else { return };
    let store = Store::open(&Folders::at(folder).database()).unwrap();
    let messages = store.messages(last["conversation"].as_i64().unwrap()).unwrap();
    assert_eq!((messages.len(), messages[0].text.as_str()), (2, "Tell me about foxes."));
    for reply in reports.iter().filter(|message| message["over"] == true) {
        let stored = store.message(reply["id"].as_i64().unwrap()).unwrap();
        assert!(messages[1].siblings.contains(&stored.id));
        assert_eq!((&json!(stored.text), stored.finish.is_some()), (&reply["text"], true));
    }
}

fn download(folder: &Path) {
    let folders = Folders::at(folder);
    let app = start_app(folders);
    report(&json!("begin"));
    let (states, downloads) = mpsc::channel();
    app.watch_downloads(move |downloads| states.send(downloads.clone()).is_ok()).unwrap();
    app.start_download(REPOSITORY, Some(FILE)).unwrap();
    for download in downloads.iter().flatten() {
        report(&json!(download.done_bytes));
        match download.state {
            DownloadState::Done => return report(&json!("done")),
            DownloadState::Failed => panic!("{:?}", download.reason),
            _ => {}
        }
    }
}

/// Creates a database of the first version, from before the first migration.
fn old_database(folder: &Path, _: &[Value]) {
    let connection = Connection::open(Folders::at(folder).database()).unwrap();
    connection.execute_batch(include_str!("kill/schema-1.sql")).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    for id in 1..=OLD_CONVERSATIONS {
        connection
            .execute(
                "INSERT INTO conversations (id, title, created_at, updated_at) VALUES (?1, ?2, 1, 1)",
                (id, old_text(id)),
            )
            .unwrap();
        for (message, role) in [(2 * id - 1, "user"), (2 * id, "assistant")] {
            let add = "INSERT INTO messages (id, conversation, role, text, created_at, indexed) VALUES (?1, ?2, ?3, ?4, 1, 1)";
            connection.execute(add, (message, id, role, old_text(message))).unwrap();
        }
        for round in 0..OLD_ROUNDS {
            let add = "INSERT INTO rounds (message, idx, json) VALUES (?1, ?2, ?3)";
            connection.execute(add, (2 * id, round, old_round(round))).unwrap();
        }
    }
    connection.execute_batch("COMMIT").unwrap();
}

fn old_text(id: i64) -> String {
    format!("old text {id} ").repeat(20)
}

fn old_round(round: i64) -> String {
    format!("{{\"index\":{round},\"text\":\"{}\"}}", "x".repeat(200))
}

fn migrate(folder: &Path) {
    report(&json!("begin"));
    Store::open(&Folders::at(folder).database()).unwrap();
    report(&json!("migrated"));
}

fn the_old_database_is_there(folder: &Path, _: &[Value]) {
    // Opens a copy, so the next process still has a migration to do.
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    let store = Store::open(&Folders::at(copy.path()).database()).unwrap();
    let titles: BTreeMap<i64, String> = store
        .conversations()
        .unwrap()
        .into_iter()
        .map(|conversation| (conversation.id, conversation.title))
        .collect();
    assert_eq!(titles, (1..=OLD_CONVERSATIONS).map(|id| (id, old_text(id))).collect());
    for id in 1..=OLD_CONVERSATIONS {
        let texts: Vec<String> =
            store.messages(id).unwrap().into_iter().map(|message| message.text).collect();
        assert_eq!(texts, [old_text(2 * id - 1), old_text(2 * id)]);
        assert_eq!(store.rounds(2 * id).unwrap(), (0..OLD_ROUNDS).map(old_round).collect::<Vec<_>>());
    }
}

fn settings(folder: &Path) {
    let app = start_app(Folders::at(folder));
    report(&json!("begin"));
    for number in app.settings().max_tokens + 1.. {
        let settings = Settings { max_tokens: number, ..app.settings() };
        app.save_settings(settings).unwrap();
        report(&json!(number));
    }
}

fn settings_are_there(folder: &Path, reports: &[Value]) {
    let Some(last) = reports.iter().rev().find_map(Value::as_u64) else { return };
    let store = Store::open(&Folders::at(folder).database()).unwrap();
    let stored: Settings = serde_json::from_str(&store.settings().unwrap().unwrap()).unwrap();
    assert!(
        (last..=last + 1).contains(&u64::from(stored.max_tokens)),
        "{last} was reported, {} is stored",
        stored.max_tokens
    );
}
