//! Failed starts and their remedies.

use std::cell::RefCell;
use std::path::Path;

use foretoken_app::App;
use foretoken_app::start::{Remedy, StartProblem};
use foretoken_library::Folders;
use foretoken_store::Store;
use foretoken_tests::repository;

use super::Fixture;

/// Bytes in which SQLite stores `user_version`.
const VERSION: std::ops::Range<usize> = 60..64;

/// Starts in `folder` with these answers in turn; returns the problems too.
fn insist_on(folder: &Path, answers: &[bool]) -> (Option<App>, Vec<StartProblem>) {
    let asked = RefCell::new(Vec::new());
    let ask = |problem: &StartProblem| {
        asked.borrow_mut().push(problem.clone());
        answers[asked.borrow().len() - 1]
    };
    let started = App::start_with_recovery(|| App::start(Folders::at(folder), None), ask);
    (started, asked.into_inner())
}

/// Returns the contents of a folder's files by name, without the shared-memory file, which SQLite
/// rewrites on every read, and without an empty log.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = folder.read_dir().unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file());
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())
    };
    let is_temporary = |(name, bytes): &(String, Vec<u8>)| name.ends_with("-shm") || bytes.is_empty();
    let mut files: Vec<_> = files.map(read).filter(|file| !is_temporary(file)).collect();
    files.sort();
    files
}

fn with_a_conversation(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("foretoken.db");
    let mut store = Store::open(&path).unwrap();
    store.ask(None, &*"a question ".repeat(5000), "starter", None).unwrap();
    path
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_data_folder_with_a_long_name_with_spaces_and_umlauts_works() {
    let deep = tempfile::tempdir().unwrap();
    let deep =
        deep.path().join("Jürgen Groß ".repeat(9).trim_end()).join("größte Ordner ".repeat(9).trim_end());
    std::fs::create_dir_all(&deep).unwrap();
    let fixture = Fixture::at(tempfile::tempdir_in(&deep).unwrap());
    assert!(fixture.folder.path().to_string_lossy().chars().count() > 240);
    let model = fixture.folder.path().join("models").join("größtes Modell.gguf");
    std::fs::copy(repository().join("starter/starter-target-Q8_0.gguf"), &model).unwrap();
    let added = fixture.app.add_model(model.to_str().unwrap()).unwrap();
    let status = fixture.set(|settings| settings.target.clone_from(&added.id));
    assert_eq!(status.target.unwrap().problem, None);
    let (reply, _) = fixture.send(None, "Hello!");
    assert!(!reply.reply.text.is_empty());
    let again = fixture.restart();
    assert_eq!(again.app.messages(reply.conversation.id).unwrap().len(), 2);
}

#[test]
fn a_damaged_database_is_reported_and_left_unchanged_when_the_user_quits() {
    let damages: [fn(&mut Vec<u8>); 2] = [|bytes| bytes.fill(7), |bytes| bytes.truncate(bytes.len() / 2)];
    for damage in damages {
        let folder = tempfile::tempdir().unwrap();
        let path = with_a_conversation(folder.path());
        change(&path, damage);
        std::fs::write(folder.path().join("foretoken.db-wal"), "its log").unwrap();
        let before = files(folder.path());
        let (started, asked) = insist_on(folder.path(), &[false]);
        assert!(started.is_none());
        let problem = &asked[0];
        assert_eq!(problem.remedy, Some(Remedy::SetAside(path.clone())), "{}", problem.text);
        assert!(problem.text.contains(path.to_str().unwrap()), "{}", problem.text);
        assert!(problem.text.contains("renamed and not deleted"), "{}", problem.text);
        assert!(files(folder.path()) == before);
    }
}

#[test]
fn a_damaged_database_is_set_aside_on_request_with_one_notice() {
    let folder = tempfile::tempdir().unwrap();
    let path = with_a_conversation(folder.path());
    change(&path, |bytes| bytes.fill(7));
    std::fs::write(folder.path().join("foretoken.db-wal"), "its log").unwrap();
    let (started, asked) = insist_on(folder.path(), &[true]);
    let app = started.unwrap();
    assert_eq!(asked.len(), 1);
    assert!(app.conversations().unwrap().is_empty());
    let [notice] = &app.take_notices()[..] else { panic!("one notice") };
    assert!(app.take_notices().is_empty(), "shown once");
    let files = files(folder.path());
    let (database, bytes) = files.iter().find(|(name, _)| name.contains("-set-aside-")).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 7), "{database}");
    let log = files.iter().find(|(name, _)| *name == format!("{database}-wal"));
    assert_eq!(log.map(|(_, bytes)| &bytes[..]), Some(&b"its log"[..]));
    assert!(notice.contains(folder.path().join(database).to_str().unwrap()), "{notice}");
}

#[test]
fn a_database_of_a_newer_version_can_only_be_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = with_a_conversation(folder.path());
    change(&path, |bytes| bytes[VERSION].copy_from_slice(&99u32.to_be_bytes()));
    let before = files(folder.path());
    for answer in [true, false] {
        let (started, asked) = insist_on(folder.path(), &[answer]);
        assert!(started.is_none());
        assert_eq!((asked.len(), &asked[0].remedy), (1, &None));
        assert!(asked[0].text.contains("newer Foretoken"), "{}", asked[0].text);
        assert!(asked[0].text.contains("Update Foretoken"), "{}", asked[0].text);
    }
    assert!(files(folder.path()) == before);
}

#[test]
fn a_temporary_problem_can_be_retried_until_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::write(&data, "a file where the folder should be").unwrap();
    let (started, asked) = insist_on(&data, &[true, false]);
    assert!(started.is_none());
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|problem| problem.remedy == Some(Remedy::TryAgain)));
    assert!(asked[0].text.contains("could not be created"), "{}", asked[0].text);

    let asked = RefCell::new(0);
    let mend = |_: &StartProblem| {
        *asked.borrow_mut() += 1;
        std::fs::remove_file(&data).unwrap();
        true
    };
    let app = App::start_with_recovery(|| App::start(Folders::at(&data), None), mend).unwrap();
    assert_eq!((asked.into_inner(), app.take_notices().len()), (1, 0));
}

#[test]
fn without_a_home_folder_the_message_names_the_variable_to_set() {
    let problem = StartProblem::from(foretoken_library::Error::NoHome);
    assert_eq!(problem.remedy, None);
    assert!(problem.text.contains("FORETOKEN_DATA_DIR"), "{}", problem.text);
}

#[test]
fn unreadable_settings_are_named_once_after_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("foretoken.db")).unwrap();
    store
        .save_settings(r#"{"target": "starter", "appearance": {"theme": "plaid", "text_size": 90}}"#)
        .unwrap();
    drop(store);
    let app = App::start(Folders::at(folder.path()), None).unwrap();
    assert_eq!(app.settings().appearance.text_size, 90);
    let [notice] = &app.take_notices()[..] else { panic!("one notice") };
    assert!(notice.contains("appearance theme") && !notice.contains("text size"), "{notice}");
    app.save_settings(app.settings()).unwrap();
    drop(app);
    assert!(App::start(Folders::at(folder.path()), None).unwrap().take_notices().is_empty());
}

#[test]
fn a_page_that_is_reloaded_fifty_times_receives_each_change_once() {
    let folder = tempfile::tempdir().unwrap();
    let app = App::start(Folders::at(folder.path()), None).unwrap();
    let (sender, received) = std::sync::mpsc::channel();
    for page in 0..50 {
        let sender = sender.clone();
        app.watch_engine_changes(move |change| sender.send((page, change.len())).is_ok());
    }
    // Later changes go only to the newest page: the engine continues loading meanwhile.
    let mut newest = 0;
    loop {
        let (page, fields) = received.recv_timeout(crate::TIMEOUT).unwrap();
        assert!(page >= newest, "page {page} received a change after page {newest}");
        newest = page;
        // The whole status comes first, then a change.
        if page == 49 && fields < 10 {
            break;
        }
    }
}
