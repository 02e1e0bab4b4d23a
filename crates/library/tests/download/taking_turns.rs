//! Several downloads at once, and several programs that want the same file.

use std::fs;

use foretoken_library::DownloadState;
use foretoken_tests::hub::Faults;

use crate::shelf::{FILE, ID, REPOSITORY, SIZE, Shelf};

#[test]
fn a_second_request_for_a_file_joins_the_first_and_downloads_once() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { bytes_per_second: Some(1_000_000), ..Faults::default() });
    let first = shelf.person();
    first.start();
    first.until(ID, |download| download.done_bytes > 100_000);
    assert_eq!(first.start().state, DownloadState::Running, "a running download is returned unchanged");
    // Like another program, this one shares only the lock in the cache.
    let second = shelf.person();
    second.start();
    let waiting = second.until(ID, |download| download.state == DownloadState::Waiting);
    assert!(waiting.done_bytes > 0, "progress of the other program is shown: {waiting:?}");
    shelf.server.set(Faults::default());
    first.until_done(ID);
    second.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert_eq!(shelf.server.sent(), SIZE);
}

#[test]
fn when_the_first_program_stops_the_second_continues() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { bytes_per_second: Some(1_000_000), ..Faults::default() });
    let first = shelf.person();
    first.start();
    first.until(ID, |download| download.done_bytes > 100_000);
    let second = shelf.person();
    second.start();
    second.until(ID, |download| download.state == DownloadState::Waiting);
    first.downloads.pause(ID).unwrap();
    second.until(ID, |download| download.state == DownloadState::Running);
    shelf.server.set(Faults::default());
    second.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert!(shelf.server.sent() < SIZE * 105 / 100);
}

#[test]
fn a_file_finished_by_another_program_without_links_is_reused() {
    let shelf = Shelf::new();
    let lock = shelf.locked(FILE);
    let person = shelf.person();
    person.start();
    person.until(ID, |download| download.state == DownloadState::Waiting);
    // The other program moved its blob to the place of a link.
    let cached = shelf.cached(REPOSITORY, FILE);
    fs::create_dir_all(cached.parent().unwrap()).unwrap();
    fs::copy(shelf.original(REPOSITORY, FILE), &cached).unwrap();
    drop(lock);
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert!(!cached.is_symlink());
    assert_eq!(shelf.server.sent(), 0);
}

#[test]
fn a_download_that_waits_for_another_program_frees_its_slot() {
    let shelf = Shelf::new();
    let second = ["a-00002-of-00002.gguf", "b-00002-of-00002.gguf"];
    let first = ["a-00001-of-00002.gguf", "b-00001-of-00002.gguf", "c.gguf"];
    first.iter().chain(&second).for_each(|file| shelf.put(REPOSITORY, file, 900_000));
    let _locks = second.map(|file| shelf.locked(file));
    shelf.server.set(Faults { bytes_per_second: Some(100_000), ..Faults::default() });
    let person = shelf.person();
    let ids = first.map(|file| person.downloads.start(REPOSITORY, Some(file)).unwrap().id);
    let states: Vec<_> = person.downloads.list().into_iter().map(|download| download.state).collect();
    assert_eq!(states[2], DownloadState::Queued, "{states:?}");
    // The first parts arrive, and another program holds the second ones.
    shelf.server.set(Faults::default());
    person.until(&ids[2], |download| download.state == DownloadState::Done);
    for waiting in &ids[..2] {
        person.until(waiting, |download| download.state == DownloadState::Waiting);
    }
}

#[test]
fn more_than_two_downloads_are_queued() {
    let shelf = Shelf::new();
    let files = ["a.gguf", "b.gguf", "c.gguf"];
    files.iter().for_each(|file| shelf.put(REPOSITORY, file, 900_000));
    shelf.server.set(Faults { bytes_per_second: Some(100_000), ..Faults::default() });
    let person = shelf.person();
    let ids = files.map(|file| person.downloads.start(REPOSITORY, Some(file)).unwrap().id);
    let states: Vec<_> = person.downloads.list().into_iter().map(|download| download.state).collect();
    assert_eq!(states[2], DownloadState::Queued, "{states:?}");
    // A pause frees a slot.
    person.downloads.pause(&ids[0]).unwrap();
    person.until(&ids[2], |download| download.state == DownloadState::Running);
    shelf.server.set(Faults::default());
    person.downloads.resume(&ids[0]).unwrap();
    ids.iter().for_each(|id| person.until_done(id));
    files.iter().for_each(|file| shelf.assert_arrived(REPOSITORY, file));
}
