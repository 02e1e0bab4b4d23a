//! Contexts of conversations on disk: restored after a restart, removed with the conversation.

use std::path::{Path, PathBuf};
use std::time::Instant;

use foretoken_app::ipc::Message;

use super::*;

/// Files of contexts below the data folder: pages (`p`) or texts (`t`).
fn files(data: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let entries = folder.read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let models = entries(&data.join("contexts"));
    let files = models.iter().flat_map(|model| entries(&model.join(kind)));
    files.filter(|file| file.extension().is_none_or(|extension| extension != "part")).collect()
}

fn wait_until(holds: impl Fn() -> bool, otherwise: &str) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "{otherwise}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until there are texts, or none.
fn wait_for_texts(fixture: &Fixture, wanted: bool) {
    let is_as_wanted = || files(fixture.folder.path(), "t").is_empty() != wanted;
    wait_until(is_as_wanted, if wanted { "no text was written" } else { "texts are left" });
}

/// Tokens of a reply's prompt that were run.
fn run(reply: &Message) -> u32 {
    let summary = reply.summary.as_ref().unwrap();
    summary.prompt_tokens - summary.reused_tokens
}

/// A question of more than a page of the cache.
fn question() -> String {
    "Tell me a story about a fox who finds a lantern. ".repeat(24)
}

#[test]
fn a_conversation_goes_on_after_a_restart_with_what_was_read_of_it() {
    let go_on = |fixture: &Fixture, conversation| fixture.send(Some(conversation), "And then?").0.reply;
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 8);
    let (first, _) = fixture.send(None, &question());
    let conversation = first.conversation.id;
    assert!(run(&first.reply) > 256);
    wait_for_texts(&fixture, true);
    assert!(!files(fixture.folder.path(), "p").is_empty());
    let fixture = fixture.restart();
    fixture.app.open_setup(Some(conversation)).unwrap();
    fixture.wait_for_jobs();
    let read = fixture.status().read_context.unwrap();
    assert_eq!(read.conversation, conversation);
    assert!(read.left < 32, "{} tokens are left to read", read.left);
    let found = go_on(&fixture, conversation);
    assert!(run(&found) < 64, "{} tokens were run", run(&found));
    let summary = found.summary.as_ref().unwrap();
    assert_eq!(summary.restored_tokens, summary.reused_tokens);

    // Without a restart the reply is the same.
    let other = Fixture::new();
    other.set(|settings| {
        settings.max_tokens = 8;
        settings.context_disk_gb = 0;
    });
    let (same, _) = other.send(None, &question());
    let same = go_on(&other, same.conversation.id);
    assert_eq!((same.text, same.summary.unwrap().restored_tokens), (found.text.clone(), 0));
    // The check computes everything again, and says so beside its result.
    let check = fixture.app.check_reply(found.id, Box::new(|_| ())).unwrap();
    assert!(matches!(check, ReplyCheck::Text { difference: None, .. }), "{check:?}");
    assert!(files(other.folder.path(), "t").is_empty());
}

#[test]
fn a_damaged_context_is_computed_again() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 8);
    let (first, _) = fixture.send(None, &question());
    wait_for_texts(&fixture, true);
    let pages = files(fixture.folder.path(), "p");
    let page = pages.into_iter().max_by_key(|page| page.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&page).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&page, bytes).unwrap();
    let fixture = fixture.restart();
    fixture.app.open_setup(Some(first.conversation.id)).unwrap();
    fixture.wait_for_jobs();
    assert!(fixture.status().read_context.unwrap().left > 256);
    assert!(run(&fixture.send(Some(first.conversation.id), "And then?").0.reply) > 256);
    // The damaged page is written again.
    wait_until(|| page.exists(), "the page was not written again");
    let fixture = fixture.restart();
    fixture.app.open_setup(Some(first.conversation.id)).unwrap();
    fixture.wait_for_jobs();
    assert!(fixture.status().read_context.unwrap().left < 32);
}

#[test]
fn contexts_are_removed_with_their_conversation_and_where_none_are_wanted() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 8);
    let (first, _) = fixture.send(None, &question());
    wait_for_texts(&fixture, true);
    fixture.app.delete_conversation(first.conversation.id).unwrap();
    wait_for_texts(&fixture, false);
    fixture.send(None, &question());
    wait_for_texts(&fixture, true);
    fixture.set(|settings| settings.context_disk_gb = 0);
    wait_for_texts(&fixture, false);
    // Pages go after the texts that name them.
    wait_until(|| files(fixture.folder.path(), "p").is_empty(), "pages are left");
}
