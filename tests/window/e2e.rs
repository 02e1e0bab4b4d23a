//! Actions of a user in the real window.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use fantoccini::key::Key;
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::speculation::Speculation;
use foretoken_engine::trace::{Outcome, Round};
use foretoken_model::sampling::Sampling;
use foretoken_store::Store;
use foretoken_tests::animation::Animation;
use foretoken_tests::endless_model;
use foretoken_tests::hub::{Faults, Hub};
use foretoken_tests::window::Window;
use serde_json::json;

/// Settings that make results independent of this computer's current speed.
pub fn always_drafting(data: &Path) {
    let settings = json!({
        "speculation": Speculation::fixed(4),
        "sampling": Sampling::greedy(),
        "max_tokens": 120,
        "appearance": { "theme": "dark" },
    });
    Store::open(&data.join("foretoken.db")).unwrap().save_settings(&settings.to_string()).unwrap();
}

#[tokio::test]
async fn a_person_chats_watches_switches_drafts_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let window = Window::open(&data).await;

    // First launch: an example prompt starts a conversation.
    window.all("[data-testid='example-prompt']").await[0].click().await.unwrap();
    window.wait_for_reply(1).await;
    assert!(window.rounds().await > 5, "the heatmap is empty");
    // Rejected and discarded draft tokens are folded at first.
    window.click("reply-more").await;
    window.click("show-drafts").await;
    let outcomes = window.outcomes().await;
    for outcome in ["accepted", "rejected", "discarded"] {
        assert!(outcomes.iter().any(|found| found == outcome), "no {outcome} token in {outcomes:?}");
    }
    window.unfold("details").await;
    assert!(window.text("stat-acceptance").await.ends_with('%'));
    window.photograph("reply").await;

    // Another draft in mid-conversation, from the settings.
    window.click("settings-open").await;
    window.click("settings-tab-speculation").await;
    window.click("settings-draft").await;
    window.click("draft-option-ngram").await;
    window
        .wait("the pill names the n-gram drafter", async || window.why().await.contains("N-gram drafts"))
        .await;
    window.photograph("settings").await;
    window.click("settings-close").await;
    window.ask("Count from one to twelve.").await;
    window.wait_for_reply(2).await;
    assert_eq!(window.all("[data-testid='message-user']").await.len(), 2);

    window.close().await;
    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let conversations = store.conversations().unwrap();
    assert_eq!(conversations.len(), 1);
    let messages = store.messages(conversations[0].id).unwrap();
    let drafts: Vec<_> = messages.iter().filter_map(|message| message.draft.as_deref()).collect();
    assert!(drafts[0].starts_with("Starter draft") && drafts[1] == "n-gram", "{drafts:?}");
    drop(store);

    // After a restart the conversation is there, with its tokens.
    let window = Window::open(&data).await;
    window.click("conversation-item").await;
    window.wait("both replies are back", async || window.replies().await == 2).await;
    window.wait("the heatmap is drawn from the store", async || window.rounds().await > 0).await;
    window.photograph("restarted").await;
    window.close().await;
}

/// The first minute after installation: no settings, and a real model replies.
#[tokio::test]
async fn a_fresh_start_is_with_smollm2_which_answers_with_drafts_that_are_accepted() {
    if foretoken_tests::without_smollm2() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let window = Window::open_with_smollm2(&data).await;
    let target = window.attribute("[data-testid='target-picker']", "data-value").await;
    assert_eq!(target.as_deref(), Some("smollm2"));
    let draft = window.attribute("[data-testid='draft-picker']", "data-value").await;
    assert_eq!(draft.as_deref(), Some("smollm2-head"));
    let body = window.body().await;
    assert!(body.contains("SmolLM2 135M") && body.contains("small"), "{body}");
    assert!(!body.contains("tiny model"), "{body}");
    window.photograph("first-launch").await;

    // The same words every time, with drafts at any speed of a busy computer.
    let same = json!({
        "sampling": Sampling::greedy(),
        "speculation": Speculation::fixed(3),
        "model_presets": {},
        "max_tokens": 200,
    });
    window.configure(same).await;
    window.ask("Tell me a story about a fox who finds a lantern.").await;
    window.wait_for_reply(1).await;

    let sampling = Sampling { temperature: 0.2, top_p: 0.9, seed: Some(2), ..Sampling::default() };
    window.configure(json!({ "sampling": sampling })).await;
    window.click("new-chat").await;
    window.ask("Write a Python function that checks whether a word is a palindrome.").await;
    window.wait_for_reply(1).await;
    window.photograph("first-answer").await;
    replay_in_stages(&window).await;
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let story = store.conversations().unwrap().last().unwrap().id;
    let messages = store.messages(story).unwrap();
    let reply = messages.last().unwrap();
    assert_eq!(reply.target.as_deref(), Some("SmolLM2 135M Instruct · Q4_1"));
    assert!(reply.text.contains("a fox"), "{}", reply.text);
    let rounds: Vec<Round> =
        store.rounds(reply.id).unwrap().iter().map(|round| serde_json::from_str(round).unwrap()).collect();
    let mut drafted = rounds.iter().flat_map(|round| &round.drafted);
    let of_the_head = drafted.any(|one| one.drafter == DrafterKind::Head && one.outcome == Outcome::Accepted);
    assert!(of_the_head, "no guess of the head was accepted in {}", reply.text);
}

/// Steps through the last rounds of a reply: the tokens of each round as drafted, as judged and in
/// the reply. `make pictures` saves this as an animation.
async fn replay_in_stages(window: &Window) {
    const ROUNDS: usize = 16;
    let is_kept = foretoken_tests::picture::are_kept();
    window.click("reply-more").await;
    window.click("replay-open").await;
    let scrubber = window.find("replay-scrubber").await;
    scrubber.send_keys(&Key::End.to_string()).await.unwrap();
    let rounds = if is_kept { ROUNDS } else { 1 };
    for _ in 0..rounds {
        window.click("replay-previous").await;
    }
    window.click("replay-stages").await;
    let mut animation = Animation::default();
    for round in 1..=rounds {
        for (stage, milliseconds) in [("drafted", 260), ("judged", 340)] {
            window.click("replay-next").await;
            let is_in = async || stage_of(window).await.as_deref() == Some(stage);
            window.wait(&format!("round {round} is {stage}"), is_in).await;
            animation.add(&window.frame().await, milliseconds);
        }
        window.click("replay-next").await;
        window.wait("the round is in the reply", async || stage_of(window).await.is_none()).await;
        animation.add(&window.frame().await, if round == rounds { 3000 } else { 200 });
    }
    if is_kept {
        animation.write(&foretoken_tests::repository().join("docs/images/drafts.png"));
    }
    window.click("replay-close").await;
}

/// Stage of the round that a replay shows; `None` once its tokens are in the reply.
async fn stage_of(window: &Window) -> Option<String> {
    window.attribute("[data-testid='replay-stage']", "data-stage").await
}

#[tokio::test]
async fn a_long_reply_fills_the_heatmap_while_it_streams_and_can_be_stopped_and_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let endless = endless_model(folder.path()).path().display().to_string();
    let window = Window::open(&data).await;
    // Neither a length limit nor loop detection ends it.
    window.configure(json!({ "sampling": Sampling::greedy(), "max_tokens": 0 })).await;

    // A file that is not a model is rejected with a message.
    let broken = folder.path().join("broken.gguf");
    std::fs::write(&broken, b"not a model at all").unwrap();
    window.click("library-open").await;
    window.type_into("model-path", broken.to_str().unwrap()).await;
    window.click("model-add").await;
    window
        .wait("the sentence names the file", async || {
            window.text("model-problem").await.contains("broken.gguf")
        })
        .await;
    window.photograph("no-model").await;
    window.type_into("model-path", &endless).await;
    window.click("model-add").await;
    window.wait("the model is listed", async || window.text("library-panel").await.contains("endless")).await;
    window.click("library-close").await;
    window.click("target-picker").await;
    window.click(&format!("target-option-{endless}")).await;
    // The starter draft has another vocabulary, so n-grams draft instead, and the list shows the
    // reason on demand.
    window.wait("the n-gram drafter drafts", async || window.why().await.contains("N-gram drafts")).await;
    window.click("draft-picker").await;
    assert!(window.text("draft-option-fold").await.contains("incompatible"));
    assert!(window.all("[data-testid='draft-option-starter-draft']").await.is_empty(), "it is folded");
    window.click("draft-option-fold").await;
    assert!(window.text("draft-option-starter-draft").await.contains("other vocabulary"));
    window.click("draft-option-starter-draft").await;
    window
        .wait("the whole reason", async || {
            window.text("draft-option-starter-draft").await.contains("ordinary text")
        })
        .await;
    window.photograph("drafts").await;
    window.click("draft-option-ngram").await;

    window.ask("Go on and on.").await;
    window.wait("the heatmap fills", async || window.rounds().await > 3).await;
    let before = window.rounds().await;
    window
        .wait("it fills further while the reply streams", async || {
            window.rounds().await > before + 3 && window.state().await == "streaming"
        })
        .await;
    window.photograph("streaming").await;
    window.click("stop").await;
    window.wait_for_reply(1).await;
    let stopped = window.rounds().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(window.rounds().await, stopped, "rounds came after the stop");

    // Esc does the same.
    window.ask("And on.").await;
    window
        .wait("the second reply streams", async || {
            window.replies().await == 2 && window.state().await == "streaming" && window.rounds().await > 3
        })
        .await;
    window.find("composer").await.send_keys(&Key::Escape.to_string()).await.unwrap();
    window.wait_for_reply(2).await;

    // A killed program loses nothing that was displayed a second ago.
    window.ask("And on again.").await;
    window
        .wait("the third reply streams", async || {
            window.replies().await == 3 && window.state().await == "streaming" && window.rounds().await > 3
        })
        .await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    window.kill();
    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let messages = store.messages(store.conversations().unwrap()[0].id).unwrap();
    let finishes: Vec<_> = messages.iter().map(|message| message.finish.as_deref()).collect();
    assert_eq!(finishes, [None, Some("cancelled"), None, Some("cancelled"), None, None]);
    let cut = messages.last().unwrap();
    assert!(!cut.text.is_empty() && store.rounds(cut.id).unwrap().len() > 3);
}

#[tokio::test]
async fn a_model_is_found_downloaded_paused_resumed_after_a_restart_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
    let original = foretoken_tests::repository().join("starter/starter-target-Q8_0.gguf");
    let offered = folder.path().join("hub/owner/tiny-GGUF/tiny-Q8_0.gguf");
    std::fs::create_dir_all(offered.parent().unwrap()).unwrap();
    std::fs::copy(&original, &offered).unwrap();
    let size = original.metadata().unwrap().len();
    let hub = Hub::start(&folder.path().join("hub"));
    hub.set(Faults { bytes_per_second: Some(1_000_000), ..Faults::default() });
    let variables = [("HF_ENDPOINT", hub.url.as_str()), ("HF_HUB_CACHE", cache.to_str().unwrap())];
    let window = Window::open_with(&data, &variables).await;

    window.click("library-open").await;
    window.click("library-tab-get").await;
    window.type_into("repository-name", "owner/missing").await;
    window.click("repository-find").await;
    window
        .wait("the sentence names the repository", async || {
            window.text("repository-problem").await.contains("owner/missing")
        })
        .await;
    window.photograph("no-repository").await;
    window.type_into("repository-name", "owner/tiny-GGUF").await;
    window.click("repository-find").await;
    window.find("repository-found").await;
    window.photograph("repository").await;
    window.click_in("[data-testid='repository-found']", "offer-get").await;
    window.click("library-tab-downloads").await;
    window
        .wait("the download is under way", async || {
            window.download().await == "running" && hub.sent() > size / 4
        })
        .await;
    window.photograph("downloading").await;
    window.click("download-pause").await;
    window.wait("the download is paused", async || window.download().await == "paused").await;
    window.close().await;

    // After a restart it is paused and resumes at its position.
    let window = Window::open_with(&data, &variables).await;
    window.click("library-open").await;
    window.click("library-tab-downloads").await;
    window.wait("the download is remembered", async || window.download().await == "paused").await;
    hub.set(Faults::default());
    window.click("download-resume").await;
    window.wait("the download is done", async || window.download().await == "done").await;
    assert!(hub.sent() < size + size / 20, "fetched {} of {size} bytes", hub.sent());

    // It is listed as installed, and replies.
    window.click("library-tab-installed").await;
    window
        .wait("the model is listed", async || window.text("library-panel").await.contains("owner/tiny-GGUF"))
        .await;
    window.photograph("downloaded").await;
    window.click_in("[data-model*='tiny-GGUF']", "use-target").await;
    window.click("library-close").await;
    window
        .wait("the model is loaded", async || {
            let target = window.attribute("[data-testid='target-picker']", "data-value").await;
            target.is_some_and(|target| target.contains("tiny-Q8_0.gguf"))
        })
        .await;
    window.ask("Count from one to three.").await;
    window.wait_for_reply(1).await;
    window.close().await;
}

#[tokio::test]
async fn a_conversation_keeps_the_preset_that_was_chosen_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let window = Window::open(&data).await;
    let preset = async || window.attribute("[data-testid='preset-picker']", "data-value").await.unwrap();

    // A preset of the user's own, from the current settings.
    window.click("settings-open").await;
    window.click("settings-tab-presets").await;
    window.click("preset-create").await;
    window
        .wait("the preset is listed", async || window.all("[data-testid='preset-name']").await.len() == 1)
        .await;
    window.photograph("presets").await;
    window.click("settings-close").await;

    // A built-in preset for a conversation, before it starts.
    window.click("preset-picker").await;
    window.photograph("preset-picker").await;
    window.click("preset-option-creative").await;
    window.wait("it is chosen", async || preset().await == "creative").await;
    window.ask("Tell me a story about a fox.").await;
    window.wait_for_reply(1).await;
    assert_eq!(preset().await, "creative");
    window.click("settings-open").await;
    window.click("settings-tab-sampling").await;
    window.photograph("scope").await;
    window.click("settings-close").await;

    // Another conversation follows the settings.
    window.click("new-chat").await;
    window.wait("it is of that conversation alone", async || preset().await.is_empty()).await;
    window.ask("Count from one to twelve.").await;
    window.wait_for_reply(1).await;
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let conversations = store.conversations().unwrap();
    let temperature = |id: i64| {
        let summary = store.messages(id).unwrap().pop().unwrap().summary.unwrap();
        let summary: foretoken_engine::trace::Summary = serde_json::from_str(&summary).unwrap();
        summary.settings.unwrap().sampling.temperature
    };
    assert_eq!([0, 1].map(|at: usize| temperature(conversations[at].id)), [0.0, 1.0]);
    drop(store);

    let window = Window::open(&data).await;
    let of = |title: &str| format!("//*[@data-testid='conversation-item'][contains(., '{title}')]");
    window.page.find(fantoccini::Locator::XPath(&of("fox"))).await.unwrap().click().await.unwrap();
    let preset = async || window.attribute("[data-testid='preset-picker']", "data-value").await.unwrap();
    window.wait("the preset is back", async || preset().await == "creative").await;
    window.close().await;
}

/// A model's file that is double-clicked on the desktop is the program's argument.
#[tokio::test]
async fn a_model_that_is_opened_with_the_application_is_added_to_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("größer than before.gguf");
    std::fs::copy(foretoken_tests::repository().join("starter/starter-draft-Q8_0.gguf"), &model).unwrap();
    let window = Window::open_file(&folder.path().join("data"), &model).await;
    window
        .wait("the library has the model", async || {
            window.text("library-panel").await.contains("größer than before")
        })
        .await;
    window.photograph("opened").await;
    window.close().await;
}
