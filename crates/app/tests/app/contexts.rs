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
fn the_context_of_the_last_reply_is_written_when_the_application_ends() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 8);
    fixture.send(None, &question());
    fixture.app.quit();
    assert_eq!(files(fixture.folder.path(), "t").len(), 1);
}

#[test]
fn a_context_length_is_chosen_for_a_target_without_loading_it_again() {
    let fixture = Fixture::new();
    let length = |change: &dyn Fn(&mut Settings)| {
        let status = fixture.set(|settings| {
            settings.max_tokens = 8;
            change(settings);
        });
        status.target.unwrap().context
    };
    let choose = |target: &'static str, tokens: u32| {
        move |settings: &mut Settings| {
            settings.context_lengths.insert(target.to_owned(), tokens);
        }
    };
    assert_eq!(length(&|_| ()), 1024);
    let window = fixture.status().target.unwrap().context_window.unwrap();
    assert!(window.trained == 1024 && window.token_bytes > 1000 && window.rope_scaling.is_none());
    let (first, _) = fixture.send(None, &question());
    assert_eq!(length(&choose("starter", 256)), 256);
    let (code, message) = fixture.refused(None, &question());
    assert!(code == ErrorCode::MessageTooLong && message.contains("256"), "{message}");
    // What the model has read stays in memory.
    assert_eq!(length(&|settings| settings.context_lengths.clear()), 1024);
    let going_on = fixture.send(Some(first.conversation.id), "And then?").0.reply;
    assert!(run(&going_on) < 64, "{} tokens were run", run(&going_on));
    assert_eq!(length(&choose("/another.gguf", 512)), 1024);
    assert_eq!(length(&choose("starter", 1_000_000)), 1024, "more than it was trained with");
    let mut settings = fixture.app.settings();
    choose("starter", 255)(&mut settings);
    let refused = fixture.app.save_settings(settings).unwrap_err();
    assert_eq!((refused.code, refused.message.contains("at least 256")), (ErrorCode::BadSetting, true));
    // The length applies after a restart, too.
    assert_eq!(length(&choose("starter", 512)), 512);
    assert_eq!(fixture.restart().status().target.unwrap().context, 512);
}

#[test]
fn keys_and_values_in_8_bits_are_chosen_for_a_target_and_checked_as_such() {
    let fixture = Fixture::new();
    let set = |int8: &[&str]| {
        fixture.set(|settings| {
            settings.max_tokens = 8;
            settings.int8_kv_caches = int8.iter().map(|&id| id.to_owned()).collect();
        })
    };
    let check = |reply: &Message| fixture.app.check_reply(reply.id, Box::new(|_| ()));
    let window = set(&["/another.gguf"]).target.unwrap().context_window.unwrap();
    let saved = window.int8_token_bytes.unwrap() as f64 / window.token_bytes as f64;
    assert!((0.5..0.6).contains(&saved), "{saved}");
    let (first, _) = fixture.send(None, &question());
    assert!(check(&first.reply).is_ok());

    set(&["starter"]);
    let refused = check(&first.reply).unwrap_err();
    assert!(refused.code == ErrorCode::BadModel && refused.message.contains("16-bit"), "{refused:?}");
    let going_on = fixture.send(Some(first.conversation.id), "And then?").0.reply;
    assert!(run(&going_on) > 64, "caches of another format are not read: {} tokens were run", run(&going_on));
    assert!(matches!(check(&going_on), Ok(ReplyCheck::Text { difference: None, .. })));

    set(&[]);
    let refused = check(&going_on).unwrap_err();
    assert!(refused.code == ErrorCode::BadModel && refused.message.contains("8-bit"), "{refused:?}");
    assert!(check(&first.reply).is_ok());
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

/// Starts again, opens the conversation and returns how many tokens are left to read, and its next
/// reply.
fn reopened(fixture: Fixture, conversation: i64) -> (u32, Message, Fixture) {
    let fixture = fixture.restart();
    fixture.app.open_setup(Some(conversation)).unwrap();
    fixture.wait_for_jobs();
    let left = fixture.status().read_context.unwrap().left;
    (left, fixture.send(Some(conversation), "And then?").0.reply, fixture)
}

#[test]
fn a_restore_that_waits_ends_when_another_or_a_new_conversation_is_opened() {
    let (fixture, conversation) = with_context();
    let other = fixture.send(None, "Hello").0.conversation.id;
    let fixture = fixture.restart();
    for (opened, restored) in
        [(Some(other), Some(other)), (None, Some(other)), (Some(conversation), Some(conversation))]
    {
        // An arena keeps the engine busy until it may go on.
        let (begin, begun) = mpsc::channel();
        let (go_on, may) = mpsc::channel::<()>();
        let app = Arc::clone(&fixture.app);
        let arena = std::thread::spawn(move || {
            let on_event = Box::new(move |_| {
                let _ = begin.send(());
                let _ = may.recv();
            });
            app.run_arena(ArenaRequest { pairs: 1, max_tokens: 16, ..bout("Hello") }, on_event)
        });
        begun.recv_timeout(TIMEOUT).unwrap();
        fixture.app.open_setup(Some(conversation)).unwrap();
        fixture.app.open_setup(opened).unwrap();
        drop(go_on);
        arena.join().unwrap().unwrap();
        fixture.wait_for_jobs();
        let read = fixture.status().read_context.map(|read| read.conversation);
        assert_eq!(read, restored, "{opened:?} was opened");
    }
}

/// A fixture with a conversation whose context is written.
fn with_context() -> (Fixture, i64) {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 8);
    let conversation = fixture.send(None, &question()).0.conversation.id;
    wait_for_texts(&fixture, true);
    (fixture, conversation)
}

#[test]
fn a_context_of_another_version_or_of_a_text_that_is_cut_is_computed_again() {
    let changes: [fn(&mut Vec<u8>); 3] =
        [|bytes| bytes[7] = b'2', |bytes| bytes.truncate(bytes.len() / 2), |bytes| bytes.clear()];
    for change in changes {
        for kind in ["t", "p"] {
            let (fixture, conversation) = with_context();
            for file in files(fixture.folder.path(), kind) {
                let mut bytes = std::fs::read(&file).unwrap();
                change(&mut bytes);
                std::fs::write(&file, bytes).unwrap();
            }
            let (left, reply, _) = reopened(fixture, conversation);
            assert!(left > 256 && run(&reply) > 256);
            assert_eq!((reply.finish, reply.summary.unwrap().restored_tokens), (Some(Finish::Length), 0));
        }
    }
}

#[test]
fn a_context_of_a_model_that_was_replaced_under_its_name_is_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut bytes = std::fs::read(starter_target().path()).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let fixture = Fixture::new();
    switch(&fixture, path.to_str().unwrap());
    fixture.set(|settings| settings.max_tokens = 8);
    let conversation = fixture.send(None, &question()).0.conversation.id;
    wait_for_texts(&fixture, true);
    let (left, reply, fixture) = reopened(fixture, conversation);
    assert!(left < 32 && reply.summary.unwrap().restored_tokens > 256, "{left}");

    // Other weights of the same length.
    let last = bytes.len() - 1000;
    bytes[last..].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let (left, reply, _) = reopened(fixture, conversation);
    assert!(left > 256 && reply.summary.unwrap().restored_tokens == 0, "{left}");
}

#[test]
fn a_conversation_that_is_deleted_while_its_context_is_written_leaves_nothing() {
    for delay in [0, 10] {
        let fixture = Fixture::new();
        fixture.set(|settings| settings.max_tokens = 8);
        let conversation = fixture.send(None, &question()).0.conversation.id;
        let contexts = fixture.folder.path().join("contexts");
        wait_until(|| contexts.exists(), "no context was written");
        std::thread::sleep(Duration::from_millis(delay));
        fixture.app.delete_conversation(conversation).unwrap();
        fixture.wait_for_jobs();
        let left = |kind| files(fixture.folder.path(), kind).len();
        wait_until(|| left("t") + left("p") == 0, "files of the deleted conversation are left");
    }
}

#[test]
fn a_folder_that_cannot_be_written_costs_only_the_contexts() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody can write below a file.
    std::fs::write(folder.path().join("contexts"), "").unwrap();
    let fixture = Fixture::at(folder);
    fixture.set(|settings| settings.max_tokens = 8);
    let conversation = fixture.send(None, &question()).0.conversation.id;
    // Before the next reply, the context of this one would be written.
    fixture.send(Some(conversation), "Why?");
    let (left, reply, fixture) = reopened(fixture, conversation);
    assert!(left > 256 && reply.finish == Some(Finish::Length));
    fixture.app.delete_conversation(conversation).unwrap();
    fixture.wait_for_jobs();
    assert!(fixture.folder.path().join("contexts").is_file());
}

#[cfg(unix)]
#[test]
fn two_programs_with_one_folder_of_contexts_disturb_neither_each_other_nor_their_conversations() {
    let ask = |animal: &str| format!("Tell me a story about {animal} who finds a lantern. ").repeat(24);
    let (fox, owl) = (Fixture::new(), Fixture::new());
    let shared = fox.folder.path().join("contexts");
    std::fs::create_dir(&shared).unwrap();
    std::os::unix::fs::symlink(&shared, owl.folder.path().join("contexts")).unwrap();
    let fixtures = [(fox, ask("a fox")), (owl, ask("an owl"))];
    let begun = fixtures.map(|(fixture, question)| {
        fixture.set(|settings| settings.max_tokens = 8);
        std::thread::spawn(move || {
            let conversation = fixture.send(None, &question).0.conversation.id;
            fixture.send(Some(conversation), "Why?");
            (fixture, question, conversation)
        })
    });
    let begun = begun.map(|thread| thread.join().unwrap());
    // Both have number 1, so one text replaces the other.
    assert_eq!(begun[0].2, begun[1].2);
    wait_until(|| files(&shared.join(".."), "t").len() == 1, "there is not one text");
    let mut restored = 0;
    for (fixture, question, conversation) in begun {
        let (_, reply, _) = reopened(fixture, conversation);
        restored += u32::from(reply.summary.as_ref().unwrap().restored_tokens > 256);
        let alone = Fixture::new();
        alone.set(|settings| {
            settings.max_tokens = 8;
            settings.context_disk_gb = 0;
        });
        let same = alone.send(None, &question).0.conversation.id;
        alone.send(Some(same), "Why?");
        assert_eq!(alone.send(Some(same), "And then?").0.reply.text, reply.text);
    }
    assert!(restored <= 1);
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
