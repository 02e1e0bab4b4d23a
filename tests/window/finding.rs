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
        for (model, role) in [(pair.target, "target"), (pair.draft, "draft")] {
            let place = root.join(model.repository).join(model.file.unwrap());
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
    let model = window.attribute("[data-kind='best']", "data-pair").await.unwrap();
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
