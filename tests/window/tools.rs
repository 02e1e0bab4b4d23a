//! Tools in the real window: a server from a package registry is added and switched on, a call
//! waits for the person, runs, and the reply goes on with its result.
#![cfg(target_os = "linux")]

use foretoken_tests::window::Window;
use serde_json::json;

use super::e2e::always_drafting;

/// The only tool that the model keeps, which has no arguments: the starter model calls it by the
/// grammar alone.
const TOOL: &str = "list_allowed_directories";

/// Adds the reference server for files, and waits until it is ready.
async fn add_server(window: &Window, folder: &str) {
    let arguments = json!(["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", folder]);
    let servers = json!({ "mcpServers": { "files": { "command": "npx", "args": arguments } } });
    window.click("settings-open").await;
    window.click("settings-tab-tools").await;
    window.type_into("tools-paste", &servers.to_string()).await;
    window.click("tools-add").await;
    let state = async || window.attribute("[data-testid='tool-server']", "data-state").await;
    window.wait("the server is listed", async || state().await.as_deref() == Some("off")).await;
    assert!(window.body().await.contains("server-filesystem@2026.8.31"), "its command is shown");
    window.photograph("tools-added").await;
    window.click("tool-server-switch").await;
    window.wait("the server is ready", async || state().await.as_deref() == Some("ready")).await;
}

/// Takes all other tools away from the model.
async fn keep_one_tool(window: &Window) {
    let listed = async || window.all("[data-testid='tool-rule']").await.len();
    window.wait("its tools are listed", async || listed().await > 5).await;
    let script = "for (const tool of document.querySelectorAll('[data-testid=offered-tool]')) {
        if (tool.textContent.includes(arguments[0])) continue;
        const rule = tool.querySelector('select');
        rule.value = 'never';
        rule.dispatchEvent(new Event('change', { bubbles: true }));
    }";
    window.page.execute(script, vec![json!(TOOL)]).await.unwrap();
    let kept = "return [...document.querySelectorAll('[data-testid=tool-rule]')]
        .filter((rule) => rule.value === 'ask').length";
    window
        .wait("one tool is left", async || window.page.execute(kept, vec![]).await.unwrap() == json!(1))
        .await;
    window.photograph("tools-settings").await;
    window.click("settings-close").await;
}

async fn state(window: &Window) -> String {
    window.attribute("[data-testid='call']", "data-state").await.unwrap_or_default()
}

#[tokio::test]
async fn a_server_is_switched_on_and_a_call_waits_runs_and_the_reply_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (data, shared) = (folder.path().join("data"), folder.path().join("shared"));
    std::fs::create_dir_all(&shared).unwrap();
    always_drafting(&data);
    let window = Window::open(&data).await;
    assert!(window.all("[data-testid='tool-picker']").await.is_empty(), "no tools, no picker");
    add_server(&window, shared.to_str().unwrap()).await;
    keep_one_tool(&window).await;
    window.click("tool-picker").await;
    window.click("tool-mode-first").await;
    window.ask("Which folders can you read?").await;
    window.wait("the call waits", async || state(&window).await == "asked").await;
    let card = window.text("call").await;
    assert!(card.contains(TOOL) && card.contains("files"), "{card}");
    window.photograph("call-asks").await;
    window.click("call-conversation").await;
    window.wait("the call is done", async || state(&window).await == "done").await;
    window.wait_for_reply(2).await;
    let result = window.text("call-result").await;
    assert!(result.contains(shared.to_str().unwrap()), "{result}");
    window.click("call-result").await;
    window.photograph("call-done").await;
    // The next call of the tool in this conversation runs at once.
    window.ask("And now?").await;
    window
        .wait("the second call is done", async || {
            window.all("[data-testid='call'][data-state='done']").await.len() == 2
        })
        .await;
    window.wait_for_reply(4).await;
    window.open_page("").await;
    window.click("conversation-item").await;
    window
        .wait("calls are there after a reload of the page", async || {
            window.all("[data-testid='call'][data-state='done']").await.len() == 2
        })
        .await;
    window.close().await;
}

/// Runs where AGENT_MODEL names a model's file, as for the agents of `make test-clients`:
/// Qwen2.5-Coder 1.5B passes.
#[tokio::test]
async fn a_real_model_reads_a_file_with_a_server_in_both_themes() {
    let Some(model) = std::env::var_os("AGENT_MODEL") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (data, shared) = (folder.path().join("data"), folder.path().join("shared"));
    std::fs::create_dir_all(&shared).unwrap();
    std::fs::write(shared.join("note.txt"), "The word is marzipan.\n").unwrap();
    let window = Window::open(&data).await;
    let target = json!(model.to_str().unwrap());
    window.configure(json!({ "target": target, "added_models": [target], "max_tokens": 200 })).await;
    add_server(&window, shared.to_str().unwrap()).await;
    window.click("settings-close").await;
    let note = shared.join("note.txt");
    let question = format!("Read the text file {} and repeat the word that it names.", note.display());
    for theme in ["light", "dark"] {
        window.configure(json!({ "appearance": { "theme": theme } })).await;
        window.click("tool-picker").await;
        window.click("tool-mode-first").await;
        window.ask(&question).await;
        window.wait("the call waits", async || state(&window).await == "asked").await;
        window.save_picture(&format!("real-call-asks-{theme}")).await;
        window.click("call-once").await;
        window.wait("the call has ended", async || state(&window).await == "done").await;
        window.wait_for_reply(2).await;
        assert!(window.text("call-result").await.contains("marzipan"));
        window.click("call-result").await;
        window.save_picture(&format!("real-call-done-{theme}")).await;
        window.click("new-chat").await;
    }
    window.close().await;
}

#[tokio::test]
async fn a_prompt_of_a_server_goes_into_the_message_and_a_resource_becomes_an_attachment() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let window = Window::open(&data).await;
    let server = json!({ "command": foretoken_tests::mcp_server(), "args": ["", "fail"] });
    let servers = json!({ "mcpServers": { "notes": server } });
    window.click("settings-open").await;
    window.click("settings-tab-tools").await;
    window.type_into("tools-paste", &servers.to_string()).await;
    window.click("tools-add").await;
    let state = async || window.attribute("[data-testid='tool-server']", "data-state").await;
    window.wait("the server is listed", async || state().await.as_deref() == Some("off")).await;
    window.click("tool-server-switch").await;
    window.wait("the server is ready", async || state().await.as_deref() == Some("ready")).await;
    window.click("settings-close").await;

    choose(&window, "Greet").await;
    window.photograph("server-prompt").await;
    window.type_into("argument-field", "the red fox").await;
    window.click("argument-fill").await;
    let message = "return document.querySelector('[data-testid=composer]').value";
    window
        .wait("the prompt is in the message", async || {
            window.page.execute(message, vec![]).await.unwrap() == json!("Greet the red fox.")
        })
        .await;
    choose(&window, "The fox").await;
    let attached = async || window.all("[data-testid='attachment']").await.len();
    window.wait("the resource is attached", async || attached().await == 1).await;
    window.photograph("server-resource").await;
    window.close().await;
}

/// Chooses an entry of the servers.
async fn choose(window: &Window, entry: &str) {
    window.click("contents-open").await;
    window.type_into("contents-field", entry).await;
    window.photograph("server-contents").await;
    window.click("contents-option").await;
}
