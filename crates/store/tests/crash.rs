//! A killed process loses only rounds it had not yet appended, and readers do not wait for writers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use foretoken_store::{Ending, Error, Store};

/// Environment variable that names the database to write to, in the process that will be killed.
const VICTIM: &str = "FORETOKEN_TEST_VICTIM";

/// Appends rounds forever and prints each index once it is stored.
fn write_until_killed(path: &Path) -> ! {
    let mut store = Store::open(path).unwrap();
    let conversation = store.create_conversation("c").unwrap().id;
    store.add_user_message(conversation, "Tell me about foxes").unwrap();
    let reply = store.begin_reply(conversation, "Starter", None).unwrap().id;
    let mut text = String::new();
    for index in 0.. {
        text.push_str(&word(index));
        store.append_rounds(reply, &text, &[(index, format!("[{index}]"))]).unwrap();
        println!("stored {index}");
    }
    unreachable!()
}

fn word(index: u32) -> String {
    format!("fox{index} ")
}

#[test]
fn a_killed_process_loses_at_most_the_round_under_way() {
    if let Some(path) = std::env::var_os(VICTIM) {
        write_until_killed(Path::new(&path));
    }
    // Different numbers of rounds kill the process at different moments of a write.
    for rounds in [1, 7, 40, 150] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foretoken.db");
        let stored = run_and_kill_after(rounds, &path, "a_killed_process_loses_at_most_the_round_under_way");

        let mut store = Store::open(&path).unwrap();
        let conversation = store.conversations().unwrap().remove(0).id;
        let messages = store.messages(conversation).unwrap();
        assert_eq!(messages[0].text, "Tell me about foxes");
        let found = store.rounds(messages[1].id).unwrap();
        let kept = found.len() as u32;
        assert!((stored..=stored + 1).contains(&kept), "{stored} rounds were stored, {kept} are left");
        assert_eq!(found, (0..kept).map(|index| format!("[{index}]")).collect::<Vec<_>>());
        assert_eq!(messages[1].text, (0..kept).map(word).collect::<String>());
        assert_eq!(messages[1].finish, None);
        assert_eq!(store.search(&format!("fox{}", kept - 1), 10).unwrap()[0].message, messages[1].id);
        store.append_rounds(messages[1].id, "writing goes on", &[(kept, "{}")]).unwrap();
    }
}

/// Regenerates a reply forever and prints the number of each complete one.
fn regenerate_until_killed(path: &Path) -> ! {
    let mut store = Store::open(path).unwrap();
    let (_, begun) = store.ask(None, "Tell me about foxes", "Starter", None).unwrap();
    let mut reply = begun.id;
    write_reply(&mut store, reply, 0);
    for number in 1.. {
        reply = store.begin_again(reply, "Starter", None).unwrap().id;
        write_reply(&mut store, reply, number);
        println!("stored {number}");
    }
    unreachable!()
}

/// Complete text of the reply with this number.
fn whole_text(number: u32) -> String {
    format!("{}end", word(number).repeat(5))
}

fn write_reply(store: &mut Store, reply: i64, number: u32) {
    for index in 0..5 {
        let text = word(number).repeat(index as usize + 1);
        store.append_rounds(reply, &text, &[(index, format!("[{number}]"))]).unwrap();
    }
    let ending = Ending { text: &whole_text(number), finish: Some("stop"), ..Ending::default() };
    store.finish_reply(reply, ending).unwrap();
}

#[test]
fn a_process_killed_while_it_regenerates_keeps_all_complete_replies() {
    const NAME: &str = "a_process_killed_while_it_regenerates_keeps_all_complete_replies";
    if let Some(path) = std::env::var_os(VICTIM) {
        regenerate_until_killed(Path::new(&path));
    }
    for replies in [1, 2, 5, 11, 23] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foretoken.db");
        let stored = run_and_kill_after(replies, &path, NAME);

        let store = Store::open(&path).unwrap();
        let conversation = store.conversations().unwrap().remove(0).id;
        let messages = store.messages(conversation).unwrap();
        assert_eq!(messages.len(), 2, "the question and one reply");
        let replies = messages[1].siblings.iter().map(|&reply| store.message(reply).unwrap());
        let found: Vec<i64> = store.search("fox", 99).unwrap().iter().map(|hit| hit.message).collect();
        let mut whole = 0;
        for (number, reply) in (0..).zip(replies) {
            assert!(found.contains(&reply.id));
            if reply.finish.is_some() {
                assert_eq!((reply.text, reply.finish.as_deref()), (whole_text(number), Some("stop")));
                assert_eq!(store.rounds(reply.id).unwrap(), vec![format!("[{number}]"); 5]);
                whole += 1;
            } else {
                assert_eq!(reply.id, messages[1].id, "all but the last are complete");
                assert!(whole_text(number).starts_with(&reply.text) && !reply.text.is_empty());
            }
        }
        assert!((stored + 1..=stored + 2).contains(&whole), "at least {stored} were complete, {whole} are");
    }
}

/// Runs the test `writer`, kills it after `rounds` "stored" lines, and returns the number of such
/// lines in all.
fn run_and_kill_after(rounds: u32, path: &Path, writer: &str) -> u32 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", writer, "--nocapture"])
        .env(VICTIM, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // The test harness may print text of its own before the first line.
        if line.unwrap().contains("stored ") {
            printed += 1;
        }
        if printed == rounds {
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(!status.success() && printed >= rounds, "the writer ended by itself: {status}");
    printed
}

#[test]
fn another_connection_reads_a_consistent_state_while_one_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foretoken.db");
    let mut writer = Store::open(&path).unwrap();
    let conversation = writer.create_conversation("c").unwrap().id;
    let reply = writer.begin_reply(conversation, "Starter", None).unwrap().id;
    let reader = Store::open(&path).unwrap();

    let last = 300;
    let mut before = 0;
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            let mut text = String::new();
            for index in 0..last {
                text.push_str(&word(index));
                writer.append_rounds(reply, &text, &[(index, "{}")]).unwrap();
            }
        });
        while !writing.is_finished() {
            let text = reader.message(reply).unwrap().text;
            let seen = text.split_whitespace().count();
            assert!(seen >= before, "text read earlier is gone");
            assert!(reader.rounds(reply).unwrap().len() >= seen, "a text without its rounds");
            before = seen;
        }
    });
    assert_eq!(reader.rounds(reply).unwrap().len(), last as usize);
    assert!(matches!(reader.message(reply + 1), Err(Error::NotFound { .. })));
}
