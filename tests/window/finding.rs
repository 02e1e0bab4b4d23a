//! Finding a larger model on the welcome page of the real window.
#![cfg(target_os = "linux")]

use std::path::Path;

use foretoken_library::pairs;
use foretoken_tests::hub::{Faults, Hub};
use foretoken_tests::window::Window;
use serde_json::json;

use crate::e2e::always_drafting;

/// Hub with every pair that may be recommended, each a copy of the starter: the computer decides
/// which one is recommended.
fn hub_of_pairs(root: &Path) -> Hub {
    let starter = foretoken_tests::repository().join("starter");
    for pair in pairs() {
        let draft = pair.draft.map(|draft| (draft, "draft"));
        for (model, role) in [(pair.target, "target")].into_iter().chain(draft) {
            // Heads are folders; the test of a download takes a pair of files.
            let Some(file) = model.file else { continue };
            let place = root.join(model.repository).join(file);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::copy(starter.join(format!("starter-{role}-Q8_0.gguf")), place).unwrap();
        }
    }
    Hub::start(root)
}

/// Download state of the pair.
async fn way(window: &Window, pair: &str) -> String {
    window.attribute(pair, "data-state").await.unwrap_or_default()
}

async fn chosen(window: &Window, picker: &str) -> String {
    window.attribute(&format!("[data-testid='{picker}']"), "data-value").await.unwrap_or_default()
}

#[tokio::test]
async fn one_click_on_the_welcome_page_fetches_a_pair_while_the_chat_goes_on_and_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
    std::fs::create_dir_all(&data).unwrap();
    always_drafting(&data);
    let hub = hub_of_pairs(&folder.path().join("hub"));
    // So slow that nothing is downloaded before the first reply.
    hub.set(Faults { bytes_per_second: Some(100_000), ..Faults::default() });
    let variables = [("HF_ENDPOINT", hub.url.as_str()), ("HF_HUB_CACHE", cache.to_str().unwrap())];
    let window = Window::open_with(&data, &variables).await;

    window.find("pairs").await;
    window.photograph("pairs").await;
    let model = window.attribute("[data-kind='code']", "data-pair").await.unwrap();
    let pair = format!("[data-pair='{model}']");
    assert_eq!(way(&window, &pair).await, "missing");
    window.click_in(&pair, "pair-get").await;
    window
        .wait("both are on their way", async || way(&window, &pair).await == "coming" && hub.sent() > 100_000)
        .await;
    window.photograph("pair-coming").await;

    // The chat continues with the installed model.
    window.ask("Tell me a story about a fox who finds a lantern.").await;
    window.wait_for_reply(1).await;
    assert_eq!(chosen(&window, "target-picker").await, "starter");
    window.click("new-chat").await;
    assert_eq!(way(&window, &pair).await, "coming", "it was here before the reply");
    window.click_in(&pair, "pair-pause").await;
    window.wait("both are paused", async || way(&window, &pair).await == "paused").await;
    window.close().await;

    // After a restart the download resumes, and the model is not used before the user chooses it.
    let window = Window::open_with(&data, &variables).await;
    window.click("new-chat").await;
    window.wait("the pair is remembered", async || way(&window, &pair).await == "paused").await;
    window.photograph("pair-paused").await;
    hub.set(Faults::default());
    window.click_in(&pair, "pair-resume").await;
    window.wait("both are here", async || way(&window, &pair).await == "here").await;
    assert_eq!(chosen(&window, "target-picker").await, "starter");
    window.configure(json!({ "appearance": { "theme": "light" } })).await;
    window.click("new-chat").await;
    window.wait("the pair is offered", async || way(&window, &pair).await == "here").await;
    window.photograph("pair-here").await;
    window.click_in(&pair, "pair-use").await;
    let file = model.rsplit([':', '/']).next().unwrap().to_owned();
    window.wait("the pair is loaded", async || chosen(&window, "target-picker").await.ends_with(&file)).await;
    window
        .wait("the draft is loaded", async || chosen(&window, "draft-picker").await.ends_with(".gguf"))
        .await;
    window.ask("Count from one to twelve.").await;
    window.wait_for_reply(1).await;
    assert!(window.outcomes().await.iter().any(|outcome| outcome == "accepted"), "nothing was drafted");

    // The Library shows the measured result.
    window.click("library-open").await;
    window
        .wait("the speed is shown", async || window.text("library-panel").await.contains("tokens/s here"))
        .await;
    window.photograph("library-light").await;
    window.click("library-tab-get").await;
    window.find("filter-fits").await;
    window.photograph("library-get-light").await;
    window.close().await;
}

#[tokio::test]
async fn a_search_shows_what_fits_and_which_draft_heads_exist_and_a_mirror_can_be_set() {
    let folder = tempfile::tempdir().unwrap();
    let (data, cache, root) =
        (folder.path().join("data"), folder.path().join("cache"), folder.path().join("hub"));
    let starter = foretoken_tests::repository().join("starter/starter-target-Q8_0.gguf");
    for name in [
        "maker/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf",
        "maker/Qwen3-8B-GGUF/Qwen3-8B-Q8_0.gguf",
        "other/Odd-Qwen3-8B-GGUF/odd-Q8_0.gguf",
    ] {
        std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        std::fs::copy(&starter, root.join(name)).unwrap();
    }
    let head = root.join("AngelSlim/Qwen3-8B_eagle3");
    std::fs::create_dir_all(&head).unwrap();
    std::fs::write(head.join("config.json"), "{}").unwrap();
    std::fs::write(head.join("model.safetensors"), "weights").unwrap();
    let hub = Hub::start(&root);
    hub.describe("maker/Qwen3-8B-GGUF", json!({ "total": 8_190_000_000_u64, "architecture": "qwen3" }));
    hub.describe("other/Odd-Qwen3-8B-GGUF", json!({ "total": 8_000_000_000_u64, "architecture": "oddlm" }));
    // The address is that of the settings, not that of the environment.
    let variables = [("HF_ENDPOINT", "http://127.0.0.1:9"), ("HF_HUB_CACHE", cache.to_str().unwrap())];
    let window = Window::open_with(&data, &variables).await;
    window.configure(json!({ "appearance": { "theme": "dark" } })).await;
    window.click("library-open").await;
    window.click("library-tab-token").await;
    window.type_into("hub-address", &hub.url).await;
    window.photograph("library-hub-dark").await;
    window.click("library-tab-get").await;
    window.type_into("repository-name", "qwen3-8b").await;
    window.click("repository-find").await;
    window.wait("the hub answers", async || window.all("[data-testid='hub-hit']").await.len() == 3).await;
    let found = window.text("hub").await;
    for fact in ["8.2B parameters", "2 quantisations", "as Q4_K_M", "Draft heads: EAGLE-3, DFlash", "oddlm"] {
        assert!(found.contains(fact), "{fact}: {found}");
    }
    window.photograph("library-search-dark").await;
    window.click_in("[data-testid='hub-hit']:last-child", "hub-open").await;
    window.find("repository-found").await;
    window.photograph("library-heads-dark").await;
    window.click_in("[data-testid='hub-head']", "hub-open").await;
    window
        .wait("the head is opened", async || {
            window.text("repository-found").await.contains("Qwen3-8B_eagle3")
        })
        .await;
    window.click_in("[data-testid='repository-found']", "offer-get").await;
    window.click("library-tab-downloads").await;
    window.wait("the head is downloaded", async || window.download().await == "done").await;
    window.close().await;
}

#[tokio::test]
async fn nothing_on_the_welcome_page_moves_when_recommendations_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
    let hub = hub_of_pairs(&folder.path().join("hub"));
    let variables = [("HF_ENDPOINT", hub.url.as_str()), ("HF_HUB_CACHE", cache.to_str().unwrap())];
    let window = Window::open_with(&data, &variables).await;
    let places = "return [...document.querySelectorAll('h1, [data-testid=example-prompt]')]
        .map((element) => element.getBoundingClientRect().top);";
    let mut seen = Vec::new();
    window
        .wait("the pairs are there", async || {
            let arrived = !window.all("[data-testid='pairs']").await.is_empty();
            seen.push(window.page.execute(places, vec![]).await.unwrap());
            arrived
        })
        .await;
    window.click_in("[data-kind='best']", "pair-get").await;
    seen.push(window.page.execute(places, vec![]).await.unwrap());
    assert!(seen.len() > 2, "the pairs were there at once");
    assert!(seen[0].as_array().is_some_and(|tops| tops.len() > 3), "{:?}", seen[0]);
    assert!(seen.iter().all(|places| *places == seen[0]), "{seen:?}");
    window.close().await;
}

#[tokio::test]
async fn without_a_network_the_welcome_page_says_so_in_a_sentence_and_the_chat_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let cache = folder.path().join("cache");
    let nobody = "http://127.0.0.1:9";
    let variables = [("HF_ENDPOINT", nobody), ("HF_HUB_CACHE", cache.to_str().unwrap())];
    let window = Window::open_with(&data, &variables).await;
    window.click_in("[data-kind='best']", "pair-get").await;
    window.wait("a sentence says so", async || window.text("pairs").await.contains("keep chatting")).await;
    window.photograph("pairs-offline").await;
    window.ask("Count from one to three.").await;
    window.wait_for_reply(1).await;
    window.close().await;
}
