//! Attachments of questions: the model receives them however it is asked, and they stay with their
//! question.

use foretoken_app::cancel::Cancel;
use foretoken_app::engine::replier::{Chat, Ending, Event, Replier};
use foretoken_app::error::Result;
use foretoken_app::ipc::{
    ATTACHMENT_BYTES, ATTACHMENTS, Attached, AttachmentKind, ErrorCode, PromptSize, ReplyCheck, Sent,
    ServerSettings, Settings, TokenCount,
};
use foretoken_engine::trace::{Finish, Summary};
use foretoken_model::ProblemKind;
use foretoken_tests::client::post;
use foretoken_tests::{RandomEmbedder, soon};

use super::serving::free_port;
use super::{Fixture, listen};

/// Replies with everything it receives, except its own replies.
struct Mirror;

impl Replier for Mirror {
    fn reply(
        &mut self,
        chat: &Chat,
        _settings: &Settings,
        _cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        let conversation = &chat.messages;
        on(Event::Started { target: "Mirror", draft: None });
        let asked: Vec<&str> = conversation.iter().step_by(2).map(|turn| turn.content.as_str()).collect();
        on(Event::Text { delta: &asked.join(" | ") });
        Ok(Ending { finish: Finish::Stop, summary: None })
    }

    fn measure(&mut self, chat: &Chat, _settings: &Settings) -> Result<PromptSize> {
        let conversation = &chat.messages;
        let tokens = conversation.iter().map(|turn| turn.content.len()).sum();
        Ok(PromptSize { tokens, context: 100 })
    }
}

fn fixture() -> Fixture {
    Fixture::with(tempfile::tempdir().unwrap(), Mirror)
}

fn file(name: &str, text: &str) -> Attached {
    Attached { name: name.to_owned(), kind: AttachmentKind::Text, text: text.to_owned() }
}

fn sent(text: &str, attached: &[Attached]) -> Sent {
    Sent { attached: attached.to_vec(), ..text.into() }
}

#[test]
fn an_attachment_is_read_with_its_question_however_the_model_is_asked() {
    let fixture = fixture();
    let (app, quiet) = (&fixture.app, || listen().0);
    let fox = "a.csv:\n```csv\nfox,3\n```\n\n";
    let files = [file("a.csv", "fox,3\n")];
    let first = app.send(None, sent(" How many? ", &files), quiet()).unwrap();
    assert_eq!(first.reply.text, format!("{fox}How many?"));
    let conversation = first.conversation.id;
    let question = app.messages(conversation).unwrap().remove(0);
    assert_eq!((question.text.as_str(), question.attachments[0].name.as_str()), ("How many?", "a.csv"));
    assert_eq!(app.attachment(question.attachments[0].id).unwrap(), files[0]);

    let again = app.regenerate(first.reply.id, quiet()).unwrap();
    assert_eq!(again.reply.text, first.reply.text);
    let next = app.send(Some(conversation), "And hens?", quiet()).unwrap();
    assert_eq!(next.reply.text, format!("{fox}How many? | And hens?"));

    let kept = Sent { kept: vec![question.attachments[0].id], ..sent("Why?", &[file("b", "`")]) };
    let changed = app.send_instead(question.id, kept, quiet()).unwrap();
    assert_eq!(changed.reply.text, format!("{fox}b:\n```\n`\n```\n\nWhy?"));
    let without = app.send_instead(question.id, "Why?", quiet()).unwrap();
    assert_eq!(without.reply.text, "Why?");
    let back = app.choose_branch(question.id).unwrap();
    assert_eq!(back[0].attachments, question.attachments, "the first question keeps its attachments");

    let last = back.iter().rfind(|message| message.text == "And hens?").unwrap().id;
    assert_eq!(app.see_from(conversation, Some(last)).unwrap().seen_from, Some(last));
    assert_eq!(app.send(Some(conversation), "Hm?", quiet()).unwrap().reply.text, "And hens? | Hm?");
    assert_eq!(app.see_from(conversation, Some(first.reply.id)).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn the_context_can_start_at_the_next_message() {
    let fixture = fixture();
    let (app, quiet) = (&fixture.app, || listen().0);
    let conversation = app.send(None, "One", quiet()).unwrap().conversation.id;
    let start = app.see_from(conversation, None).unwrap().seen_from;
    let sent = app.send(Some(conversation), "Two", quiet()).unwrap();
    assert_eq!((sent.reply.text.as_str(), start), ("Two", sent.reply.parent));
}

#[test]
fn an_attachment_counts_when_turns_are_dropped_for_it() {
    let fixture = fixture();
    let first = fixture.app.send(None, sent("Hm?", &[file("a", &"x".repeat(50))]), listen().0).unwrap();
    let conversation = first.conversation.id;
    let all = fixture.app.see_all(conversation).unwrap_err();
    assert!(all.message.contains("132 tokens"), "attachment and reply are counted: {}", all.message);
    let next = sent("And?", &[file("b", &"x".repeat(50))]);
    let left = fixture.app.leave_out_oldest(conversation, Some(next.clone())).unwrap();
    assert!(left.seen_from > Some(first.reply.id), "everything before it is left out");
    let too_long = sent("And?", &[file("b", &"x".repeat(99))]);
    let refused = fixture.app.leave_out_oldest(conversation, Some(too_long)).unwrap_err();
    assert!(refused.message.contains("attach less"), "{}", refused.message);
}

#[test]
fn attachments_that_cannot_be_sent_are_named_and_nothing_is_stored() {
    let fixture = fixture();
    let refused = |sent: Sent| {
        let error = fixture.app.send(None, sent, listen().0).unwrap_err();
        (error.code, error.message)
    };
    let many = vec![file("a", "x"); ATTACHMENTS + 1];
    assert_eq!(refused(sent("", &many)).1, "At most 20 files can be attached to a message.");
    assert_eq!(refused(sent("Hm?", &[file("a\n.txt", " \n")])).1, "a.txt contains no text. Remove it.");
    let long = file("a.log", &"x".repeat(ATTACHMENT_BYTES + 1));
    let long = refused(sent("Hm?", &[long]));
    let sentence = "a.log has more than 4 MB of text. Attach only part of it.";
    assert_eq!(long, (ErrorCode::BadAttachment, sentence.to_owned()));
    assert_eq!(refused(Sent { kept: vec![7], ..Sent::default() }).0, ErrorCode::NotFound);
    assert_eq!(refused(Sent::default()).0, ErrorCode::EmptyPrompt);
    assert!(fixture.app.conversations().unwrap().is_empty());
    let whole = file("a.log", &"x".repeat(ATTACHMENT_BYTES));
    fixture.app.send(None, sent("", &[whole]), listen().0).unwrap();
}

#[test]
fn tokens_of_an_attachment_match_the_prompt_and_are_estimated_without_a_tokenizer() {
    let text = "Once upon a time a fox found a lantern.\n".repeat(8);
    let estimate = fixture().app.count_attachment(&file("a.txt", &text)).unwrap();
    assert_eq!((estimate.tokens, estimate.exact), (85, false));

    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 4);
    let counted = fixture.app.count_attachment(&file("a.txt", &text)).unwrap();
    assert!(counted.exact);
    let prompt = |sent: Sent| {
        let reply = fixture.app.send(None, sent, listen().0).unwrap();
        (reply.reply.summary.unwrap().prompt_tokens, reply.conversation.id)
    };
    let (with, conversation) = prompt(sent("Go on.", &[file("a.txt", &text)]));
    let (without, plain) = prompt("Go on.".into());
    // The separator between attachment and question takes a token or two.
    assert!(
        (counted.tokens..counted.tokens + 3).contains(&(with - without)),
        "{with}, {without}, {counted:?}"
    );
    let used = fixture.app.context_use(Some(conversation)).unwrap();
    assert_eq!((used.attachments, used.system_prompt.tokens), (counted, 0));
    assert_eq!(fixture.app.context_use(Some(plain)).unwrap().attachments.tokens, 0);
    let first = fixture.app.messages(conversation).unwrap()[0].id;
    fixture.app.see_from(conversation, Some(first)).unwrap();
    let asked = fixture.send(Some(conversation), "And?").0;
    let all = fixture.app.context_use(Some(conversation)).unwrap().used;
    let Summary { prompt_tokens, tokens, .. } = asked.reply.summary.unwrap();
    assert_eq!(all, TokenCount { tokens: prompt_tokens + tokens, exact: true });
    fixture.app.see_from(conversation, asked.reply.parent).unwrap();
    let rest = fixture.app.context_use(Some(conversation)).unwrap();
    assert_eq!(rest.attachments.tokens, 0, "the attachment is left out");
    assert!(!rest.used.exact && rest.used.tokens > 0 && rest.used.tokens < all.tokens / 2, "{rest:?}");
    fixture.app.delete_message(asked.reply.id).unwrap();
    let question = fixture.app.context_use(Some(conversation)).unwrap().used;
    assert!(question.tokens > 0 && question.tokens < rest.used.tokens, "the deleted reply is not counted");
    assert_eq!(fixture.app.context_use(None).unwrap().used.tokens, 0);
}

#[test]
fn a_prompt_that_cannot_fit_is_refused_by_an_estimate_without_counting() {
    let fixture = Fixture::new();
    let whole = file("a.txt", &"A fox found it. ".repeat(ATTACHMENT_BYTES / 16));
    let error = fixture.app.send(None, whole.text.as_str(), listen().0).unwrap_err();
    assert_eq!(error.code, ErrorCode::MessageTooLong);
    assert!(error.message.contains("its prompt has 1048"), "{}", error.message);
    let counted = fixture.app.count_attachment(&whole).unwrap();
    assert!(!counted.exact && counted.tokens >= ATTACHMENT_BYTES as u32 / 4, "{counted:?}");

    let conversation = fixture.send(None, "Hello").0.conversation.id;
    let next = Some(whole.text.as_str().into());
    let refused = fixture.app.leave_out_oldest(conversation, next).unwrap_err().message;
    assert!(refused.starts_with("This message is too long: its prompt has 10485"), "{refused}");
    assert_eq!(fixture.app.conversations().unwrap().len(), 1);
}

/// Sections with a heading each.
fn sections(texts: impl Iterator<Item = String>) -> String {
    (0..).zip(texts).map(|(number, text)| format!("## Section {number}\n{text}\n")).collect()
}

#[test]
fn long_files_are_searched_and_their_excerpts_stay_with_the_question() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 4);
    let filler = |number| format!("It rained in town {number}. {}", "The river rose. ".repeat(9));
    let keeper = "The keeper of the lighthouse is called Ines.".to_owned();
    let text = sections((0..400).map(filler).chain([keeper]).chain((400..900).map(filler)));
    let long = file("town.md", &text);
    fixture.app.count_attachment(&long).unwrap();
    let asked = sent("Who is the keeper of the lighthouse?", &[long]);
    let reply = fixture.app.send(None, asked, listen().0).unwrap();
    let conversation = reply.conversation.id;
    let excerpts = |index: usize| fixture.app.messages(conversation).unwrap()[index].excerpts.clone();
    let found = excerpts(0);
    assert_eq!((found[0].name.as_str(), found[0].heading.as_deref()), ("town.md", Some("Section 400")));
    assert!(found[0].text.contains("Ines"), "{found:?}");
    assert!(text.contains(&found[0].text), "an excerpt is a part of the file");
    let used = fixture.app.context_use(Some(conversation)).unwrap();
    assert!(used.attachments.tokens > 100 && used.used.tokens < 1_024, "{used:?}");

    // A later question finds others, and the first one's prompt stays the same.
    fixture.app.send(Some(conversation), "What about town 77?", listen().0).unwrap();
    assert_eq!(excerpts(0), found);
    assert!(excerpts(2).iter().any(|excerpt| excerpt.text.contains("town 77.")), "{:?}", excerpts(2));
    let check = fixture.app.check_reply(reply.reply.id, Box::new(|_| ())).unwrap();
    assert!(matches!(check, ReplyCheck::Text { difference: None, .. }), "{check:?}");

    // After a restart the documents are indexed again.
    let fixture = fixture.restart();
    fixture.app.send(Some(conversation), "And town 123?", listen().0).unwrap();
    let last = fixture.app.messages(conversation).unwrap()[4].excerpts.clone();
    assert!(last.iter().any(|excerpt| excerpt.text.contains("town 123.")), "{last:?}");
}

#[test]
fn with_an_embedding_model_passages_are_found_by_meaning_and_programs_get_embeddings() {
    let fixture = Fixture::new();
    let models = tempfile::tempdir().unwrap();
    let path = RandomEmbedder::new("bert").write_folder(models.path()).display().to_string();
    let added = fixture.app.add_model(&path).unwrap();
    assert_eq!(added.problem.map(|problem| problem.kind), Some(ProblemKind::EmbeddingModel));
    fixture.set(|settings| {
        settings.max_tokens = 4;
        settings.embedding_model.clone_from(&path);
        settings.server = ServerSettings { enabled: true, port: free_port(), ..settings.server.clone() };
    });
    let filler = |number| format!("It rained in town {number}. {}", "The river rose. ".repeat(9));
    let long = file("town.md", &sections((0..60).map(filler).chain(["the fox runs".to_owned()])));
    fixture.app.count_attachment(&long).unwrap();
    soon(|| {
        let status = fixture.app.document_search_status().unwrap();
        status.problem.is_none() && status.passages > 50 && status.embedded == status.passages
    });
    // No word of it is in the file.
    let reply = fixture.app.send(None, sent("zebras", &[long]), listen().0).unwrap();
    let conversation = reply.conversation.id;
    let found = fixture.app.messages(conversation).unwrap()[0].excerpts.clone();
    assert!(!found.is_empty(), "something is always similar");

    let at = format!("127.0.0.1:{}", fixture.app.settings().server.port);
    let answer = post(&at, "/v1/embeddings", r#"{"input":["the fox"],"model":"bert"}"#).json();
    assert_eq!(answer["data"][0]["embedding"].as_array().unwrap().len(), 32);

    // Without the model words decide again, and a missing one is a problem that is shown.
    fixture.set(|settings| settings.embedding_model.clear());
    fixture.app.send(Some(conversation), "zebras", listen().0).unwrap();
    assert_eq!(fixture.app.messages(conversation).unwrap()[2].excerpts, []);
    assert_eq!(fixture.app.document_search_status().unwrap().embedded, 0);
    fixture.set(|settings| settings.embedding_model = "/nowhere".to_owned());
    soon(|| {
        let problem = fixture.app.document_search_status().unwrap().problem;
        problem.is_some_and(|problem| problem.contains("/nowhere"))
    });
    fixture.set(|settings| settings.embedding_model.clone_from(&path));
    fixture.app.remove_model(&path).unwrap();
    assert_eq!(fixture.app.settings().embedding_model, "");
}

#[test]
fn short_files_have_no_excerpts() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 4);
    let asked = sent("Who is a fox?", &[file("a.txt", "Ines is a fox.")]);
    let reply = fixture.app.send(None, asked, listen().0).unwrap();
    let messages = fixture.app.messages(reply.conversation.id).unwrap();
    assert_eq!(messages[0].excerpts, []);
    let left = fixture.app.context_use(Some(reply.conversation.id)).unwrap().whole_files;
    assert!(left.is_some_and(|left| left < 512), "{left:?}");
}

#[test]
fn the_prefill_rate_is_known_after_a_long_prompt() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 1);
    assert_eq!(fixture.status().reading_rate, None);
    fixture.send(None, "Hello!");
    assert_eq!(fixture.status().reading_rate, None, "a short prompt does not count");
    let text = "It was about a fox. ".repeat(120);
    let reply = fixture.send(None, &text).0.reply;
    assert!(reply.summary.unwrap().prompt_tokens > 500);
    let rate = fixture.status().reading_rate.unwrap();
    assert!(rate > 1.0);
    fixture.wait_for_jobs();
    let kept = fixture.restart().status().reading_rate.unwrap();
    assert!((kept / rate - 1.0).abs() < 1e-6, "{kept}, {rate}");
}
