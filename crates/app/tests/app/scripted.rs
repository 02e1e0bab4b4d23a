//! Replies by who has text alone and no rounds, as a service on another computer would: they are stored, streamed,
//! cancelled, and fail, like any other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use foretoken_app::App;
use foretoken_app::cancel::Cancel;
use foretoken_app::error::Result;
use foretoken_app::ipc::{CommandError, EnginePhase, ErrorCode, ReplyEvent, Settings};
use foretoken_app::replier::{Ending, Event, Replier};
use foretoken_app::reply::Events;
use foretoken_engine::model::Renderer;
use foretoken_engine::model::{ChatMessage, Role};
use foretoken_engine::session::ThisComputer;
use foretoken_engine::trace::Finish;
use foretoken_library::Folders;
use foretoken_store::Store;

use super::{Fixture, listen};

/// Says what the question asks for: "echo ..." the words in it, one by one, "fail ..." as well and then fails, "wait"
/// one word until it is cancelled, "forget ..." the words after it has deleted every conversation, and nothing else.
struct Scripted {
    database: PathBuf,
}

impl Replier for Scripted {
    fn reply(
        &mut self,
        conversation: &[ChatMessage],
        _settings: &Settings,
        cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        let asked = conversation.last().filter(|message| message.role == Role::User).unwrap();
        let (order, words) = asked.content.split_once(' ').unwrap_or((&asked.content, "word"));
        if !["echo", "fail", "wait", "forget"].contains(&order) {
            return Err(CommandError::new(ErrorCode::NoTarget, "Nobody understands this."));
        }
        if order == "forget" {
            let store = Store::open(&self.database).unwrap();
            for conversation in store.conversations().unwrap() {
                store.delete_conversation(conversation.id).unwrap();
            }
        }
        on(Event::Started { target: "Scripted", draft: None });
        on(Event::Prompt { done: 1, total: 1 });
        for word in words.split_inclusive(' ') {
            on(Event::Text { delta: word });
        }
        match order {
            "fail" => return Err(CommandError::new(ErrorCode::Internal, "The line is dead.")),
            "wait" => {
                while !cancel.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            _ => {}
        }
        let finish = if cancel.is_cancelled() { Finish::Cancelled } else { Finish::Stop };
        Ok(Ending { finish, summary: None })
    }
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let folders = Folders::at(folder.path());
    let replier: Option<Box<dyn Replier>> = Some(Box::new(Scripted { database: folders.database() }));
    let renderer = Renderer::in_this_process();
    Fixture::ready(folder, App::start_on(folders, None, Arc::new(ThisComputer), renderer, replier).unwrap())
}

fn texts(events: &[ReplyEvent]) -> Vec<&str> {
    let mut texts = Vec::new();
    for event in events {
        if let ReplyEvent::Text { delta } = event {
            texts.push(delta.as_str());
        }
    }
    texts
}

#[test]
fn a_reply_without_rounds_is_streamed_and_stored_as_it_was_streamed() {
    let fixture = fixture();
    let (reply, events) = fixture.send(None, "echo the quick fox");
    assert!(matches!(&events[0], ReplyEvent::Started { user: Some(_), .. }), "{:?}", events[0]);
    assert_eq!(events[1], ReplyEvent::Prompt { done: 1, total: 1 });
    assert_eq!(texts(&events), ["the ", "quick ", "fox"]);
    let stored = fixture.app.messages(reply.conversation.id).unwrap();
    assert_eq!(stored[1], reply.reply);
    assert_eq!((reply.reply.text.as_str(), reply.reply.finish), ("the quick fox", Some(Finish::Stop)));
    assert_eq!((reply.reply.target.as_deref(), reply.reply.draft), (Some("Scripted"), None));
    assert!(reply.reply.summary.is_none() && fixture.app.trace(reply.reply.id).unwrap().is_empty());
    let again = fixture.app.regenerate(reply.reply.id, listen().0).unwrap();
    assert_eq!(again.reply.text, "the quick fox");
}

#[test]
fn a_reply_without_rounds_keeps_its_text_when_it_fails() {
    let fixture = fixture();
    let (reply, _) = fixture.send(None, "fail in the middle");
    assert_eq!((reply.reply.text.as_str(), reply.reply.finish), ("in the middle", None));
    assert_eq!(reply.reply.problem.as_deref(), Some("The line is dead."));
    assert_eq!(fixture.refused(Some(reply.conversation.id), "say something").1, "Nobody understands this.");
    assert_eq!(
        fixture.app.messages(reply.conversation.id).unwrap().len(),
        2,
        "what is refused is not stored"
    );
}

#[test]
fn a_reply_without_rounds_is_cancelled_and_keeps_its_text() {
    let fixture = fixture();
    let app = Arc::clone(&fixture.app);
    let stopper: Events = Arc::new(move |event| {
        if matches!(event, ReplyEvent::Text { .. }) {
            app.stop();
        }
    });
    let reply = fixture.app.send(None, "wait patiently", stopper).unwrap().reply;
    assert_eq!((reply.text.as_str(), reply.finish), ("patiently", Some(Finish::Cancelled)));
}

#[test]
fn who_has_text_alone_is_shown_to_reply_as_well() {
    let fixture = fixture();
    fixture.send(None, "echo this");
    let mut phases: Vec<EnginePhase> = fixture.statuses.try_iter().map(|status| status.phase).collect();
    phases.dedup();
    // What the start still had to say may come first.
    assert!(phases.ends_with(&[EnginePhase::Replying, EnginePhase::Ready]), "{phases:?}");
    fixture.refused(None, "say something");
    assert!(fixture.statuses.try_iter().all(|status| status.phase == EnginePhase::Ready));
}

#[test]
fn nothing_is_told_of_a_reply_that_could_not_be_begun() {
    let fixture = fixture();
    let (first, _) = fixture.send(None, "echo this");
    let (events, heard) = listen();
    let error = fixture.app.send(Some(first.conversation.id), "forget all of it", events).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert_eq!(*heard.lock().unwrap(), []);
}
