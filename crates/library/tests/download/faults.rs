//! Faults during a download: the result is correct, and nothing already on disk is downloaded
//! again.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use foretoken_library::DownloadState;
use foretoken_tests::hub::Faults;

use crate::shelf::{FILE, ID, Person, REPOSITORY, SIZE, Shelf, files_below};

#[test]
fn an_interrupted_connection_resumes_where_it_ended() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { cuts: 3, cut_after: 700_001, ..Faults::default() });
    let person = shelf.person();
    person.start();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert_eq!(shelf.server.sent(), SIZE);
}

#[test]
fn a_busy_storage_is_retried() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { unavailable: 2, ..Faults::default() });
    let person = shelf.person();
    person.start();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
}

#[test]
fn a_connection_that_stays_interrupted_pauses_the_download_and_keeps_its_bytes() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { cuts: 1, cut_after: 1_000_000, ..Faults::default() });
    let person = shelf.person();
    person.start();
    person.until(ID, |download| download.done_bytes == 1_000_000);
    shelf.server.set(Faults { unavailable: u32::MAX, ..Faults::default() });
    let reason = person.until_interrupted(ID);
    assert!(reason.contains("503") && reason.contains("Check the connection"), "{reason}");
    shelf.server.set(Faults::default());
    person.downloads.resume(ID).unwrap();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert_eq!(shelf.server.sent(), SIZE);
}

#[test]
fn after_a_power_cut_only_one_piece_is_downloaded_again() {
    let shelf = Shelf::new();
    drop(slow(&shelf));
    // The length is right, but the end was not written.
    let partial = shelf.partial().remove(0);
    let mut torn = fs::read(&partial).unwrap();
    let end = torn.len() - 100_000;
    torn[end..].fill(0);
    fs::write(&partial, torn).unwrap();
    shelf.server.set(Faults::default());
    let before = shelf.server.sent();
    let person = shelf.person();
    person.downloads.resume(ID).unwrap();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    // The rest and the piece; bytes that were in transit do not count.
    let sent = shelf.server.sent() - before;
    assert!((SIZE..SIZE + 300_000).contains(&sent), "{sent}");
}

#[test]
fn a_server_without_ranges_starts_over_and_the_file_is_correct() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { cuts: 1, cut_after: 700_001, ignore_range: true, ..Faults::default() });
    let person = shelf.person();
    person.start();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert_eq!(shelf.server.sent(), SIZE + 700_001);
}

#[test]
fn wrong_bytes_are_detected_removed_and_downloaded_again_on_request() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { wrong_byte: Some(1_234_567), ..Faults::default() });
    let person = shelf.person();
    person.start();
    let ended = person.until(ID, |download| !download.state.is_active());
    let DownloadState::Failed { reason } = ended.state else { panic!("{:?}", ended.state) };
    assert!(reason.contains("arrived damaged: expected SHA-256"), "{reason}");
    assert!(shelf.partial().is_empty() && !shelf.cached(REPOSITORY, FILE).exists());
    shelf.server.set(Faults::default());
    person.downloads.resume(ID).unwrap();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
}

#[test]
fn a_wrong_byte_in_a_small_file_is_detected() {
    let shelf = Shelf::new();
    shelf.put("owner/whole", "model.safetensors", 900);
    shelf.put("owner/whole", "config.json", 500);
    let config = shelf.original("owner/whole", "config.json");
    let right = fs::read(&config).unwrap();
    let mut wrong = right.clone();
    wrong[123] ^= 1;
    write_keeping_checksum(&config, &wrong);
    let person = shelf.person();
    person.downloads.start("owner/whole", None).unwrap();
    let ended = person.until("owner/whole", |download| !download.state.is_active());
    let DownloadState::Failed { reason } = ended.state else { panic!("{:?}", ended.state) };
    assert!(reason.contains("config.json arrived damaged: expected git's SHA-1"), "{reason}");
    assert!(!shelf.cached("owner/whole", "config.json").exists());
    write_keeping_checksum(&config, &right);
    person.downloads.resume("owner/whole").unwrap();
    person.until_done("owner/whole");
    shelf.assert_arrived("owner/whole", "config.json");
}

/// Changes a file while the hub keeps reporting its old checksum.
fn write_keeping_checksum(path: &Path, content: &[u8]) {
    let changed = path.metadata().unwrap().modified().unwrap();
    fs::write(path, content).unwrap();
    OpenOptions::new().write(true).open(path).unwrap().set_modified(changed).unwrap();
}

#[test]
fn pausing_does_not_wait_for_a_silent_hub() {
    for gone in [false, true] {
        let shelf = Shelf::new();
        drop(slow(&shelf));
        let (url, calls) = silent(gone);
        let person = Person::asking(&shelf, foretoken_library::Hub::at(&url, shelf.cache(), None));
        person.downloads.resume(ID).unwrap();
        let _call = calls.recv_timeout(Duration::from_secs(10)).unwrap();
        let paused_at = Instant::now();
        drop(person);
        assert!(paused_at.elapsed() < Duration::from_secs(5), "{:?}, {gone}", paused_at.elapsed());
    }
}

/// Starts a hub that never responds, or after `gone` reports that the revision is gone and then
/// never responds; returns the connections it holds open.
fn silent(gone: bool) -> (String, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (unanswered, calls) = mpsc::channel();
    thread::spawn(move || {
        for (number, mut call) in listener.incoming().flatten().enumerate() {
            if gone && number == 0 {
                let _ = call.read(&mut [0; 4096]);
                let answer = "HTTP/1.1 404 -\r\nX-Error-Code: RevisionNotFound\r\nConnection: close\r\n\r\n";
                call.write_all(answer.as_bytes()).unwrap();
            } else if unanswered.send(call).is_err() {
                return;
            }
        }
    });
    (url, calls)
}

#[test]
fn more_bytes_than_announced_are_refused() {
    let shelf = Shelf::new();
    shelf.server.set(Faults { too_long: true, ..Faults::default() });
    let person = shelf.person();
    person.start();
    let ended = person.until(ID, |download| !download.state.is_active());
    let DownloadState::Failed { reason } = ended.state else { panic!("{:?}", ended.state) };
    assert!(reason.contains("expected 3000017 bytes, found more"), "{reason}");
    assert!(shelf.partial().is_empty());
}

#[test]
fn a_damaged_or_too_long_partial_file_is_repaired() {
    for damage in [false, true] {
        let shelf = Shelf::new();
        let person = slow(&shelf);
        person.downloads.pause(ID).unwrap();
        drop(person);
        let [partial] = &shelf.partial()[..] else { panic!() };
        let file = OpenOptions::new().write(true).open(partial).unwrap();
        if damage {
            fs::write(partial, vec![0; 5000]).unwrap()
        } else {
            file.set_len(SIZE + 1).unwrap()
        }
        shelf.server.set(Faults::default());
        let person = shelf.person();
        person.downloads.resume(ID).unwrap();
        person.until_done(ID);
        shelf.assert_arrived(REPOSITORY, FILE);
    }
}

/// A person whose slow download has begun.
fn slow(shelf: &Shelf) -> Person {
    shelf.server.set(Faults { bytes_per_second: Some(1_000_000), ..Faults::default() });
    let person = shelf.person();
    person.start();
    person.until(ID, |download| download.done_bytes > 200_000 && download.bytes_per_second > 0.0);
    person
}

#[test]
fn a_paused_download_stops_immediately_and_resumes_where_it_was() {
    let shelf = Shelf::new();
    let person = slow(&shelf);
    person.downloads.pause(ID).unwrap();
    let paused = &person.downloads.list()[0];
    assert_eq!((&paused.state, paused.bytes_per_second), (&DownloadState::Paused { reason: None }, 0.0));
    thread::sleep(Duration::from_millis(300));
    let sent = shelf.server.sent();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(shelf.server.sent(), sent);
    assert!(sent < SIZE / 2, "{sent}");
    shelf.server.set(Faults::default());
    person.downloads.resume(ID).unwrap();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert!(shelf.server.sent() < SIZE * 105 / 100, "{}", shelf.server.sent());
}

#[test]
fn after_a_restart_an_unfinished_download_is_paused() {
    let shelf = Shelf::new();
    drop(slow(&shelf));
    shelf.server.set(Faults::default());
    let person = shelf.person();
    let [download] = &person.downloads.list()[..] else { panic!() };
    assert_eq!(download.state, DownloadState::Paused { reason: None });
    assert!(download.done_bytes > 200_000 && download.total_bytes == SIZE, "{download:?}");
    // Starting it again has the same effect as resuming it.
    person.start();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert!(shelf.server.sent() < SIZE * 105 / 100, "{}", shelf.server.sent());
    drop(person);
    assert_eq!(shelf.person().downloads.list()[0].state, DownloadState::Done);
}

#[test]
fn a_file_that_changed_meanwhile_is_downloaded_in_its_new_version() {
    let shelf = Shelf::new();
    drop(slow(&shelf));
    shelf.put(REPOSITORY, FILE, SIZE + 1000);
    shelf.server.set(Faults::default());
    let person = shelf.person();
    person.downloads.resume(ID).unwrap();
    person.until_done(ID);
    assert_eq!(person.downloads.list()[0].total_bytes, SIZE + 1000);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert!(shelf.partial().is_empty(), "the old partial file is removed");
}

#[test]
fn a_file_removed_meanwhile_is_reported() {
    let shelf = Shelf::new();
    shelf.put(REPOSITORY, "other.gguf", 10);
    drop(slow(&shelf));
    fs::remove_file(shelf.original(REPOSITORY, FILE)).unwrap();
    shelf.server.set(Faults::default());
    let person = shelf.person();
    person.downloads.resume(ID).unwrap();
    let reason = person.until_interrupted(ID);
    assert!(reason.contains("has no model file 'name-Q4_K_M.gguf'"), "{reason}");
}

#[test]
fn a_cancelled_download_leaves_nothing() {
    for paused in [false, true] {
        let shelf = Shelf::new();
        let person = slow(&shelf);
        if paused {
            person.downloads.pause(ID).unwrap();
        }
        person.downloads.cancel(ID).unwrap();
        assert!(person.downloads.list().is_empty());
        drop(person);
        let left = files_below(&shelf.cache().join("models--owner--name-GGUF"));
        assert!(left.is_empty(), "{left:?}");
        assert!(shelf.person().downloads.list().is_empty());
    }
}

#[test]
fn only_ended_downloads_can_be_dismissed() {
    let shelf = Shelf::new();
    let person = slow(&shelf);
    let error = person.downloads.dismiss(ID).unwrap_err().to_string();
    assert!(error.contains("Cancel the download instead"), "{error}");
    let unknown = person.downloads.pause("owner/other").unwrap_err().to_string();
    assert!(unknown.contains("no download 'owner/other'"), "{unknown}");
}
