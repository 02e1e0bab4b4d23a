//! Contexts of conversations in the real window: after a restart the first of two conversations is
//! ready, and its next reply runs only what is new.
#![cfg(target_os = "linux")]

use std::path::Path;

use foretoken_engine::trace::Summary;
use foretoken_model::KvDtype;
use foretoken_store::Store;
use foretoken_tests::window::Window;
use serde_json::json;

use super::e2e::always_drafting;

/// Number of texts in the folder of contexts.
pub fn texts(data: &Path) -> usize {
    let entries = |path: &Path| path.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path());
    let models: Vec<_> = entries(&data.join("contexts")).collect();
    let texts = models.iter().flat_map(|model| entries(&model.join("t")));
    texts.filter(|text| text.extension().is_none()).count()
}

#[tokio::test]
async fn a_conversation_is_ready_after_a_restart_and_its_next_reply_reads_only_the_question() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let window = Window::open(&data).await;
    window.configure(json!({ "max_tokens": 24 })).await;
    for (number, animal) in ["fox", "owl"].into_iter().enumerate() {
        window.click("new-chat").await;
        window.ask(&format!("Tell me a story about a {animal} who finds a lantern. ").repeat(24)).await;
        window.wait_for_reply(1).await;
        window.wait("its context is written", async || texts(&data) == number + 1).await;
    }
    window.close().await;

    let window = Window::open(&data).await;
    let items = window.all("[data-testid='conversation-item']").await;
    assert_eq!(items.len(), 2);
    // The newest is above.
    items[1].click().await.unwrap();
    window.wait("the gauge says ready", async || window.text("context-reading").await == "ready").await;
    window.photograph("context-gauge").await;
    window.ask("And then?").await;
    window.wait_for_reply(2).await;
    window.unfold("memory").await;
    window
        .wait("the inspector names the disk", async || {
            window.text("reply-prompt").await.contains("loaded from the disk")
        })
        .await;
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let conversations = store.conversations().unwrap();
    let [.., asked, reply] = &store.messages(conversations[0].id).unwrap()[..] else { panic!() };
    assert_eq!(asked.text, "And then?");
    let summary: Summary = serde_json::from_str(reply.summary.as_ref().unwrap()).unwrap();
    let run = summary.prompt_tokens - summary.reused_tokens;
    assert!(run < 64 && summary.restored_tokens > 256, "{run} of {} tokens were run", summary.prompt_tokens);
}

#[tokio::test]
async fn an_8_bit_kv_cache_is_switched_on_with_the_memory_it_saves() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let window = Window::open(&data).await;
    window.configure(json!({ "max_tokens": 24 })).await;
    window.click("settings-open").await;
    window.click("settings-tab-device").await;
    window.click("settings-int8_kv_cache").await;
    window
        .wait("the row names the memory", async || window.text("int8-saving").await.starts_with("Saves "))
        .await;
    window.photograph("context-settings").await;
    window.click("settings-close").await;
    window.ask("Tell me a story about a fox.").await;
    window.wait_for_reply(1).await;
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let conversations = store.conversations().unwrap();
    let [_, reply] = &store.messages(conversations[0].id).unwrap()[..] else { panic!() };
    let summary: Summary = serde_json::from_str(reply.summary.as_ref().unwrap()).unwrap();
    assert_eq!(summary.kv_dtype, KvDtype::Int8);
}
