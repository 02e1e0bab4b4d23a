//! Server of the Model Context Protocol for tests: some of its tools behave, the others do not. The
//! argument `silent` makes it never answer, `noisy` write no JSON, `ended` end at once; `hangs`,
//! `floods`, `endless`, `many` and `odd` are for its list of prompts. A second argument is the only
//! tool that it lists.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a program for tests")]
#![allow(clippy::zombie_processes, reason = "a test sees whether its process ends with the server")]

use std::io::{Write, stdin, stdout};
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    if mode == "ended" {
        eprintln!("this server has no licence");
        std::process::exit(3);
    }
    let only = std::env::args().nth(2);
    let mut changed = false;
    let mut lines = stdin().lines().map(Result::unwrap);
    while let Some(line) = lines.next() {
        let request: Value = serde_json::from_str(&line).unwrap();
        match mode.as_str() {
            "silent" => continue,
            "noisy" => (0..200).for_each(|_| println!("Welcome to this server!")),
            _ => {}
        }
        if request["id"].is_null() || request.get("method").is_none() {
            continue;
        }
        let id = request["id"].clone();
        let result = match request["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": { "tools": { "listChanged": true }, "prompts": { "listChanged": true },
                    "resources": { "listChanged": true } },
                "serverInfo": { "name": "test", "version": "1" },
            }),
            "tools/list" => json!({ "tools": tools(changed, only.as_deref()) }),
            "tools/call" => call(&request["params"], &mut changed, &mut lines),
            "prompts/list" => match prompts(&mode, changed) {
                Some(list) => list,
                None => continue,
            },
            "resources/list" => resources(changed),
            "resources/templates/list" => {
                let readable = json!({ "uriTemplate": "note://{animal}/{+path}", "name": "note" });
                json!({ "resourceTemplates": [readable, { "uriTemplate": "x{?y}", "name": "other" }] })
            }
            "prompts/get" => match prompt(&request["params"], &mut changed) {
                Some(result) => result,
                None => continue,
            },
            "resources/read" => match resource(request["params"]["uri"].as_str().unwrap()) {
                Some(result) => result,
                None => continue,
            },
            _ => {
                send(
                    &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "unknown" } }),
                );
                continue;
            }
        };
        send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }
    if mode == "stays" {
        std::thread::sleep(Duration::from_secs(600));
    }
}

fn tools(changed: bool, only: Option<&str>) -> Vec<Value> {
    let tool = |name: &str, properties: Value| {
        let required: Vec<_> = properties.as_object().unwrap().keys().collect();
        let about = if changed { format!("{name}, now with cookies") } else { format!("{name}.") };
        let schema = json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false });
        json!({ "name": name, "description": about, "inputSchema": schema })
    };
    let number = json!({ "type": "integer" });
    let text = json!({ "text": { "type": "string" } });
    let mut tools = vec![tool("add", json!({ "a": number, "b": number })), tool("echo", text)];
    for name in ["progress", "hang", "die", "huge", "binary", "big", "fail", "ask", "change", "env", "stay"] {
        tools.push(tool(name, json!({})));
    }
    tools.retain(|tool| only.is_none_or(|only| tool["name"] == only));
    tools
}

fn call(params: &Value, changed: &mut bool, lines: &mut dyn Iterator<Item = String>) -> Value {
    let arguments = &params["arguments"];
    let text = match params["name"].as_str().unwrap() {
        "add" => (arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap()).to_string(),
        "echo" => arguments["text"].as_str().unwrap().to_owned(),
        "progress" => {
            for done in 1..=4 {
                notify(
                    "progress",
                    &json!({ "progressToken": params["_meta"]["progressToken"],
                    "progress": done, "total": 4, "message": "step" }),
                );
                std::thread::sleep(Duration::from_millis(150));
            }
            "done".to_owned()
        }
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(600));
        },
        "die" => {
            eprintln!("out of cheese");
            std::process::exit(1);
        }
        "huge" => flood(),
        "binary" => {
            let bytes: Vec<u8> = (0..=255).cycle().take(20_000).collect();
            stdout().write_all(&bytes).unwrap();
            stdout().write_all(b"\n").unwrap();
            "after".to_owned()
        }
        "big" => "x".repeat(300_000),
        "fail" => {
            return json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true });
        }
        "ask" => {
            for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
                let params = json!({ "messages": [], "maxTokens": 5, "message": "Your password?",
                    "requestedSchema": { "type": "object", "properties": {} } });
                send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
            }
            lines.take(3).collect::<Vec<_>>().join("\n")
        }
        "change" => {
            *changed = true;
            notify("tools/list_changed", &json!({}));
            "changed".to_owned()
        }
        "env" => {
            let names = std::env::vars().map(|(name, _)| name);
            names.collect::<Vec<_>>().join(" ")
        }
        "stay" => {
            let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
            format!("{} {}", std::process::id(), child.id())
        }
        other => format!("unknown tool {other}"),
    };
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// The list of prompts; `None` for no answer.
fn prompts(mode: &str, changed: bool) -> Option<Value> {
    let argument = |name: &str, required: bool| json!({ "name": name, "title": "Who", "required": required });
    let mut names = vec!["mixed", "hang", "huge", "big", "empty", "binary", "news"];
    names.extend(changed.then_some("new"));
    let mut list: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    match mode {
        "hangs" => return None,
        "floods" => flood(),
        "endless" => return Some(json!({ "prompts": list, "nextCursor": "again" })),
        "many" => list.extend((0..100_000).map(|number| json!({ "name": number.to_string() }))),
        "odd" => return Some(json!({ "prompts": 3 })),
        _ => {}
    }
    list.insert(
        0,
        json!({ "name": "greet", "title": "Greet\u{7} someone", "description": "A greeting.",
            "arguments": [argument("name", true), argument("tone", false)] }),
    );
    Some(json!({ "prompts": list }))
}

/// Messages of a prompt; `None` for no answer.
fn prompt(params: &Value, changed: &mut bool) -> Option<Value> {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let messages = match params["name"].as_str().unwrap() {
        "greet" => {
            let (name, tone) = (&params["arguments"]["name"], &params["arguments"]["tone"]);
            let tone = tone.as_str().map_or(String::new(), |tone| format!(" Be {tone}."));
            vec![user(text(&format!("Greet {}.{tone}", name.as_str().unwrap())))]
        }
        "mixed" => vec![
            user(text("Look:")),
            user(json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" })),
            user(json!({ "type": "resource", "resource": { "uri": "note://fox", "text": "A fox." } })),
            json!({ "role": "assistant", "content": text("I see.") }),
        ],
        "hang" => return None,
        "huge" => flood(),
        "binary" => {
            let bytes: Vec<u8> = (0..=255).cycle().take(20_000).collect();
            stdout().write_all(&bytes).unwrap();
            stdout().write_all(b"\n").unwrap();
            vec![user(text("\u{1b}[31mafter"))]
        }
        "big" => vec![user(text(&"x".repeat(300_000)))],
        "news" => {
            *changed = true;
            notify("prompts/list_changed", &json!({}));
            vec![user(text("changed"))]
        }
        _ => Vec::new(),
    };
    Some(json!({ "messages": messages }))
}

fn resources(changed: bool) -> Value {
    let resource = |name: &str| json!({ "uri": format!("note://{name}"), "name": name });
    let mut list = vec![
        json!({ "uri": "note://fox", "name": "fox.txt", "title": "The fox", "mimeType": "text/plain", "size": 6 }),
    ];
    list.extend(["blob", "picture", "damaged", "several", "hang", "huge"].map(resource));
    list.extend(changed.then(|| resource("new")));
    json!({ "resources": list })
}

/// Contents of a resource; `None` for no answer.
fn resource(uri: &str) -> Option<Value> {
    let text = |text: &str| json!({ "uri": uri, "text": text });
    let blob = |blob: &str| json!({ "uri": uri, "blob": blob });
    let contents = match uri {
        "note://fox" => vec![text("A \u{1b}[31mfox.")],
        "note://blob" => vec![blob("QSBmb3gu")],
        "note://picture" => vec![blob("iVBORw0KGgoAAAAA")],
        "note://damaged" => vec![blob("!")],
        "note://several" => vec![text("A fox."), blob("iVBORw0KGgoAAAAA")],
        "note://hang" => return None,
        "note://huge" => flood(),
        other => vec![text(other)],
    };
    Some(json!({ "contents": contents }))
}

/// Writes a message without end.
fn flood() -> ! {
    loop {
        if stdout().write_all(&[b'{'; 65536]).is_err() {
            std::process::exit(0);
        }
    }
}

fn notify(method: &str, params: &Value) {
    send(&json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params }));
}

fn send(message: &Value) {
    let mut out = stdout().lock();
    writeln!(out, "{message}").unwrap();
    out.flush().unwrap();
}
