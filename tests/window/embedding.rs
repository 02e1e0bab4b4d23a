//! Search in documents by meaning in the real window: an embedding model is fetched from a hub,
//! chosen, and finds passages for a question in other words.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};

use foretoken_tests::RandomEmbedder;
use foretoken_tests::hub::Hub;
use foretoken_tests::window::Window;
use serde_json::json;

use crate::attaching::attach;

const REPOSITORY: &str = "sentence-transformers/all-MiniLM-L6-v2";

/// Folder with a real embedding model; without one, the model is random and finds anything.
fn real_model() -> Option<PathBuf> {
    std::env::var_os("EMBEDDING_MODEL").map(PathBuf::from)
}

/// Copies the files of a model.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let place = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &place),
            false => fs::copy(entry.path(), place).map(drop).unwrap(),
        }
    }
}

async fn show_settings(window: &Window, theme: &str) {
    window.configure(json!({ "appearance": { "theme": theme } })).await;
    window.click("settings-open").await;
    window.click("settings-tab-documents").await;
}

#[tokio::test]
async fn an_embedding_model_is_fetched_and_documents_are_searched_by_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let (data, cache, root) =
        (folder.path().join("data"), folder.path().join("cache"), folder.path().join("hub"));
    let made_up = RandomEmbedder::new("bert").write_folder(folder.path());
    copy(&real_model().unwrap_or(made_up), &root.join(REPOSITORY));
    let hub = Hub::start(&root);
    let variables = [("HF_ENDPOINT", hub.url.as_str()), ("HF_HUB_CACHE", cache.to_str().unwrap())];
    let window = Window::open_with(&data, &variables).await;
    show_settings(&window, "dark").await;
    window.photograph("documents-offers-dark").await;
    let offers = window.all("[data-testid='embedding-get']").await;
    offers[1].click().await.unwrap();
    window
        .wait("the model is here", async || window.all("[data-testid='embedding-offer']").await.len() == 1)
        .await;
    window.click("settings-embedding_model").await;
    window.photograph("documents-choice-dark").await;
    let options = "[data-testid^='embedding_model-option-'][data-testid*='all-MiniLM-L6-v2']";
    window.all(options).await[0].click().await.unwrap();
    window.find("documents-progress").await;
    window.click("settings-close").await;

    let town = |number: usize| format!("## Town {number}\nIt rained in town {number}. The river rose. ");
    let text: String = (0..120).map(town).map(|words| words + &"A bridge was built. ".repeat(9)).collect();
    let keeper = "\n## The tower on the coast\nInes lights the lamp for the ships every evening.\n";
    let path = folder.path().join("towns.md");
    fs::write(&path, text + keeper).unwrap();
    attach(&window, &path).await;
    show_settings(&window, "light").await;
    window
        .wait("every passage has an embedding", async || {
            let words = window.text("documents-progress").await;
            words.split(' ').next().is_some_and(|embedded| {
                embedded != "0" && words.contains(&format!("{embedded} of {embedded} "))
            })
        })
        .await;
    window.photograph("documents-progress-light").await;
    window.click("settings-close").await;
    // None of these words is in the file.
    window.ask("Who helps sailors find their way?").await;
    window.wait_for_reply(1).await;
    window.click("excerpts").await;
    window.photograph("documents-by-meaning").await;
    if real_model().is_some() {
        let excerpts = window.all("[data-testid='attachment-open']").await;
        let mut names = Vec::new();
        for excerpt in excerpts {
            names.push(excerpt.text().await.unwrap());
        }
        assert!(names.iter().any(|name| name.contains("The tower on the coast")), "{names:?}");
    }

    // The Library says what it is, and it can be chosen there.
    window.click("library-open").await;
    window.click("library-tab-installed").await;
    window
        .wait("the library has it", async || window.text("library-panel").await.contains("document search"))
        .await;
    window.photograph("library-embedding-light").await;
    window.close().await;
}
