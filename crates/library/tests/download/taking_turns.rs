//! Several downloads, and several who want the same.

use std::fs;

use foretoken_library::DownloadState;
use foretoken_tests::hub::Faults;

use crate::shelf::{FILE, ID, REPOSITORY, SIZE, Shelf};

#[test]
fn whoever_asks_for_the_same_file_joins_and_it_is_fetched_once() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { bytes_per_second: Some(1_000_000), ..Faults::default() });
    let first = shelf.person();
    first.start();
    first.until(ID, |download| download.done_bytes > 100_000);
    assert_eq!(first.start().state, DownloadState::Running, "one that runs is returned as it is");
    // As another program would: it knows nothing of the first but the lock in the cache.
    let second = shelf.person();
    second.start();
    let waiting = second.until(ID, |download| download.state == DownloadState::Waiting);
    assert!(waiting.done_bytes > 0, "the bytes of the other one are seen: {waiting:?}");
    shelf.server.set(Faults::default());
    first.until_done(ID);
    second.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert_eq!(shelf.server.sent(), SIZE);
}

#[test]
fn when_the_first_gives_up_the_second_goes_on() {
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
fn a_file_that_came_while_it_was_waited_for_is_kept_where_links_are_not_allowed() {
    let shelf = Shelf::new();
    let lock = shelf.locked(FILE);
    let person = shelf.person();
    person.start();
    person.until(ID, |download| download.state == DownloadState::Waiting);
    // The other program moved its blob to where a link would be.
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
fn one_that_waits_for_another_program_leaves_its_turn() {
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
    // The first parts arrive, and somebody else has the second ones.
    shelf.server.set(Faults::default());
    person.until(&ids[2], |download| download.state == DownloadState::Done);
    for waiting in &ids[..2] {
        person.until(waiting, |download| download.state == DownloadState::Waiting);
    }
}

#[test]
fn more_than_two_wait_their_turn() {
    let shelf = Shelf::new();
    let files = ["a.gguf", "b.gguf", "c.gguf"];
    files.iter().for_each(|file| shelf.put(REPOSITORY, file, 900_000));
    shelf.server.set(Faults { bytes_per_second: Some(100_000), ..Faults::default() });
    let person = shelf.person();
    let ids = files.map(|file| person.downloads.start(REPOSITORY, Some(file)).unwrap().id);
    let states: Vec<_> = person.downloads.list().into_iter().map(|download| download.state).collect();
    assert_eq!(states[2], DownloadState::Queued, "{states:?}");
    // A pause makes room.
    person.downloads.pause(&ids[0]).unwrap();
    person.until(&ids[2], |download| download.state == DownloadState::Running);
    shelf.server.set(Faults::default());
    person.downloads.resume(&ids[0]).unwrap();
    ids.iter().for_each(|id| person.until_done(id));
    files.iter().for_each(|file| shelf.assert_arrived(REPOSITORY, file));
}
