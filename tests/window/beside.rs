//! Two chats side by side in the real window.
#![cfg(target_os = "linux")]

use foretoken_store::Store;
use foretoken_tests::endless_model;
use foretoken_tests::window::Window;
use serde_json::{Value, json};

/// State of each chat: its title, the text in its composer, and whether it has the focus.
async fn chats(window: &Window) -> Value {
    let script = "return [...document.querySelectorAll(\"[data-testid='chat']\")].map((chat) => [
        chat.querySelector(\"[data-testid='chat-head'] .title\")?.textContent ?? null,
        chat.querySelector(\"[data-testid='composer']\").value,
        chat.dataset.focused === 'true',
    ])";
    window.page.execute(script, vec![]).await.unwrap()
}

/// Acts on the element of this name in a chat, by its place.
async fn in_chat(window: &Window, chat: usize, name: &str, act: &str) -> Value {
    let script = format!(
        "const chat = document.querySelectorAll(\"[data-testid='chat']\")[arguments[0]];
         const found = chat.querySelector(`[data-testid='${{arguments[1]}}']`);
         return {act} ?? null;"
    );
    window.page.execute(&script, vec![json!(chat), json!(name)]).await.unwrap()
}

/// Types through the driver into the composer of a chat.
async fn type_in(window: &Window, chat: usize, text: &str) {
    let composers = window.all("[data-testid='chat'] [data-testid='composer']").await;
    composers[chat].send_keys(text).await.unwrap();
}

async fn open_beside(window: &Window, conversation: i64) {
    let script = "document.querySelector(`[data-conversation='${arguments[0]}']`).dispatchEvent(
        new MouseEvent('contextmenu', { bubbles: true, cancelable: true, clientX: 90, clientY: 200, button: 2 }))";
    window.page.execute(script, vec![json!(conversation)]).await.unwrap();
    window.click("menu-open-beside").await;
}

#[tokio::test]
async fn a_reply_is_written_in_one_chat_while_text_is_typed_in_the_other_and_both_open_again() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let endless = endless_model(folder.path()).path().display().to_string();
    let settings = json!({ "target": endless, "added_models": [endless], "max_tokens": 0 });
    let mut store = Store::open(&data.join("foretoken.db")).unwrap();
    store.save_settings(&settings.to_string()).unwrap();
    for title in ["About owls", "About foxes"] {
        store.ask(None, title, "starter", None).unwrap();
    }
    drop(store);
    let window = Window::open(&data).await;
    window.page.execute("document.querySelector(\"[data-conversation='1']\").click()", vec![]).await.unwrap();
    window.wait("it is open", async || window.body().await.contains("About owls")).await;
    open_beside(&window, 2).await;
    let both = json!([["About owls", "", false], ["About foxes", "", true]]);
    window.wait("both are open", async || chats(&window).await == both).await;

    // A reply in the second chat, while text is typed in the first.
    type_in(&window, 1, "Go on and on.").await;
    window.press("Return");
    window.wait("rounds come", async || window.rounds().await > 3).await;
    let before = window.rounds().await;
    type_in(&window, 0, "and their eyes?").await;
    window.photograph("beside-replying").await;
    let focused = json!([["About owls", "and their eyes?", true], ["About foxes", "", false]]);
    assert_eq!(chats(&window).await, focused);
    // The inspector follows the focus.
    window.wait("the inspector is empty", async || window.rounds().await == 0).await;
    window.press("Return");
    assert_eq!(chats(&window).await, focused, "one reply at a time");
    let says = "chat.textContent.includes('Replying in another conversation')";
    assert_eq!(in_chat(&window, 0, "composer", says).await, json!(true));
    window.press("F6");
    window.wait("it went on meanwhile", async || window.rounds().await > before + 3).await;
    window.click("stop").await;
    window.wait("it ended", async || window.all("[data-testid='stop']").await.is_empty()).await;
    let foxes =
        in_chat(&window, 1, "chat-head", "chat.querySelectorAll(\"[data-testid='message-user']\").length")
            .await;
    let owls =
        in_chat(&window, 0, "chat-head", "chat.querySelectorAll(\"[data-testid='message-user']\").length")
            .await;
    assert_eq!((owls, foxes), (json!(1), json!(2)), "the reply is in its own chat");

    // The divider, with the keys.
    let width = async || in_chat(&window, 0, "chat-head", "chat.clientWidth").await.as_f64().unwrap();
    let half = width().await;
    let focus = "document.querySelector(\"[data-testid='chat-divider']\").focus()";
    window.page.execute(focus, vec![]).await.unwrap();
    window.press("Right");
    window.wait("it is wider", async || width().await > half + 10.0).await;
    let wider = width().await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    window.close().await;

    let window = Window::open(&data).await;
    window.wait("both are open again", async || chats(&window).await == focused).await;
    window
        .wait("the first has the focus", async || {
            in_chat(&window, 0, "composer", "document.activeElement === found").await == json!(true)
        })
        .await;
    let width = in_chat(&window, 0, "chat-head", "chat.clientWidth").await.as_f64().unwrap();
    assert!((width - wider).abs() < 2.0, "{width}, {wider}");
    window.photograph("beside-light").await;
    window.configure(json!({ "appearance": { "theme": "dark", "language": "de" } })).await;
    window.wait("both are open again", async || chats(&window).await == focused).await;
    window.photograph("beside-dark").await;

    // In a narrow window they are tabs.
    window.page.set_window_size(820, 640).await.unwrap();
    window.wait("there are tabs", async || window.all("[data-testid='chat-tab']").await.len() == 2).await;
    window.photograph("beside-tabs").await;
    window.press("ctrl+w");
    window.wait("one is left", async || window.all("[data-testid='chat']").await.len() == 1).await;
    window.close().await;
}
