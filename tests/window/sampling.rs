//! Stop words, penalties and word bias in the real window: they change a reply, are recorded with
//! it, and its check uses them.
#![cfg(target_os = "linux")]

use foretoken_tests::window::Window;
use serde_json::json;

use crate::e2e::always_drafting;

const QUESTION: &str = "Tell me a story about a fox who finds a lantern.";

async fn fill(window: &Window, testid: &str, text: &str) {
    let script = "const field = document.querySelector(`[data-testid='${arguments[0]}']`);
        field.value = arguments[1];
        field.dispatchEvent(new Event('input', { bubbles: true }));
        field.dispatchEvent(new Event('change', { bubbles: true }));";
    window.page.execute(script, vec![json!(testid), json!(text)]).await.unwrap();
}

#[tokio::test]
async fn a_stop_word_ends_a_reply_and_a_bias_keeps_a_word_away_and_both_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let window = Window::open(&data).await;
    // The radio button is under its label.
    let script = "document.querySelector('[data-testid=reply-view-text]').click()";
    window.page.execute(script, vec![]).await.unwrap();
    let plain = reply(&window).await;
    assert!(plain.contains(" the "), "{plain}");
    let words: Vec<&str> = plain.split_whitespace().take(12).collect();
    let stop = words[8..10].join(" ");

    open_sampling(&window).await;
    fill(&window, "settings-stop", &stop).await;
    window.photograph("stop-words").await;
    window.click("settings-close").await;
    let stopped = reply(&window).await;
    assert!(stopped.len() < plain.len() && !stopped.contains(&stop), "{stop} is in {stopped}");

    open_sampling(&window).await;
    fill(&window, "settings-stop", "").await;
    fill(&window, "bias-word", "the").await;
    window.click("bias-add").await;
    fill(&window, "bias-value", "-100").await;
    assert!(!window.text("bias").await.contains("several"), "it is one token of the starter");
    let script = "document.querySelector('[data-setting=word_bias]').scrollIntoView({ block: 'center' })";
    window.page.execute(script, vec![]).await.unwrap();
    window.photograph("word-bias").await;
    window.click("settings-close").await;
    let biased = reply(&window).await;
    assert!(!biased.contains(" the "), "{biased}");
    window.click("reply-more").await;
    window.click("check-reply").await;
    window.find("check-result").await;
    let verdict = window.attribute("[data-testid='check-result']", "data-verdict").await;
    assert_eq!(verdict.as_deref(), Some("identical"));
    window.close().await;
}

/// Opens the settings of all conversations: a new one has none of its own.
async fn open_sampling(window: &Window) {
    window.click("new-chat").await;
    window.click("settings-open").await;
    window.click("settings-tab-sampling").await;
}

/// Asks in a new conversation, and returns the reply.
async fn reply(window: &Window) -> String {
    window.click("new-chat").await;
    window.ask(QUESTION).await;
    window.wait_for_reply(1).await;
    window.text("reply-text").await
}
