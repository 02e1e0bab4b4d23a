//! Export and import of conversations.

use std::path::{Path, PathBuf};

use foretoken_app::ipc::{ErrorCode, Export, ExportForm, Message};

use super::Fixture;
use super::scripted::fixture;

/// Exports conversations into the fixture's own folder.
fn export(fixture: &Fixture, conversation: Option<i64>, form: ExportForm) -> PathBuf {
    let export = Export { conversation, form, traces: true, you: "You".into() };
    PathBuf::from(fixture.app.export_conversations(&export).unwrap())
}

/// Returns the parts of messages that can be compared across stores.
fn comparable(messages: &[Message]) -> Vec<(String, usize)> {
    messages.iter().map(|message| (message.text.clone(), message.siblings.len())).collect()
}

fn import(fixture: &Fixture, path: &Path) -> Result<(u32, u32), ErrorCode> {
    let imported = fixture.app.import_conversations(path.to_str().unwrap(), &mut |_| ());
    imported.map(|imported| (imported.added, imported.known)).map_err(|error| error.code)
}

#[test]
fn exported_conversations_are_imported_with_all_branches_and_only_once() {
    let from = fixture();
    let (reply, _) = from.send(None, "echo a fox");
    let conversation = reply.conversation.id;
    from.app.regenerate(reply.reply.id, super::listen().0).unwrap();
    from.send(Some(conversation), "echo more");
    from.app.rename_conversation(conversation, "Foxes & hens").unwrap();
    from.send(None, "echo another");
    let one = export(&from, Some(conversation), ExportForm::Json);
    let all = export(&from, None, ExportForm::Json);
    assert_eq!(import(&from, &all), Ok((0, 2)), "they are here");

    let to = fixture();
    assert_eq!(import(&to, &one), Ok((1, 0)));
    let arrived = to.app.conversations().unwrap().remove(0);
    assert_eq!(arrived.title, "Foxes & hens");
    let (before, after) = (from.app.messages(conversation).unwrap(), to.app.messages(arrived.id).unwrap());
    assert_eq!(comparable(&after), comparable(&before));
    assert_eq!((after[1].finish, &after[1].target), (before[1].finish, &before[1].target));
    assert_eq!(import(&to, &all), Ok((1, 1)));
    assert_eq!(import(&to, &all), Ok((0, 2)));
    to.send(Some(arrived.id), "recall");
    assert_eq!(import(&to, &one), Ok((0, 1)), "it was continued since");
    for file in [one, all] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn markdown_contains_the_shown_branch() {
    let fixture = fixture();
    let (reply, _) = fixture.send(None, "echo a fox");
    let path = export(&fixture, Some(reply.conversation.id), ExportForm::Markdown);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "# echo a fox\n\n## You\n\necho a fox\n\n## Scripted\n\na fox\n");
    std::fs::remove_file(path).unwrap();
    let gone =
        Export { conversation: Some(99), form: ExportForm::Markdown, traces: false, you: "You".into() };
    assert_eq!(fixture.app.export_conversations(&gone).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn conversations_deleted_during_an_export_of_all_are_left_out() {
    let fixture = fixture();
    let path = fixture.folder.path().join("conversations.json");
    let some: Vec<String> = (1..300).map(|length| spoken(&"fox ".repeat(length))).collect();
    std::fs::write(&path, format!("[{}]", some.join(","))).unwrap();
    assert_eq!(import(&fixture, &path), Ok((299, 0)));
    let app = std::sync::Arc::clone(&fixture.app);
    let deleting = std::thread::spawn(move || {
        // Deletes the last of the list first.
        for conversation in app.conversations().unwrap().iter().rev() {
            app.delete_conversation(conversation.id).unwrap();
        }
    });
    while !deleting.is_finished() {
        for form in [ExportForm::Json, ExportForm::Markdown] {
            let file = export(&fixture, None, form);
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::remove_file(file).unwrap();
            if form == ExportForm::Json {
                assert!(serde_json::from_str::<Vec<serde_json::Value>>(&text).is_ok(), "{text}");
            }
        }
    }
    deleting.join().unwrap();
}

/// A conversation of ChatGPT in which the user says `text`, at a time of its own.
fn spoken(text: &str) -> String {
    format!(
        r#"{{"title":"{text}","create_time":{},"mapping":{{"a":{{"message":{{"author":{{"role":"user"}},"content":{{"content_type":"text","parts":["{text}"]}}}}}}}}}}"#,
        text.len()
    )
}

#[test]
fn a_file_damaged_after_many_conversations_imports_none_of_them() {
    let fixture = fixture();
    let path = fixture.folder.path().join("conversations.json");
    let some: Vec<String> = (1..50).map(|length| spoken(&"fox ".repeat(length))).collect();
    for damaged in [
        format!("[{},", some.join(",")),
        format!("[{},{{\"mapping\":7}}]", some.join(",")),
        format!("[{},{{\"format\":\"foretoken-conversation\",\"version\":2}}]", some.join(",")),
    ] {
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(import(&fixture, &path), Err(ErrorCode::BadFile));
        assert!(fixture.app.conversations().unwrap().is_empty());
        assert!(fixture.app.search_messages("fox").unwrap().is_empty());
    }
    std::fs::write(&path, "[]").unwrap();
    assert_eq!(import(&fixture, &path), Err(ErrorCode::BadFile));
    std::fs::write(&path, format!("[{}]", some.join(","))).unwrap();
    assert_eq!(import(&fixture, &path), Ok((49, 0)));
    assert_eq!(fixture.app.conversations().unwrap().len(), 49);
}

#[test]
fn a_copy_is_independent_of_the_original() {
    let fixture = fixture();
    let (reply, _) = fixture.send(None, "echo a fox");
    let copy = fixture.app.duplicate_conversation(reply.conversation.id, None, " Copy ").unwrap();
    assert_eq!(copy.title, "Copy");
    let (next, _) = fixture.send(Some(copy.id), "recall");
    assert_eq!(next.reply.text, "a fox");
    assert_eq!(fixture.app.messages(reply.conversation.id).unwrap().len(), 2);
    assert_eq!(fixture.app.duplicate_conversation(99, None, "x").unwrap_err().code, ErrorCode::NotFound);
}
