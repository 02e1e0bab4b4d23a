//! Settings of conversations: the application's, a preset or values of their own.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use foretoken_app::cancel::Cancel;
use foretoken_app::engine::replier::{Chat, Ending, Event, Replier};
use foretoken_app::error::Result;
use foretoken_app::ipc::{ConversationSetup, ErrorCode, Preset, PresetValues, PromptSize, Settings};
use foretoken_engine::trace::Finish;
use foretoken_library::Folders;
use foretoken_model::sampling::Sampling;
use foretoken_store::Store;
use tempfile::TempDir;

use super::{Fixture, TIMEOUT};

/// Replies with its system prompt; to "Wait." it signals that it waits, and replies once it may.
struct PromptEcho {
    waits: Sender<()>,
    may: Receiver<()>,
}

impl Replier for PromptEcho {
    fn reply(
        &mut self,
        chat: &Chat,
        settings: &Settings,
        _: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        let conversation = &chat.messages;
        if conversation.last().unwrap().content == "Wait." {
            self.waits.send(()).unwrap();
            self.may.recv_timeout(TIMEOUT).unwrap();
        }
        on(Event::Started { target: "PromptEcho", draft: None });
        on(Event::Text { delta: &settings.system_prompt });
        Ok(Ending { finish: Finish::Stop, summary: None })
    }

    fn measure(&mut self, _: &Chat, _: &Settings) -> Result<PromptSize> {
        Ok(PromptSize { tokens: 1, context: 100 })
    }
}

fn telling(folder: TempDir) -> Fixture {
    waiting(folder).0
}

/// Starts an application whose writer signals that it waits, and waits for the permission to reply.
fn waiting(folder: TempDir) -> (Fixture, Receiver<()>, Sender<()>) {
    let ((waits, waiting), (go, may)) = (mpsc::channel(), mpsc::channel());
    let store = Store::open(&Folders::at(folder.path()).database()).unwrap();
    if store.settings().unwrap().is_none() {
        store.save_settings(r#"{"target": "starter", "system_prompt": "general"}"#).unwrap();
    }
    drop(store);
    (Fixture::with(folder, PromptEcho { waits, may }), waiting, go)
}

fn saying(prompt: &str) -> PresetValues {
    PresetValues { system_prompt: prompt.to_owned(), ..PresetValues::default() }
}

fn mine() -> Preset {
    Preset { id: "mine".to_owned(), name: "Mine".to_owned(), values: saying("of the preset") }
}

impl Fixture {
    /// Sends a message; returns the system prompt of the reply and its conversation.
    fn prompt_of_reply(&self, conversation: Option<i64>) -> (String, i64) {
        let reply = self.send(conversation, "Say it.").0;
        (reply.reply.text, reply.conversation.id)
    }
}

#[test]
fn a_conversations_own_settings_apply_to_it_alone_and_are_stored() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (general, other) = fixture.prompt_of_reply(None);
    assert_eq!(general, "general");
    let (_, mine) = fixture.prompt_of_reply(None);
    let saved = fixture.app.save_setup(Some(mine), Some("mine".to_owned()), Some(saying("own"))).unwrap();
    assert_eq!((saved.own, saved.preset.as_deref()), (true, Some("mine")));
    assert_eq!((saved.target.as_deref(), saved.draft.is_some()), (Some("starter"), true));
    assert_eq!(fixture.prompt_of_reply(Some(mine)).0, "own");
    assert_eq!(fixture.prompt_of_reply(Some(other)).0, "general");
    assert_eq!(fixture.prompt_of_reply(None).0, "general");

    let Fixture { app, folder, .. } = fixture;
    drop(app);
    let fixture = telling(folder);
    assert_eq!(fixture.app.open_setup(Some(mine)).unwrap(), saved);
    assert_eq!(fixture.prompt_of_reply(Some(mine)).0, "own");
    let reply = fixture.app.messages(mine).unwrap().pop().unwrap();
    fixture.app.open_setup(None).unwrap();
    assert_eq!(fixture.app.regenerate(reply.id, super::listen().0).unwrap().reply.text, "own");
}

#[test]
fn a_new_conversation_keeps_its_preset_while_others_are_active() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, other) = fixture.prompt_of_reply(None);
    fixture.app.open_setup(None).unwrap();
    fixture.app.save_setup(None, Some("mine".to_owned()), Some(saying("chosen"))).unwrap();
    assert_eq!(fixture.prompt_of_reply(Some(other)).0, "general");
    assert_eq!(fixture.app.setup_of(None).unwrap().preset.as_deref(), Some("mine"));
    // It is changed while the other one is active, which stays so.
    fixture.app.save_setup(None, None, Some(saying("changed"))).unwrap();
    assert_eq!(fixture.prompt_of_reply(Some(other)).0, "general");
    let (prompt, begun) = fixture.prompt_of_reply(None);
    assert_eq!(prompt, "changed");
    assert_eq!(fixture.prompt_of_reply(None).0, "general", "the next one follows the settings");
    assert_eq!(fixture.app.setup_of(Some(begun)).unwrap().values.system_prompt, "changed");
}

#[test]
fn a_preset_stays_with_the_conversation_whose_first_reply_begins_while_another_is_active() {
    let (fixture, waiting, go) = waiting(tempfile::tempdir().unwrap());
    let (_, other) = fixture.prompt_of_reply(None);
    fixture.app.save_setup(None, Some("mine".to_owned()), Some(saying("chosen"))).unwrap();
    let app = Arc::clone(&fixture.app);
    let reply = std::thread::spawn(move || app.send(None, "Wait.", super::listen().0).unwrap());
    waiting.recv_timeout(TIMEOUT).unwrap();
    fixture.app.open_setup(Some(other)).unwrap();
    go.send(()).unwrap();
    let begun = reply.join().unwrap();
    assert_eq!(begun.reply.text, "chosen");
    assert_eq!(fixture.app.setup_of(Some(begun.conversation.id)).unwrap().preset.as_deref(), Some("mine"));
    assert!(!fixture.app.setup_of(None).unwrap().own, "the next new conversation has none");
}

#[test]
fn a_conversation_without_own_settings_follows_the_application() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, conversation) = fixture.prompt_of_reply(None);
    let changed = Settings { system_prompt: "changed".to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(changed).unwrap();
    assert_eq!(fixture.prompt_of_reply(Some(conversation)).0, "changed");
    fixture.app.save_setup(Some(conversation), None, Some(saying("own"))).unwrap();
    let again = Settings { system_prompt: "changed again".to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(again).unwrap();
    assert_eq!(fixture.prompt_of_reply(Some(conversation)).0, "own");
    let saved = fixture.app.save_setup(Some(conversation), Some("mine".to_owned()), None).unwrap();
    assert_eq!((saved.own, saved.preset), (false, None));
    assert_eq!(fixture.prompt_of_reply(Some(conversation)).0, "changed again");
}

#[test]
fn a_preset_chosen_before_the_first_message_applies_to_that_conversation_alone() {
    let fixture = telling(tempfile::tempdir().unwrap());
    fixture.app.open_setup(None).unwrap();
    fixture.app.save_setup(None, Some("mine".to_owned()), Some(saying("own"))).unwrap();
    let (prompt, conversation) = fixture.prompt_of_reply(None);
    assert_eq!(prompt, "own");
    assert_eq!(fixture.app.open_setup(Some(conversation)).unwrap().preset.as_deref(), Some("mine"));
    assert!(!fixture.app.open_setup(None).unwrap().own);
    assert_eq!(fixture.prompt_of_reply(None).0, "general");
}

#[test]
fn new_conversations_start_with_the_preset_of_their_target_and_keep_it() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, before) = fixture.prompt_of_reply(None);
    let model_presets = [("starter".to_owned(), "mine".to_owned())].into();
    let settings = Settings { presets: vec![mine()], model_presets, ..fixture.app.settings() };
    fixture.app.save_settings(settings.clone()).unwrap();
    let (prompt, conversation) = fixture.prompt_of_reply(None);
    assert_eq!(prompt, "of the preset");
    assert_eq!(fixture.prompt_of_reply(Some(before)).0, "general", "it began without");
    let deleted = Settings { presets: Vec::new(), ..settings };
    fixture.app.save_settings(deleted).unwrap();
    assert_eq!(fixture.prompt_of_reply(Some(conversation)).0, "of the preset");
    assert_eq!(fixture.prompt_of_reply(None).0, "general");
}

#[test]
fn unreadable_settings_of_a_conversation_are_ignored() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, conversation) = fixture.prompt_of_reply(None);
    let hot = Sampling { temperature: 99.0, ..Sampling::default() };
    let out_of_range = ConversationSetup {
        own: true,
        values: PresetValues { sampling: hot, ..saying("own") },
        ..ConversationSetup::default()
    };
    for damaged in ["[]", r#"{"own": 7}"#, &serde_json::to_string(&out_of_range).unwrap()] {
        let store = Store::open(&Folders::at(fixture.folder.path()).database()).unwrap();
        store.save_setup(conversation, Some(damaged)).unwrap();
        drop(store);
        fixture.app.open_setup(None).unwrap();
        assert!(!fixture.app.open_setup(Some(conversation)).unwrap().own, "{damaged}");
        assert_eq!(fixture.prompt_of_reply(Some(conversation)).0, "general", "{damaged}");
    }
    let refused = fixture.app.save_setup(Some(conversation), None, Some(out_of_range.values)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadSetting);
    assert_eq!(fixture.app.open_setup(Some(99)).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn opening_a_conversation_of_another_target_loads_nothing_and_names_that_target() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, conversation) = fixture.prompt_of_reply(None);
    let store = Store::open(&Folders::at(fixture.folder.path()).database()).unwrap();
    store.save_setup(conversation, Some(r#"{"target": "/elsewhere/large.gguf", "draft": "ngram"}"#)).unwrap();
    drop(store);
    fixture.app.open_setup(None).unwrap();
    let setup = fixture.app.open_setup(Some(conversation)).unwrap();
    assert_eq!(setup.target.as_deref(), Some("/elsewhere/large.gguf"));
    assert_eq!(fixture.prompt_of_reply(Some(conversation)).0, "general", "the loaded one replies");
    assert_eq!(fixture.app.settings().target, "starter");
    fixture.app.open_setup(None).unwrap();
    let now = fixture.app.open_setup(Some(conversation)).unwrap();
    assert_eq!(now.target.as_deref(), Some("starter"));
}

#[test]
fn a_title_is_written_with_its_own_conversations_settings() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, conversation) = fixture.prompt_of_reply(None);
    fixture.app.save_setup(Some(conversation), None, Some(saying("Foxes at night"))).unwrap();
    fixture.app.open_setup(None).unwrap();
    let named = fixture.app.write_title(conversation).unwrap().unwrap();
    assert_eq!(named.title, "Foxes at night");
}

#[test]
fn settings_chosen_while_a_reply_is_queued_apply_from_the_next_one() {
    for began in [false, true] {
        let (fixture, waits, go) = waiting(tempfile::tempdir().unwrap());
        let conversation = began.then(|| fixture.prompt_of_reply(None).1);
        let app = Arc::clone(&fixture.app);
        let sent = std::thread::spawn(move || app.send(conversation, "Wait.", super::listen().0).unwrap());
        waits.recv_timeout(TIMEOUT).unwrap();
        fixture.app.save_setup(conversation, Some("mine".to_owned()), Some(saying("next"))).unwrap();
        go.send(()).unwrap();
        assert_eq!(sent.join().unwrap().reply.text, "general");
        let next = fixture.app.open_setup(conversation).unwrap();
        assert_eq!((next.preset.as_deref(), next.values.system_prompt.as_str()), (Some("mine"), "next"));
        assert_eq!(fixture.prompt_of_reply(conversation).0, "next");
    }
}
