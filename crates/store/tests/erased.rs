//! Purged text is in no file any more.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use foretoken_store::{Ending, Store};

/// Words of the deleted conversation whose letters stay contiguous in the full-text index.
const TRACES: [&str; 5] = ["titlequagga", "askedquagga", "hurriedquagga", "repliedquagga", "summedquagga"];

/// Opens the store; consecutive openings are eight hours apart, so three make a day.
fn open(path: &Path, opening: i64) -> Store {
    Store::open_with_clock(path, move || opening * 8 * 60 * 60 * 1000).unwrap()
}

/// Files of the folder that contain one of the texts, ignoring case.
fn files_with(folder: &Path, texts: &[&str]) -> Vec<PathBuf> {
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let contains = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap().to_ascii_lowercase();
        // The index may share the first letter with the previous word.
        texts.iter().any(|text| {
            let end = &text.as_bytes()[1..];
            bytes.windows(end.len()).any(|part| part == end)
        })
    };
    files.filter(contains).collect()
}

/// Writes a conversation that contains each of the words, with an unfinished reply.
fn write(store: &mut Store) -> i64 {
    let conversation = store.create_conversation("Titlequagga").unwrap().id;
    store.add_user_message(conversation, "Askedquagga, then more: ").unwrap();
    let long = "repliedquagga and much else. ".repeat(500);
    let reply = store.begin_reply(conversation, "target", None).unwrap().id;
    store.append_rounds(reply, "hurriedquagga", &[(0, r#"{"text":"hurriedquagga"}"#)]).unwrap();
    let summary = Some(r#"{"text":"summedquagga"}"#);
    store.finish_reply(reply, Ending { text: &long, summary, ..Ending::default() }).unwrap();
    let reply = store.begin_reply(conversation, "target", None).unwrap().id;
    store.append_rounds(reply, "hurriedquagga", &[(0, r#"{"text":"hurriedquagga"}"#)]).unwrap();
    conversation
}

#[test]
fn no_file_contains_a_word_of_a_purged_conversation_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foretoken.db");
    let mut store = open(&path, 1);
    let kept = store.create_conversation("kept").unwrap().id;
    for number in 0..200 {
        store.add_user_message(kept, &format!("word{number} of the one that stays")).unwrap();
    }
    let deleted = write(&mut store);
    store.add_user_message(kept, "the last of those that stay").unwrap();
    store.delete_conversation(deleted).unwrap();
    drop(store);
    for word in TRACES {
        assert!(!files_with(folder.path(), &[word]).is_empty(), "{word} was never there");
    }

    drop(open(&path, 2));
    drop(open(&path, 3));
    assert!(!files_with(folder.path(), &TRACES).is_empty(), "still restorable for a day");
    let store = open(&path, 4);
    for word in TRACES {
        assert_eq!(files_with(folder.path(), &[word]), Vec::<PathBuf>::new(), "{word}, while it is open");
    }
    assert_eq!(store.messages(kept).unwrap().len(), 201);
    assert_eq!(store.search("word199", 10).unwrap().len(), 1);
    drop(store);
    assert_eq!(files_with(folder.path(), &TRACES), Vec::<PathBuf>::new(), "when it is closed");
}
