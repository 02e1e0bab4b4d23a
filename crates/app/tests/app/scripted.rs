//! Replies of a writer with text but no rounds, such as a remote service: they are stored,
//! streamed, cancelled, and fail like any other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foretoken_app::cancel::Cancel;
use foretoken_app::conversations::reply::Events;
use foretoken_app::engine::replier::{Chat, Ending, Event, Replier};
use foretoken_app::error::Result;
use foretoken_app::ipc::{
    CommandError, ContextOverflow, EnginePhase, ErrorCode, Message, PromptSize, Reply, ReplyEvent, Settings,
};
use foretoken_engine::trace::Finish;
use foretoken_library::Folders;
use foretoken_model::Role;
use foretoken_store::Store;

use super::{Fixture, TIMEOUT, listen};

/// Writer whose questions are commands: "echo ..." replies with the words one by one, "fail ..."
/// fails after them, "wait" writes one word until it is cancelled, "forget ..." writes the words
/// after it has deleted every conversation, "recall" repeats the previous replies. A command that
/// begins with "first" is echoed the first time and executed afterwards. A continued reply is "
/// after" and its own words. A title is the last reply and "retold"; if that is "slow" the title
/// waits first. A word is a token.
struct Scripted {
    database: PathBuf,
    /// Questions so far.
    asked: Vec<String>,
}

/// Context length of [`Scripted`], in words.
const CONTEXT: usize = 40;

impl Replier for Scripted {
    fn reply(
        &mut self,
        chat: &Chat,
        settings: &Settings,
        cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        let conversation = &chat.messages;
        let asked = conversation.last().unwrap();
        let PromptSize { tokens: found, context: limit } = self.measure(chat, settings)?;
        if found >= limit {
            return Err(foretoken_model::Error::PromptTooLong { found, limit }.into());
        }
        let again = self.asked.contains(&asked.content);
        self.asked.push(asked.content.clone());
        let order = match asked.content.strip_prefix("first ") {
            Some(order) if again => order.to_owned(),
            Some(order) => format!("echo {order}"),
            None if asked.content == "recall" => {
                format!("echo {}", conversation[conversation.len() - 2].content)
            }
            None if asked.content.starts_with("Write a title") => {
                assert_eq!((settings.sampling.temperature, settings.max_tokens), (0.0, 16));
                match conversation[conversation.len() - 2].content.as_str() {
                    "slow" => "wait for a title".to_owned(),
                    text => format!("echo Title: \"{text} retold.\""),
                }
            }
            None if asked.role == Role::Assistant => format!("echo  after {}", asked.content),
            None => asked.content.clone(),
        };
        let (order, words) = order.split_once(' ').unwrap_or((&order, "word"));
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

    fn measure(&mut self, chat: &Chat, _settings: &Settings) -> Result<PromptSize> {
        let conversation = &chat.messages;
        let tokens = conversation.iter().map(|turn| turn.content.split_whitespace().count()).sum();
        Ok(PromptSize { tokens, context: CONTEXT })
    }
}

pub fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let database = Folders::at(folder.path()).database();
    Fixture::with(folder, Scripted { database, asked: Vec::new() })
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
        "a refused message is not stored"
    );
}

/// Stops the reply once it has text.
fn stopper(fixture: &Fixture) -> Events {
    let app = Arc::clone(&fixture.app);
    Arc::new(move |event| {
        if matches!(event, ReplyEvent::Text { .. }) {
            app.stop();
        }
    })
}

#[test]
fn a_cancelled_reply_without_rounds_keeps_its_text() {
    let fixture = fixture();
    let reply = fixture.app.send(None, "wait patiently", stopper(&fixture)).unwrap().reply;
    assert_eq!((reply.text.as_str(), reply.finish), ("patiently", Some(Finish::Cancelled)));
}

#[test]
fn a_writer_without_rounds_is_shown_as_replying_too() {
    let fixture = fixture();
    fixture.send(None, "echo this");
    let mut phases: Vec<EnginePhase> = fixture.statuses.try_iter().map(|status| status.phase).collect();
    phases.dedup();
    // A late status of the start may arrive first.
    assert!(phases.ends_with(&[EnginePhase::Replying, EnginePhase::Ready]), "{phases:?}");
    fixture.refused(None, "say something");
    assert!(fixture.statuses.try_iter().all(|status| status.phase == EnginePhase::Ready));
}

#[test]
fn a_reply_that_could_not_begin_sends_no_events() {
    let fixture = fixture();
    let (first, _) = fixture.send(None, "echo this");
    let (events, received) = listen();
    let error = fixture.app.send(Some(first.conversation.id), "forget all of it", events).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert_eq!(*received.lock().unwrap(), []);
}

fn shown(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.text.as_str()).collect()
}

#[test]
fn a_regenerated_reply_keeps_the_original_with_everything_below_it_however_it_ends() {
    for (question, begun) in [
        ("first fail in the middle", "in the middle"),
        ("first wait for it", "for it"),
        ("first echo once more", "once more"),
    ] {
        let fixture = fixture();
        let (first, _) = fixture.send(None, question);
        let echoed = question.split_once(' ').unwrap().1;
        let conversation = first.conversation.id;
        fixture.send(Some(conversation), "recall");
        let events: Events = if question.contains("wait") { stopper(&fixture) } else { listen().0 };
        let again = fixture.app.regenerate(first.reply.id, events).unwrap().reply;
        assert_eq!((again.text.as_str(), &again.siblings), (begun, &vec![first.reply.id, again.id]));
        assert_eq!(shown(&fixture.app.messages(conversation).unwrap()), [question, begun]);
        let (next, _) = fixture.send(Some(conversation), "recall");
        assert_eq!(next.reply.text, begun, "the other reply is not in the context");

        let back = fixture.app.choose_branch(first.reply.id).unwrap();
        assert_eq!(shown(&back), [question, echoed, "recall", echoed]);
        assert_eq!(shown(&fixture.app.choose_branch(next.reply.id).unwrap()).len(), 4);
        assert_eq!(shown(&fixture.app.messages(conversation).unwrap())[1], begun);
    }
}

#[test]
fn an_edited_question_is_asked_after_its_parent_and_the_original_is_kept() {
    let fixture = fixture();
    let (first, _) = fixture.send(None, "echo a fox");
    let conversation = first.conversation.id;
    let (second, _) = fixture.send(Some(conversation), "echo a hen");
    let messages = fixture.app.messages(conversation).unwrap();
    let changed = fixture.app.send_instead(messages[2].id, " recall ", listen().0).unwrap();
    assert_eq!(changed.reply.text, "a fox", "the other branch is not in the context");
    let now = fixture.app.messages(conversation).unwrap();
    assert_eq!(shown(&now), ["echo a fox", "a fox", "recall", "a fox"]);
    assert_eq!(now[2].siblings, [messages[2].id, now[2].id]);
    let first_again = fixture.app.send_instead(messages[0].id, "echo an owl", listen().0).unwrap();
    assert_eq!(first_again.conversation.id, conversation);
    assert_eq!(shown(&fixture.app.messages(conversation).unwrap()), ["echo an owl", "an owl"]);
    let back = fixture.app.choose_branch(second.reply.id).unwrap();
    assert_eq!(shown(&back), ["echo a fox", "a fox", "echo a hen", "a hen"]);
    for (message, text) in [(second.reply.id, "echo"), (99, "echo")] {
        let refused = fixture.app.send_instead(message, text, listen().0).unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotFound);
    }
    let empty = fixture.app.send_instead(messages[0].id, "  ", listen().0).unwrap_err();
    assert_eq!(empty.code, ErrorCode::EmptyPrompt);
}

#[test]
fn an_interrupted_reply_is_continued_in_place() {
    let fixture = fixture();
    let reply = fixture.app.send(None, "wait patiently", stopper(&fixture)).unwrap();
    let conversation = reply.conversation.id;
    let more = fixture.app.continue_reply(reply.reply.id, listen().0).unwrap().reply;
    assert_eq!((more.parent, more.text.as_str()), (Some(reply.reply.id), " after patiently"));
    let messages = fixture.app.messages(conversation).unwrap();
    assert_eq!(shown(&messages), ["wait patiently", "patiently", " after patiently"]);
    let (next, _) = fixture.send(Some(conversation), "recall");
    assert_eq!(next.reply.text, "patiently after patiently", "one turn");
    for nothing in [messages[0].id, 99] {
        let refused = fixture.app.continue_reply(nothing, listen().0).unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotFound);
    }
}

/// Returns the title of a conversation.
fn title(fixture: &Fixture, conversation: i64) -> String {
    let mut conversations = fixture.app.conversations().unwrap().into_iter();
    conversations.find(|other| other.id == conversation).unwrap().title
}

#[test]
fn a_title_is_written_after_a_reply_and_shown_nowhere_else() {
    let fixture = fixture();
    let (reply, _) = fixture.send(None, "echo the quick fox");
    let conversation = reply.conversation.id;
    let messages = fixture.app.messages(conversation).unwrap();
    fixture.statuses.try_iter().for_each(drop);
    let named = fixture.app.write_title(conversation).unwrap().unwrap();
    assert_eq!(named.title, "the quick fox retold");
    assert_eq!(title(&fixture, conversation), named.title);
    assert_eq!(named.updated_at, reply.conversation.updated_at);
    assert_eq!(fixture.app.messages(conversation).unwrap(), messages);
    assert!(fixture.statuses.try_iter().all(|status| status.phase == EnginePhase::Ready));
    fixture.send(Some(conversation), "echo more");
    assert_eq!(fixture.app.write_title(conversation).unwrap(), None, "it has one");
    assert_eq!(fixture.app.write_title(99).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn a_title_is_cancelled_by_the_next_question_and_written_after_it() {
    let fixture = fixture();
    let conversation = fixture.send(None, "echo slow").0.conversation.id;
    let app = Arc::clone(&fixture.app);
    let waiting = std::thread::spawn(move || app.write_title(conversation).unwrap());
    std::thread::sleep(Duration::from_millis(50));
    let asked = Instant::now();
    fixture.send(Some(conversation), "echo b");
    assert!(asked.elapsed() < TIMEOUT);
    assert_eq!(waiting.join().unwrap(), None);
    assert_eq!(title(&fixture, conversation), "echo slow");
    assert_eq!(fixture.app.write_title(conversation).unwrap().unwrap().title, "b retold");
}

#[test]
fn a_persons_title_stays_and_so_do_first_words_without_a_better_title() {
    let fixture = fixture();
    let named = fixture.send(None, "echo a fox").0.conversation.id;
    fixture.app.rename_conversation(named, "Mine").unwrap();
    assert_eq!(fixture.app.write_title(named).unwrap(), None);
    assert_eq!(title(&fixture, named), "Mine");

    let silly = fixture.send(None, "echo Sorry,").0.conversation.id;
    assert_eq!(fixture.app.write_title(silly).unwrap(), None);
    fixture.send(Some(silly), "echo a fox");
    assert_eq!(fixture.app.write_title(silly).unwrap(), None, "it is asked only once");
    assert_eq!(title(&fixture, silly), "echo Sorry,");

    let off = fixture.send(None, "echo a hen").0.conversation.id;
    fixture.set(|settings| settings.write_titles = false);
    assert_eq!(fixture.app.write_title(off).unwrap(), None);
    fixture.set(|settings| settings.write_titles = true);
    assert_eq!(fixture.app.write_title(off).unwrap().unwrap().title, "a hen retold");
}

#[test]
fn a_message_is_deleted_with_everything_below_it_and_restored() {
    let fixture = fixture();
    let (first, _) = fixture.send(None, "echo a fox");
    let conversation = first.conversation.id;
    fixture.send(Some(conversation), "echo a hen");
    assert_eq!(shown(&fixture.app.delete_message(first.reply.id).unwrap()), ["echo a fox"]);
    let back = fixture.app.restore_message(first.reply.id).unwrap();
    assert_eq!(shown(&back), ["echo a fox", "a fox", "echo a hen", "a hen"]);
    assert_eq!(fixture.app.delete_message(99).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn a_refused_regeneration_changes_nothing() {
    let fixture = fixture();
    let (first, _) = fixture.send(None, "first say something");
    let before = fixture.app.messages(first.conversation.id).unwrap();
    let refused = fixture.app.regenerate(first.reply.id, listen().0).unwrap_err();
    assert_eq!(refused.message, "Nobody understands this.");
    assert_eq!(fixture.app.messages(first.conversation.id).unwrap(), before);
}

/// Changes the database as another program would.
fn meddle(fixture: &Fixture, sql: &str) {
    let path = Folders::at(fixture.folder.path()).database();
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

/// Makes the store refuse the ends of replies, until [`ALLOW`].
const REFUSE_ENDS: &str = "CREATE TRIGGER refuse BEFORE UPDATE OF text, finish ON messages
                           BEGIN SELECT RAISE(ABORT, 'no room'); END";
const ALLOW: &str = "DROP TRIGGER refuse";

/// Waits until everything in a conversation is stored.
fn until_stored(fixture: &Fixture, conversation: i64) -> Vec<Message> {
    let begin = Instant::now();
    loop {
        let messages = fixture.app.messages(conversation).unwrap();
        if messages.iter().all(|message| message.unstored.is_none()) {
            return messages;
        }
        assert!(begin.elapsed() < TIMEOUT, "waited in vain: {messages:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_reply_that_cannot_be_stored_is_shown_with_the_reason_and_stored_later() {
    let fixture = fixture();
    meddle(&fixture, REFUSE_ENDS);
    let (Reply { conversation, reply }, _) = fixture.send(None, "echo a long tale");
    assert_eq!((reply.text.as_str(), reply.finish), ("a long tale", Some(Finish::Stop)));
    let reason = reply.unstored.clone().unwrap();
    assert!(reason.starts_with("This reply could not be saved:") && reason.contains("no room"), "{reason}");
    assert_eq!(fixture.app.messages(conversation.id).unwrap()[1], reply);

    let refused = fixture.refused(Some(conversation.id), "recall").1;
    assert!(refused.starts_with("The previous reply is not saved yet:"), "{refused}");
    assert_eq!(fixture.app.messages(conversation.id).unwrap().len(), 2, "a refused message is not stored");

    meddle(&fixture, ALLOW);
    let messages = until_stored(&fixture, conversation.id);
    assert_eq!(messages[1], Message { unstored: None, ..reply });
    let (next, _) = fixture.send(Some(conversation.id), "recall");
    assert_eq!(next.reply.text, "a long tale");
}

#[test]
fn an_unstored_reply_is_stored_before_the_next_message() {
    let fixture = fixture();
    meddle(&fixture, REFUSE_ENDS);
    let (first, _) = fixture.send(None, "echo a long tale");
    assert!(first.reply.unstored.is_some());
    meddle(&fixture, ALLOW);
    let (next, _) = fixture.send(Some(first.conversation.id), "recall");
    assert_eq!(next.reply.text, "a long tale");
    let messages = fixture.app.messages(first.conversation.id).unwrap();
    assert_eq!(messages[1], Message { unstored: None, ..first.reply });
}

#[test]
fn an_unstored_reply_is_stored_when_the_program_ends() {
    let fixture = fixture();
    meddle(&fixture, REFUSE_ENDS);
    let (first, _) = fixture.send(None, "echo a long tale");
    meddle(&fixture, ALLOW);
    let Fixture { app, folder, .. } = fixture;
    drop(app);
    let store = Store::open(&Folders::at(folder.path()).database()).unwrap();
    let begin = Instant::now();
    // The retrying thread may store it first.
    while store.message(first.reply.id).unwrap().finish.is_none() {
        assert!(begin.elapsed() < TIMEOUT, "it was not stored");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(store.message(first.reply.id).unwrap().text, "a long tale");
}

#[test]
fn two_unstored_siblings_are_both_shown_and_stored() {
    let fixture = fixture();
    let (first, _) = fixture.send(None, "first echo again");
    meddle(&fixture, REFUSE_ENDS);
    let again = fixture.app.regenerate(first.reply.id, listen().0).unwrap().reply;
    assert!(again.unstored.is_some());
    let messages = fixture.app.messages(first.conversation.id).unwrap();
    assert_eq!(shown(&messages), ["first echo again", "again"]);
    assert_eq!(messages[1].siblings, [first.reply.id, again.id]);
    meddle(&fixture, ALLOW);
    let stored = until_stored(&fixture, first.conversation.id);
    assert_eq!(stored[1], Message { unstored: None, ..again });
}

#[test]
fn a_question_that_cannot_be_stored_is_refused_without_events() {
    let fixture = fixture();
    meddle(
        &fixture,
        "CREATE TRIGGER refuse BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, 'no room'); END",
    );
    let (events, received) = listen();
    let error = fixture.app.send(None, "echo this", events).unwrap_err();
    assert!(error.message.contains("no room"), "{}", error.message);
    assert_eq!(*received.lock().unwrap(), []);
    assert!(fixture.app.conversations().unwrap().is_empty());
}

#[test]
fn a_conversation_that_exceeds_the_context_continues_without_its_oldest_turns() {
    let fixture = fixture();
    let (first, _) = fixture.send(None, "echo one two three four five six seven eight");
    let conversation = first.conversation.id;
    fixture.send(Some(conversation), "echo nine ten eleven twelve");
    fixture.send(Some(conversation), "recall");
    let before = fixture.app.messages(conversation).unwrap();

    let next = "echo some more words for you and again some more words";
    let (reply, events) = fixture.send(Some(conversation), next);
    assert_eq!(reply.conversation.seen_from, Some(before[2].id), "dropping one turn is enough");
    let ReplyEvent::Started { conversation: begun, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(begun.seen_from, reply.conversation.seen_from, "set from the beginning");
    assert_eq!(fixture.app.messages(conversation).unwrap()[..before.len()], before, "nothing is deleted");

    // For an edited or regenerated message only the turns before it count.
    let changed = fixture.app.send_instead(before[4].id, next, listen().0).unwrap();
    assert_eq!(changed.conversation.seen_from, Some(before[2].id));
    let again = fixture.app.regenerate(changed.reply.id, listen().0).unwrap();
    assert_eq!(again.conversation.seen_from, Some(before[2].id));

    let seen_from = again.conversation.seen_from;
    let long = "word ".repeat(CONTEXT);
    let error = fixture.app.send(Some(conversation), long.as_str(), listen().0).unwrap_err();
    assert_eq!(error.code, ErrorCode::MessageTooLong);
    assert_eq!(error.prompt, Some(PromptSize { tokens: CONTEXT, context: CONTEXT }));
    let error = fixture.app.send(None, long.as_str(), listen().0).unwrap_err();
    assert_eq!(error.code, ErrorCode::MessageTooLong, "nothing can be dropped from a new conversation");
    assert_eq!(fixture.app.conversations().unwrap()[0].seen_from, seen_from, "nothing changed");
}

#[test]
fn a_question_whose_reply_was_deleted_is_answered_with_the_turns_before_it() {
    let fixture = fixture();
    let (first, _) = fixture.send(None, "first echo one");
    let conversation = first.conversation.id;
    let (second, _) = fixture.send(Some(conversation), "recall");
    fixture.app.delete_message(second.reply.id).unwrap();
    let (events, received) = listen();
    let answer = fixture.app.regenerate(second.reply.parent.unwrap(), events).unwrap().reply;
    assert_eq!((answer.text.as_str(), answer.parent), ("echo one", second.reply.parent));
    assert!(matches!(&received.lock().unwrap()[0], ReplyEvent::Started { user: None, .. }));
    assert_eq!(fixture.app.messages(conversation).unwrap().len(), 4);
    assert_eq!(fixture.app.regenerate(99, listen().0).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn with_stop_a_conversation_that_exceeds_the_context_is_refused_until_turns_are_dropped() {
    let fixture = fixture();
    fixture.set(|settings| settings.context_overflow = ContextOverflow::Stop);
    let (first, _) = fixture.send(None, "echo one two three four five six seven eight");
    let conversation = first.conversation.id;
    fixture.send(Some(conversation), "echo nine ten eleven twelve");
    fixture.send(Some(conversation), "recall");
    // Too long while the first turn is in the context.
    let next = "echo some more words for you and again some more words";
    let error = fixture.app.send(Some(conversation), next, listen().0).unwrap_err();
    assert_eq!(error.code, ErrorCode::PromptTooLong);
    assert!(error.prompt.is_some_and(|size| size.tokens > CONTEXT && size.context == CONTEXT), "{error:?}");

    let before = fixture.app.messages(conversation).unwrap();
    let left = fixture.app.leave_out_oldest(conversation, Some(next.into())).unwrap();
    assert_eq!(left.seen_from, Some(before[2].id), "dropping one turn is enough");
    assert_eq!(fixture.app.messages(conversation).unwrap(), before, "nothing is deleted");
    let (reply, _) = fixture.send(Some(conversation), next);
    assert_eq!(reply.reply.text, "some more words for you and again some more words");

    let refused = fixture.app.see_all(conversation).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PromptTooLong);
    assert!(refused.message.contains("holds 40"), "{}", refused.message);

    let long = "word ".repeat(CONTEXT);
    let refused = fixture.app.leave_out_oldest(conversation, Some(long.as_str().into())).unwrap_err();
    assert_eq!(refused.code, ErrorCode::MessageTooLong);
    assert_eq!(refused.prompt, Some(PromptSize { tokens: CONTEXT, context: CONTEXT }));
    assert_eq!(fixture.app.conversations().unwrap()[0].seen_from, left.seen_from, "nothing changed");

    let short = fixture.send(None, "echo this").0.conversation.id;
    fixture.app.leave_out_oldest(short, Some("word ".repeat(29).as_str().into())).unwrap();
    assert!(
        fixture.app.conversations().unwrap().iter().any(|home| home.id == short && home.seen_from.is_some())
    );
    assert_eq!(fixture.app.see_all(short).unwrap().seen_from, None);
}
