//! Tools of `generate`, and servers with tools, prompts and resources in `chat`.

use serde_json::{Value, json};

use crate::program::{PAIR, STORY, finished, json, program, run};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: impl ToString) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn heights() -> Value {
    json!([
        { "type": "function", "function": { "name": "height_of", "description": "Height of a hill.", "parameters": {
            "type": "object", "properties": { "hill": { "enum": ["Fox"] }, "metres": { "type": "boolean" } },
            "required": ["hill", "metres"], "additionalProperties": false } } },
        { "name": "now", "parameters": { "type": "object", "properties": {} } },
    ])
}

#[test]
fn a_call_is_printed_with_valid_arguments_with_drafts_as_without() {
    let folder = Folder::new();
    let tools = folder.write("tools.json", heights());
    let ask = [
        "generate",
        "--prompt",
        STORY,
        "--max-tokens",
        "80",
        "--tools",
        &tools,
        "--tool-choice",
        "height_of",
    ];
    let plain = json(&[&ask[..], &["--target", "starter"]].concat()).pop().unwrap();
    let drafted = json(&[&ask[..], &PAIR].concat()).pop().unwrap();
    assert_eq!((&drafted["tokens"], &plain["finish"]), (&plain["tokens"], &json!("stop")));
    let call = &plain["calls"][0];
    assert_eq!((&call["name"], &call["arguments"]["hill"]), (&json!("height_of"), &json!("Fox")));
    assert!(call["arguments"]["metres"].is_boolean(), "{call}");
    let run = run(&[&ask[..], &PAIR].concat());
    let lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], *call);
    // Left to the model, the starter tells its story.
    let free =
        json(&[&["generate", "--prompt", STORY, "--max-tokens", "9", "--tools", &tools], &PAIR[..]].concat());
    assert!(free.last().unwrap().get("calls").is_none());
}

#[test]
fn files_without_valid_tools_are_refused() {
    let folder = Folder::new();
    let ask = |path: &str, more: &[&str]| {
        let run =
            run(&[&["generate", "--prompt", STORY, "--target", "starter", "--tools", path], more].concat());
        assert!(run.out.is_empty(), "{}", run.out);
        (run.code, run.err)
    };
    let (code, sentence) = ask(&folder.write("a.json", "{\"name\": 1}"), &[]);
    assert!(code == 1 && sentence.contains("expected a JSON list of tools"), "{sentence}");
    let (code, sentence) = ask(&folder.write("b.json", heights()), &["--tool-choice", "fly"]);
    assert!(code == 2 && sentence.contains("one of height_of, now, found fly"), "{sentence}");
    let (code, sentence) = ask(&folder.write("b.json", heights()), &["--raw"]);
    assert!(code == 2 && sentence.contains("cannot be used with"), "{sentence}");
    assert_eq!(ask("no-such-file", &[]).0, 1);
}

/// A chat with the server for tests that has to begin each reply with a call of `tool`.
fn chat(tool: &str, lines: &[&str]) -> (String, String) {
    let folder = Folder::new();
    let server = foretoken_tests::mcp_server();
    let file = folder
        .write("mcp.json", json!({ "mcpServers": { "test": { "command": server, "args": ["", tool] } } }));
    let choice = format!("test__{tool}");
    let arguments =
        ["chat", "--mcp", &file, "--tool-choice", &choice, "--max-tokens", "60", "--temperature", "0"];
    let run = finished(program(&arguments), &lines.join("\n"));
    assert_eq!(run.code, 0, "{}", run.err);
    (run.out, run.err)
}

#[test]
fn a_call_runs_once_allowed_and_the_reply_goes_on_with_its_result() {
    let (out, err) = chat("fail", &["Look", "what?", "once", "Again", "always", "And again"]);
    assert!(err.contains("test: test__fail\n"), "{err}");
    assert_eq!(err.matches("test: fail {}\n").count(), 3, "{err}");
    assert_eq!(err.matches("Run it?").count(), 3, "a word that is no answer is asked again: {err}");
    assert_eq!(err.matches("no such file").count(), 3, "{err}");
    assert_eq!(out.matches("\"name\": \"test__fail\"").count(), 3, "{out}");
    assert!(out.lines().count() > 6, "each call is followed by a reply: {out}");
}

#[test]
fn a_refused_call_does_not_run_and_never_takes_its_tool_away() {
    let (_, err) = chat("fail", &["Look", "no", "Again", "never", "And again"]);
    assert!(!err.contains("no such file"), "{err}");
    assert_eq!((err.matches("Run it?").count(), err.matches("did not allow").count()), (2, 2), "{err}");
    let (_, err) = chat("fail", &["Look"]);
    assert!(err.contains("did not allow"), "the end of the input allows nothing: {err}");
}

#[test]
fn prompts_are_sent_and_resources_are_put_before_the_next_message() {
    let folder = Folder::new();
    let server = json!({ "command": foretoken_tests::mcp_server(), "args": ["", "fail"] });
    let file = folder.write("mcp.json", json!({ "mcpServers": { "my notes": server } }));
    let lines = [
        "/prompt",
        "/prompt \"my notes\" greet name=\"red fox\"",
        "/prompt \"my notes\" greet",
        "/prompt \"my notes\" empty",
        "/resource",
        "/resource \"my notes\" note://picture",
        "/resource \"my notes\" note://{animal}/{+path} animal=fox path=a.txt",
        "/resource elsewhere note://fox",
        "what?",
        "/stats",
    ];
    let arguments = ["chat", "--mcp", &file, "--max-tokens", "4", "--temperature", "0"];
    let run = finished(program(&arguments), &lines.join("\n"));
    assert_eq!(run.code, 0, "{}", run.err);
    for expected in [
        "\"my notes\" greet name=… [tone=…]  Greet someone, A greeting.\n",
        "Greet red fox.\n",
        "error: A value for name is missing.\n",
        "error: empty cannot be used as text: it is empty.\n",
        "\"my notes\" note://fox  The fox, text/plain, 6 bytes\n",
        "\"my notes\" note://{animal}/{+path} animal=… path=…  note\n",
        "error: picture cannot be used as text: it is neither text nor",
        "the next message has the text of this resource\n",
        "error: The server elsewhere is not running.",
    ] {
        assert!(run.err.contains(expected), "{expected}: {}", run.err);
    }
    assert_eq!(run.err.matches("first token after").count(), 3, "two replies and /stats: {}", run.err);
    let alone = finished(program(&["chat", "--max-tokens", "4"]), "/prompt\n/resource a b\n");
    assert_eq!(alone.err.matches("start the chat with --mcp FILE").count(), 2, "{}", alone.err);
}

#[test]
fn a_server_that_fails_costs_a_sentence_and_a_file_that_is_none_ends_the_command() {
    let folder = Folder::new();
    let servers = json!({ "mcpServers": {
        "bad": { "command": foretoken_tests::mcp_server(), "args": ["ended"] }, "empty": {} } });
    let file = folder.write("mcp.json", servers);
    let run = finished(program(&["chat", "--mcp", &file, "--max-tokens", "4"]), "Hello");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.err.contains("bad: The server ended. Its last line: this server has no licence"),
        "{}",
        run.err
    );
    assert!(run.err.contains("empty: mcp.json cannot be read: expected a \"command\""), "{}", run.err);
    for (path, expected) in
        [(folder.write("no.json", "[]"), "expected a JSON object"), ("gone".into(), "gone")]
    {
        let run = finished(program(&["chat", "--mcp", &path]), "Hello");
        assert!(run.code == 1 && run.err.contains(expected), "{}", run.err);
    }
}
