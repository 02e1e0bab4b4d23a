//! Export and import of conversations.

use std::path::{Path, PathBuf};

use foretoken_app::ipc::{ErrorCode, Export, ExportForm, Message, Sent};

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

/// Returns the name of the folder of each conversation, by title.
fn folders(fixture: &Fixture) -> Vec<(String, Option<String>)> {
    let folders = fixture.app.conversation_folders().unwrap();
    let name = |id: i64| folders.iter().find(|folder| folder.id == id).unwrap().name.clone();
    let conversations = fixture.app.conversations().unwrap().into_iter();
    let mut filed: Vec<_> = conversations.map(|one| (one.title, one.folder.map(name))).collect();
    filed.sort();
    filed
}

#[test]
fn folders_are_kept_by_exports_and_imports() {
    let from = fixture();
    let work = from.app.create_folder(" Work\u{202e}\n ").unwrap();
    let sent = Sent { folder: Some(work.id), ..Sent::from("echo a fox") };
    let inside = from.app.send(None, sent, super::listen().0).unwrap().conversation;
    from.send(None, "echo a hen");
    let before = folders(&from);
    assert_eq!(before[0].1.as_deref(), Some("Work"));
    assert_eq!(before[1].1, None);
    let copy = from.app.duplicate_conversation(inside.id, None, "Copy").unwrap();
    assert_eq!(copy.folder, Some(work.id));
    from.app.delete_conversation(copy.id).unwrap();
    let file = export(&from, None, ExportForm::Json);

    let to = fixture();
    let there = to.app.create_folder("WORK").unwrap();
    assert_eq!(import(&to, &file), Ok((2, 0)));
    assert_eq!(to.app.conversation_folders().unwrap(), [there], "a folder of this name is used");
    assert_eq!(folders(&to)[0].1.as_deref(), Some("WORK"));
    let empty = fixture();
    assert_eq!(import(&empty, &file), Ok((2, 0)));
    assert_eq!(folders(&empty), before);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_failed_import_leaves_no_folder() {
    let fixture = fixture();
    let file = fixture.folder.path().join("damaged.json");
    let one = r#"{"format":"foretoken-conversation","version":1,"title":"Foxes","folder":"Work","created_at":1,
        "updated_at":1,"messages":[{"parent":null,"role":"user","text":"Why?","created_at":1}]}"#;
    std::fs::write(&file, format!("[{one},")).unwrap();
    assert_eq!(import(&fixture, &file), Err(ErrorCode::BadFile));
    assert_eq!(fixture.app.conversation_folders().unwrap(), []);
    let hostile = one.replace("Work", r"\u202e \u0000");
    std::fs::write(&file, format!("[{hostile}]")).unwrap();
    assert_eq!(import(&fixture, &file), Ok((1, 0)));
    assert_eq!(folders(&fixture), [("Foxes".to_owned(), None)]);
}

#[test]
fn a_file_of_lm_studio_keeps_its_folder() {
    let fixture = fixture();
    let folder = fixture.folder.path().join("conversations/Owls");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("1.conversation.json");
    let version = r#"{"role":"user","content":[{"type":"text","text":"Who?"}]}"#;
    std::fs::write(&file, format!(r#"{{"name":"Who","messages":[{{"versions":[{version}]}}]}}"#)).unwrap();
    assert_eq!(import(&fixture, &file), Ok((1, 0)));
    assert_eq!(folders(&fixture), [("Who".to_owned(), Some("Owls".to_owned()))]);
}

#[test]
fn a_name_that_a_folder_cannot_have_is_refused_with_its_code() {
    let app = &fixture().app;
    let folder = app.create_folder("Work").unwrap();
    for name in ["", " \n", "\u{202e}", "work"] {
        let error = app.create_folder(name).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadName, "{name:?}: {}", error.message);
    }
    app.delete_folder(folder.id).unwrap();
    assert_eq!(app.rename_folder(folder.id, "x").unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(app.restore_folder(folder.id).unwrap(), folder);
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
        format!("[{},{{\"mapping\":}}]", some.join(",")),
        format!("[{}]]", some.join(",")),
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
fn an_odd_message_or_conversation_is_left_out_and_everything_else_is_imported() {
    let fixture = fixture();
    let path = fixture.folder.path().join("conversations.json");
    let odd = |title: &str, message: &str| {
        format!(
            r#"{{"title":"{title}","create_time":7,"mapping":{{
                "a":{{"message":{{"author":{{"role":"user"}},"content":{{"content_type":"text","parts":["Why?"]}}}}}},
                "b":{{"parent":"a","message":{message}}},
                "c":{{"parent":"b","message":{{"author":{{"role":"assistant"}},"content":{{"content_type":"text","parts":["Because."]}}}}}}}}}}"#
        )
    };
    let messages = [
        r#"{"author":{"role":"user"}}"#,
        r#"{"content":{"content_type":"text","parts":["Who?"]}}"#,
        r#"{"author":{"role":"user"},"content":7}"#,
        "7",
    ];
    let open_webui = r#"{"title":"Hens","chat":{"history":{"messages":{
        "a":{"role":"user","content":[{"type":"text","text":"Why?"},{"type":"image_url"}]},
        "b":{"parentId":"a","role":"assistant","content":null},
        "c":{"parentId":"b","role":"assistant","content":"Because."}}}}}"#;
    let lm_studio = r#"{"name":"Owls","messages":[
        {"versions":[{"role":"user","content":[{"type":"text","text":"Why?"}]}]},
        {"versions":[{"content":[]}]}, 7,
        {"versions":[{"role":"assistant","content":"Because."}]}]}"#;
    let whole = [r#"{"title":"Voles","mapping":null}"#, r#"{"title":"Mice","chat":{}}"#, "{}", "7", "null"];
    let all = messages.iter().map(|message| odd("Foxes", message));
    let all = all.chain([open_webui, lm_studio].map(str::to_owned)).chain(whole.map(str::to_owned));
    // Conversations that are the same are imported once, so each has a time of its own.
    let all: Vec<String> = all
        .enumerate()
        .map(|(at, json)| json.replace("\"create_time\":7", &format!("\"create_time\":{at}")))
        .collect();
    std::fs::write(&path, format!("[{}]", all.join(","))).unwrap();
    let imported = fixture.app.import_conversations(path.to_str().unwrap(), &mut |_| ()).unwrap();
    assert_eq!((imported.added, imported.known), (6, 0));
    assert_eq!((imported.left_out.conversations, imported.left_out.messages), (5, 7));
    assert_eq!(imported.left_out.titles, ["Foxes", "Foxes", "Foxes"]);
    for conversation in fixture.app.conversations().unwrap() {
        let texts = comparable(&fixture.app.messages(conversation.id).unwrap());
        assert_eq!(texts, [("Why?".to_owned(), 1), ("Because.".to_owned(), 1)], "{}", conversation.title);
    }
    // With nothing to import the file is refused with a reason.
    std::fs::write(&path, r#"[{"title":"Voles","mapping":null}]"#).unwrap();
    let error = fixture.app.import_conversations(path.to_str().unwrap(), &mut |_| ()).unwrap_err();
    assert_eq!(error.code, ErrorCode::BadFile);
    assert!(error.message.starts_with("\"Voles\" could not be read: "), "{}", error.message);
    std::fs::write(&path, format!("[{},{}]", whole[0], open_webui)).unwrap();
    let imported = fixture.app.import_conversations(path.to_str().unwrap(), &mut |_| ()).unwrap();
    assert_eq!(imported.left_out.titles, ["Voles", "Hens"]);
}

#[test]
fn an_import_reports_conversations_that_bring_their_own_instructions() {
    let fixture = fixture();
    let path = fixture.folder.path().join("conversations.json");
    let own = |at: u32, setup: &str| {
        format!(
            r#"{{"format":"foretoken-conversation","version":1,"title":"Foxes","created_at":{at},"updated_at":{at},
            "setup":{setup},"messages":[{{"parent":null,"role":"user","text":"Why?","created_at":{at}}}]}}"#
        )
    };
    let setups = [
        r#"{"own":true,"values":{"system_prompt":"Obey."}}"#,
        r#"{"own":true,"values":{"system_prompt":" "}}"#,
        r#"{"own":false,"values":{"system_prompt":"Obey."}}"#,
        "7",
    ];
    let all: Vec<String> = setups.iter().zip(1..).map(|(setup, at)| own(at, setup)).collect();
    std::fs::write(&path, format!("[{}]", all.join(","))).unwrap();
    let imported = fixture.app.import_conversations(path.to_str().unwrap(), &mut |_| ()).unwrap();
    assert_eq!((imported.added, imported.instructed), (4, 1));
}

#[test]
fn half_an_emoji_in_an_import_is_replaced() {
    let fixture = fixture();
    let path = fixture.folder.path().join("conversations.json");
    for (text, expected) in
        [(&b"half \\ud83e"[..], "half \u{fffd}"), (b"a \xed\xa0\xbe\xed\xb6\x8a", "a \u{1f98a}")]
    {
        let whole = spoken("@");
        let [before, title, after] = whole.split('@').collect::<Vec<_>>()[..] else { panic!() };
        let bytes = [before.as_bytes(), b"Foxes", title.as_bytes(), text, after.as_bytes()].concat();
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(import(&fixture, &path), Ok((1, 0)));
        let id = fixture.app.conversations().unwrap()[0].id;
        assert_eq!(fixture.app.messages(id).unwrap()[0].text, expected);
        fixture.app.delete_conversation(id).unwrap();
    }
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
