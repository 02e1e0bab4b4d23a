//! The application, killed at random moments of what writes: afterwards its database opens and is whole, and what
//! it was told is stored is there. `make kill-test` does this 200 times; KILLS and SEED say how often and when.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use foretoken_app::App;
use foretoken_app::ipc::{DownloadState, EnginePhase, Message, ReplyEvent, Role, Settings};
use foretoken_app::reply::Events;
use foretoken_engine::model::Renderer;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::session::ThisComputer;
use foretoken_library::Folders;
use foretoken_store::Store;
use foretoken_tests::hub::{Faults, Hub};
use foretoken_tests::repository;
use rusqlite::Connection;
use serde_json::{Value, json};

/// Names the data folder to the process that is going to be killed.
const FOLDER: &str = "FORETOKEN_TEST_VICTIM";
/// What it does there.
const SCENE: &str = "FORETOKEN_TEST_SCENE";
/// What every line says that the victim prints, since the test harness has words of its own.
const MARK: &str = "told: ";

const REPOSITORY: &str = "owner/name";
const FILE: &str = "draft.gguf";
/// A download takes about half a second.
const BYTES_PER_SECOND: u64 = 3_000_000;

/// What is in a database of the first version.
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

/// Something that is killed.
struct Scene {
    name: &'static str,
    /// When: after so many things were told at most, and so many microseconds more.
    within: (u64, u64),
    /// Before the first process.
    prepare: fn(&Path, &[Value]),
    /// Goes on until it is killed, and tells what is stored.
    act: fn(&Path),
    /// Whether what was told by all processes so far is there.
    check: fn(&Path, &[Value]),
}

fn nothing(_: &Path, _: &[Value]) {}

/// SplitMix64.
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
        let told = match scene.name {
            "download" => kill_downloads(scene, share, &mut random),
            _ => kill(scene, share, &mut random),
        };
        println!(
            "{}: {share} of {share} kills, {told} things told, seed {seed}, {} s",
            scene.name,
            begin.elapsed().as_secs()
        );
    }
}

/// Kills a scene in one folder after another, five times each; how many things it told of.
fn kill(scene: &Scene, kills: u64, random: &mut Random) -> usize {
    let (mut killed, mut all) = (0, 0);
    while killed < kills {
        let folder = tempfile::tempdir().unwrap();
        let mut told = Vec::new();
        (scene.prepare)(folder.path(), &told);
        for _ in 0..5.min(kills - killed) {
            let (was_killed, said) = start(scene, folder.path(), "nowhere").killed(scene, random);
            told.extend(said);
            is_whole(folder.path());
            (scene.check)(folder.path(), &told);
            if !was_killed {
                // It had come to its end.
                break;
            }
            killed += 1;
        }
        all += told.len();
    }
    all
}

/// Kills downloads of one file at most ten times; then it arrives, with every byte as it is on the hub.
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
            let (was_killed, said) = start(scene, folder.path(), &hub.url).killed(scene, random);
            all += said.len();
            is_whole(folder.path());
            if !was_killed {
                break;
            }
            killed += 1;
        }
        let mut last = start(scene, folder.path(), &hub.url);
        let told: Vec<Value> = std::iter::from_fn(|| last.told()).collect();
        assert!(last.child.wait().unwrap().success() && told.last() == Some(&json!("done")), "{told:?}");
        let arrived = find(&folder.path().join("hub"), FILE).expect("the file did not arrive");
        assert!(std::fs::read(arrived).unwrap() == std::fs::read(&source).unwrap(), "other bytes arrived");
        all += told.len();
    }
    all
}

/// A process that is going to be killed.
struct Victim {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// This test again, as another process.
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
    /// Kills it at a random moment of its scene: whether that was before its end, and all that it told.
    fn killed(mut self, scene: &Scene, random: &mut Random) -> (bool, Vec<Value>) {
        let (lines, micros) = (random.below(scene.within.0), random.below(scene.within.1));
        // It tells "begin" first.
        let mut told: Vec<Value> = (0..=lines).map_while(|_| self.told()).collect();
        std::thread::sleep(Duration::from_micros(micros));
        self.child.kill().unwrap();
        told.extend(std::iter::from_fn(|| self.told()));
        told.retain(|value| value != "begin");
        let status = self.child.wait().unwrap();
        // A killed process has no code; on Windows it has this, and a test that fails by itself another.
        let killed = if cfg!(windows) { Some(1) } else { None };
        assert!(status.success() || status.code() == killed, "{} failed by itself: {status}", scene.name);
        (!status.success(), told)
    }

    /// The next that it tells; `None` at its end.
    fn told(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            // A line that the kill cut off was not told.
            let told = line.trim_end().split_once(MARK).and_then(|(_, json)| serde_json::from_str(json).ok());
            if told.is_some() {
                return told;
            }
            line.clear();
        }
        None
    }
}

fn tell(value: &Value) {
    let mut output = std::io::stdout().lock();
    // One write: a line is told or it is not.
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

/// The application on the starter pair, with short replies.
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
    tell(&json!("begin"));
    app
}

/// Tells of the message that was stored when the reply began.
fn teller() -> Events {
    Arc::new(|event| {
        if let ReplyEvent::Started { user: Some(user), .. } = event {
            tell(&json!({"id": user.id, "conversation": user.conversation, "text": user.text}));
        }
    })
}

fn tell_of(message: &Message) {
    let Message { id, conversation, text, .. } = message;
    tell(&json!({"id": id, "conversation": conversation, "text": text, "over": true}));
}

fn chat(folder: &Path) {
    let app = application(folder);
    for turn in 0.. {
        // Every fourth is of a new conversation.
        let conversation =
            app.conversations().unwrap().first().map(|latest| latest.id).filter(|_| turn % 4 > 0);
        let reply = app.send(conversation, format!("Tell me about fox {turn}.").as_str(), teller()).unwrap();
        tell_of(&reply.reply);
    }
}

fn replies_are_there(folder: &Path, told: &[Value]) {
    let store = Store::open(&Folders::at(folder).database()).unwrap();
    for message in told {
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
        None => app.send(None, "Tell me about foxes.", teller()).unwrap().reply,
    };
    loop {
        // One that a kill cut short was not over.
        if reply.finish.is_some() {
            tell_of(&reply);
        }
        reply = app.regenerate(reply.id, teller()).unwrap().reply;
    }
}

/// The question, and after it one of the replies, of which all that were told of are there.
fn all_replies_stand_beside_each_other(folder: &Path, told: &[Value]) {
    let Some(last) = told.iter().rev().find(|message| message["over"] == true) else { return };
    let store = Store::open(&Folders::at(folder).database()).unwrap();
    let messages = store.messages(last["conversation"].as_i64().unwrap()).unwrap();
    assert_eq!((messages.len(), messages[0].text.as_str()), (2, "Tell me about foxes."));
    for reply in told.iter().filter(|message| message["over"] == true) {
        let stored = store.message(reply["id"].as_i64().unwrap()).unwrap();
        assert!(messages[1].siblings.contains(&stored.id));
        assert_eq!((&json!(stored.text), stored.finish.is_some()), (&reply["text"], true));
    }
}

fn download(folder: &Path) {
    let folders = Folders::at(folder);
    let app = start_app(folders);
    tell(&json!("begin"));
    let (states, downloads) = mpsc::channel();
    app.watch_downloads(move |downloads| states.send(downloads.clone()).is_ok()).unwrap();
    app.start_download(REPOSITORY, Some(FILE)).unwrap();
    for download in downloads.iter().flatten() {
        tell(&json!(download.done_bytes));
        match download.state {
            DownloadState::Done => return tell(&json!("done")),
            DownloadState::Failed => panic!("{:?}", download.reason),
            _ => {}
        }
    }
}

/// A database of the first version, as if it were from before the first migration.
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
    tell(&json!("begin"));
    Store::open(&Folders::at(folder).database()).unwrap();
    tell(&json!("migrated"));
}

fn the_old_database_is_there(folder: &Path, _: &[Value]) {
    // A copy is opened, so that the next process has something left to migrate.
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
    tell(&json!("begin"));
    let from = app.settings().max_tokens;
    if from > 0 {
        tell(&json!(from));
    }
    for number in from + 1.. {
        let settings = Settings { max_tokens: number, ..app.settings() };
        app.save_settings(settings).unwrap();
        tell(&json!(number));
    }
}

fn settings_are_there(folder: &Path, told: &[Value]) {
    let Some(last) = told.last().and_then(Value::as_u64) else { return };
    let store = Store::open(&Folders::at(folder).database()).unwrap();
    let stored: Settings = serde_json::from_str(&store.settings().unwrap().unwrap()).unwrap();
    assert!(
        (last..=last + 1).contains(&u64::from(stored.max_tokens)),
        "{last} was told, {} is stored",
        stored.max_tokens
    );
}
