//! Device selection in the real window: the CPU, and a GPU or Mesa's software renderer.
#![cfg(target_os = "linux")]

use std::path::Path;

use foretoken_engine::speculation::Speculation;
use foretoken_model::sampling::Sampling;
use foretoken_store::Store;
use foretoken_tests::window::Window;
use foretoken_tests::{is_nightly, repository, without_smollm2};
use serde_json::json;

use crate::e2e::always_drafting;

#[tokio::test]
async fn a_device_is_chosen_in_the_settings_and_the_chip_says_what_computes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let window = Window::open(&data).await;
    // The chip opens the device settings, which search for devices.
    window.click("device").await;
    window.click("settings-device").await;
    window.click("device-option-fold").await;
    for device in ["auto", "cpu", "cuda", "metal"] {
        window.find(&format!("device-option-{device}")).await;
    }
    window.photograph("devices").await;
    window.click("device-option-cpu").await;
    window
        .wait("the choice shows", async || {
            window.attribute("[data-testid='settings-device']", "data-value").await.as_deref() == Some("cpu")
        })
        .await;
    assert!(window.text("device").await.contains("CPU · "));
    assert!(window.text("devices-in-use").await.contains("CPU, "));
    window.photograph("devices-chosen").await;
    window.close().await;
}

const BITS: &str = "bit-identical to the CPU";

#[tokio::test]
async fn a_gpu_writes_the_cpus_text_and_is_listed_by_name_and_left_alone_where_the_cpu_is_faster() {
    let folder = tempfile::tempdir().unwrap();
    let [automatic, on_gpu] = ["auto", "gpu"].map(|device| folder.path().join(device));
    let question = "What is the capital of France?";

    let window = window_on("auto", &automatic).await;
    window.click("device").await;
    window
        .wait("it is said that the CPU is faster", async || {
            let said = window.text("devices-in-use").await;
            said.contains("The GPU (") && said.contains(": using the CPU.")
        })
        .await;
    window.click("settings-device").await;
    let listed = async || window.attribute("[data-testid^='device-option-gpu:']", "data-testid").await;
    window.wait("the GPU is listed", async || listed().await.is_some()).await;
    let option = listed().await.unwrap();
    window.wait("the GPU's guarantee is shown", async || window.text(&option).await.contains(BITS)).await;
    window.photograph("device-list").await;
    window.click("device-option-auto").await;
    window.click("settings-close").await;
    window.ask(question).await;
    window.wait_for_reply(1).await;
    window.close().await;

    let window = window_on("gpu", &on_gpu).await;
    let chip = window.attribute("[data-testid='device']", "data-tooltip").await.unwrap_or_default();
    assert!(chip.contains(BITS), "{chip}");
    window.ask(question).await;
    window.wait_for_reply(1).await;
    window.photograph("reply-on-gpu").await;
    window.click("device").await;
    window.photograph("device-gpu").await;
    window.configure(json!({ "appearance": { "theme": "light" } })).await;
    window.click("device").await;
    window.photograph("device-gpu-light").await;
    window.close().await;

    let [automatic, on_gpu] = [automatic, on_gpu].map(|data| reply_in(&data));
    assert!(automatic.len() > 20, "{automatic}");
    assert_eq!(on_gpu, automatic);
}

/// A window whose target runs on `device`: the starter; in `make nightly` SmolLM2, if available.
async fn window_on(device: &str, data: &Path) -> Window {
    let settings = json!({
        "target": if is_nightly() && !without_smollm2() { "smollm2" } else { "starter" },
        "device": device,
        "speculation": Speculation::fixed(4),
        "sampling": Sampling::greedy(),
        "max_tokens": 24,
        "appearance": { "theme": "dark" },
    });
    Store::open(&data.join("foretoken.db")).unwrap().save_settings(&settings.to_string()).unwrap();
    let smollm2 = repository().join("smollm2");
    let variables = [
        ("FORETOKEN_SMOLLM2_DIR", smollm2.to_str().unwrap()),
        ("FORETOKEN_SOFTWARE_GPU", "1"),
        ("WGPU_BACKEND", "vulkan"),
    ];
    Window::open_with(data, &variables).await
}

fn reply_in(data: &Path) -> String {
    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let messages = store.messages(store.conversations().unwrap()[0].id).unwrap();
    messages.last().unwrap().text.clone()
}
