//! What conversations are written with: the settings, a preset or values of their own.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use foretoken_app::cancel::Cancel;
use foretoken_app::error::Result;
use foretoken_app::ipc::{ConversationSetup, ErrorCode, Preset, PresetValues, PromptSize, Settings};
use foretoken_app::replier::{Ending, Event, Replier};
use foretoken_engine::model::ChatMessage;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::trace::Finish;
use foretoken_library::Folders;
use foretoken_store::Store;
use tempfile::TempDir;

use super::{Fixture, PATIENCE};

/// Replies with the system prompt that it was given; to "Wait." it says that it waits, and replies once it may.
struct Teller {
    waits: Sender<()>,
    may: Receiver<()>,
}

impl Replier for Teller {
    fn reply(
        &mut self,
        conversation: &[ChatMessage],
        settings: &Settings,
        _: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        if conversation.last().unwrap().content == "Wait." {
            self.waits.send(()).unwrap();
            self.may.recv_timeout(PATIENCE).unwrap();
        }
        on(Event::Started { target: "Teller", draft: None });
        on(Event::Text { delta: &settings.system_prompt });
        Ok(Ending { finish: Finish::Stop, summary: None })
    }

    fn measure(&mut self, _: &[ChatMessage], _: &Settings) -> Result<PromptSize> {
        Ok(PromptSize { tokens: 1, context: 100 })
    }
}

fn telling(folder: TempDir) -> Fixture {
    waiting(folder).0
}

/// The same, where it is heard that it waits and said that it may reply.
fn waiting(folder: TempDir) -> (Fixture, Receiver<()>, Sender<()>) {
    let ((waits, waiting), (go, may)) = (mpsc::channel(), mpsc::channel());
    let store = Store::open(&Folders::at(folder.path()).database()).unwrap();
    if store.settings().unwrap().is_none() {
        store.save_settings(r#"{"target": "starter", "system_prompt": "general"}"#).unwrap();
    }
    drop(store);
    (Fixture::with(folder, Teller { waits, may }), waiting, go)
}

fn saying(prompt: &str) -> PresetValues {
    PresetValues { system_prompt: prompt.to_owned(), ..PresetValues::default() }
}

fn mine() -> Preset {
    Preset { id: "mine".to_owned(), name: "Mine".to_owned(), values: saying("of the preset") }
}

impl Fixture {
    /// What the reply to a new message is written with; its conversation.
    fn told(&self, conversation: Option<i64>) -> (String, i64) {
        let reply = self.send(conversation, "Say it.").0;
        (reply.reply.text, reply.conversation.id)
    }
}

#[test]
fn what_is_chosen_for_a_conversation_is_its_own_and_is_kept() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (general, other) = fixture.told(None);
    assert_eq!(general, "general");
    let (_, mine) = fixture.told(None);
    let saved = fixture.app.save_setup(Some(mine), Some("mine".to_owned()), Some(saying("own"))).unwrap();
    assert_eq!((saved.own, saved.preset.as_deref()), (true, Some("mine")));
    assert_eq!((saved.target.as_deref(), saved.draft.is_some()), (Some("starter"), true));
    assert_eq!(fixture.told(Some(mine)).0, "own");
    assert_eq!(fixture.told(Some(other)).0, "general");
    assert_eq!(fixture.told(None).0, "general");

    let Fixture { app, folder, .. } = fixture;
    drop(app);
    let fixture = telling(folder);
    assert_eq!(fixture.app.open_setup(Some(mine)).unwrap(), saved);
    assert_eq!(fixture.told(Some(mine)).0, "own");
    let reply = fixture.app.messages(mine).unwrap().pop().unwrap();
    fixture.app.open_setup(None).unwrap();
    assert_eq!(fixture.app.regenerate(reply.id, super::listen().0).unwrap().reply.text, "own");
}

#[test]
fn where_nothing_is_chosen_the_settings_are_followed_and_can_be_again() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, conversation) = fixture.told(None);
    let changed = Settings { system_prompt: "changed".to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(changed).unwrap();
    assert_eq!(fixture.told(Some(conversation)).0, "changed");
    fixture.app.save_setup(Some(conversation), None, Some(saying("own"))).unwrap();
    let again = Settings { system_prompt: "changed again".to_owned(), ..fixture.app.settings() };
    fixture.app.save_settings(again).unwrap();
    assert_eq!(fixture.told(Some(conversation)).0, "own");
    let saved = fixture.app.save_setup(Some(conversation), Some("mine".to_owned()), None).unwrap();
    assert_eq!((saved.own, saved.preset), (false, None));
    assert_eq!(fixture.told(Some(conversation)).0, "changed again");
}

#[test]
fn a_preset_that_is_chosen_before_the_first_message_is_of_that_conversation_alone() {
    let fixture = telling(tempfile::tempdir().unwrap());
    fixture.app.open_setup(None).unwrap();
    fixture.app.save_setup(None, Some("mine".to_owned()), Some(saying("own"))).unwrap();
    let (told, conversation) = fixture.told(None);
    assert_eq!(told, "own");
    assert_eq!(fixture.app.open_setup(Some(conversation)).unwrap().preset.as_deref(), Some("mine"));
    assert!(!fixture.app.open_setup(None).unwrap().own);
    assert_eq!(fixture.told(None).0, "general");
}

#[test]
fn new_conversations_begin_with_the_preset_of_their_target_and_keep_it() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, before) = fixture.told(None);
    let model_presets = [("starter".to_owned(), "mine".to_owned())].into();
    let settings = Settings { presets: vec![mine()], model_presets, ..fixture.app.settings() };
    fixture.app.save_settings(settings.clone()).unwrap();
    let (told, conversation) = fixture.told(None);
    assert_eq!(told, "of the preset");
    assert_eq!(fixture.told(Some(before)).0, "general", "it began without");
    let deleted = Settings { presets: Vec::new(), ..settings };
    fixture.app.save_settings(deleted).unwrap();
    assert_eq!(fixture.told(Some(conversation)).0, "of the preset");
    assert_eq!(fixture.told(None).0, "general");
}

#[test]
fn what_is_stored_and_cannot_be_read_is_as_if_it_was_not() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, conversation) = fixture.told(None);
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
        assert_eq!(fixture.told(Some(conversation)).0, "general", "{damaged}");
    }
    let refused = fixture.app.save_setup(Some(conversation), None, Some(out_of_range.values)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadSetting);
    assert_eq!(fixture.app.open_setup(Some(99)).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn opening_a_conversation_of_another_target_loads_nothing_and_tells_which_it_was() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, conversation) = fixture.told(None);
    let store = Store::open(&Folders::at(fixture.folder.path()).database()).unwrap();
    store.save_setup(conversation, Some(r#"{"target": "/elsewhere/large.gguf", "draft": "ngram"}"#)).unwrap();
    drop(store);
    fixture.app.open_setup(None).unwrap();
    let setup = fixture.app.open_setup(Some(conversation)).unwrap();
    assert_eq!(setup.target.as_deref(), Some("/elsewhere/large.gguf"));
    assert_eq!(fixture.told(Some(conversation)).0, "general", "the loaded one replies");
    assert_eq!(fixture.app.settings().target, "starter");
    fixture.app.open_setup(None).unwrap();
    let now = fixture.app.open_setup(Some(conversation)).unwrap();
    assert_eq!(now.target.as_deref(), Some("starter"));
}

#[test]
fn a_title_is_written_with_what_its_own_conversation_is_written_with() {
    let fixture = telling(tempfile::tempdir().unwrap());
    let (_, conversation) = fixture.told(None);
    fixture.app.save_setup(Some(conversation), None, Some(saying("Foxes at night"))).unwrap();
    fixture.app.open_setup(None).unwrap();
    let named = fixture.app.write_title(conversation).unwrap().unwrap();
    assert_eq!(named.title, "Foxes at night");
}

#[test]
fn what_is_chosen_while_a_reply_waits_for_its_model_holds_from_the_next_one_on() {
    for began in [false, true] {
        let (fixture, waits, go) = waiting(tempfile::tempdir().unwrap());
        let conversation = began.then(|| fixture.told(None).1);
        let app = Arc::clone(&fixture.app);
        let sent = std::thread::spawn(move || app.send(conversation, "Wait.", super::listen().0).unwrap());
        waits.recv_timeout(PATIENCE).unwrap();
        fixture.app.save_setup(conversation, Some("mine".to_owned()), Some(saying("next"))).unwrap();
        go.send(()).unwrap();
        assert_eq!(sent.join().unwrap().reply.text, "general");
        let next = fixture.app.open_setup(conversation).unwrap();
        assert_eq!((next.preset.as_deref(), next.values.system_prompt.as_str()), (Some("mine"), "next"));
        assert_eq!(fixture.told(conversation).0, "next");
    }
}
