//! Models of other programs in the real window: they are listed with their program, answer from
//! where they are, and stay chosen when their program moves them.
#![cfg(target_os = "linux")]

use std::path::Path;

use foretoken_tests::window::Window;
use serde_json::json;

use crate::e2e::always_drafting;

const OLLAMA: &str = "ollama:fox:latest";

fn copy_starter(role: &str, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    let starter = foretoken_tests::repository().join("starter");
    std::fs::copy(starter.join(format!("starter-{role}-Q8_0.gguf")), to).unwrap();
}

/// Puts the starter target where Ollama would have it, under this hash.
fn put_into_ollama(home: &Path, letter: &str) {
    let models = home.join(".ollama/models");
    let hash = letter.repeat(64);
    copy_starter("target", &models.join(format!("blobs/sha256-{hash}")));
    let layer =
        json!({ "mediaType": "application/vnd.ollama.image.model", "digest": format!("sha256:{hash}") });
    let manifest = models.join("manifests/registry.ollama.ai/library/fox/latest");
    std::fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    std::fs::write(manifest, json!({ "schemaVersion": 2, "layers": [layer] }).to_string()).unwrap();
}

async fn target(window: &Window) -> String {
    window.attribute("[data-testid='target-picker']", "data-value").await.unwrap_or_default()
}

#[tokio::test]
async fn a_model_of_another_program_answers_from_there_and_is_followed_when_it_moves() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let home = data.join("programs");
    put_into_ollama(&home, "a");
    copy_starter("draft", &home.join(".lmstudio/models/fox/fox-draft-GGUF/fox-draft.gguf"));
    copy_starter("draft", &home.join(".local/share/nomic.ai/GPT4All/small.gguf"));
    always_drafting(&data);
    let window = Window::open(&data).await;
    window.click("library-open").await;
    window.click("library-tab-installed").await;
    let row = format!("[data-model='{OLLAMA}']");
    window.wait("it is listed", async || !window.all(&row).await.is_empty()).await;
    let listed = window.body().await;
    for shown in ["Ollama: fox:latest", "LM Studio: fox/fox-draft-GGUF/fox-draft.gguf", "GPT4All: small.gguf"]
    {
        assert!(listed.contains(shown), "{shown} is missing in {listed}");
    }
    let delete = format!("{row} [data-testid='model-delete']");
    assert!(window.all(&delete).await.is_empty(), "another program's model cannot be deleted here");
    window.photograph("programs").await;
    window.click_in(&row, "use-target").await;
    window.wait("it is loaded", async || target(&window).await == OLLAMA).await;
    window.click("library-close").await;
    window.ask("Tell me a story about a fox.").await;
    window.wait_for_reply(1).await;
    window.close().await;

    // Ollama pulls a newer version: another blob under the same name.
    std::fs::remove_dir_all(home.join(".ollama")).unwrap();
    put_into_ollama(&home, "b");
    let window = Window::open(&data).await;
    window.wait("it is still chosen", async || target(&window).await == OLLAMA).await;
    window.ask("And then?").await;
    window.wait_for_reply(1).await;
    window.close().await;
    // Nothing was written there.
    let blobs: Vec<_> = std::fs::read_dir(home.join(".ollama/models/blobs")).unwrap().flatten().collect();
    assert_eq!(blobs.len(), 1);
}
