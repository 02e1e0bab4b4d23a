//! Folders of conversations in the real window.
#![cfg(target_os = "linux")]

use std::path::Path;

use foretoken_store::Store;
use foretoken_tests::window::Window;
use serde_json::{Value, json};

/// Name in a script written from right to left, with markup.
const MIXED: &str = "مجلد <b>1</b>";

/// Names of the folders with the titles in them, and the titles in no folder, in order.
async fn shown(window: &Window) -> Value {
    let script = "const titles = (of) =>
            [...of.querySelectorAll(\"[data-testid='conversation-item']\")].map((row) => row.textContent.trim());
        const folders = [...document.querySelectorAll(\"[data-testid='folder']\")].map((folder) =>
            [folder.querySelector(\"[data-testid='folder-item']\").textContent.trim(), titles(folder)]);
        return [folders, titles(document.querySelector(\"[data-testid='no-folder']\"))];";
    window.page.execute(script, vec![]).await.unwrap()
}

async fn create(window: &Window, name: &str) {
    window.click("new-folder").await;
    window.type_into("folder-name", name).await;
    window.press("Return");
    window.wait("it is there", async || window.body().await.contains(name)).await;
}

/// Middle of the row with this text, in CSS pixels.
async fn middle(window: &Window, row: &str, text: &str) -> (i64, i64) {
    let script = "const [row, text] = arguments;
        const rows = [...document.querySelectorAll(`[data-testid='${row}']`)];
        const box = rows.find((one) => one.textContent.includes(text)).getBoundingClientRect();
        return [Math.round(box.left + box.width / 2), Math.round(box.top + Math.min(box.height / 2, 60))];";
    let found = window.page.execute(script, vec![json!(row), json!(text)]).await.unwrap();
    serde_json::from_value(found).unwrap()
}

/// Drags with the mouse through the display; `held` runs before the button is released.
async fn drag(window: &Window, from: (i64, i64), to: (i64, i64), held: impl AsyncFnOnce()) {
    let place = |(x, y): (i64, i64)| {
        let (x, y) = (x.to_string(), y.to_string());
        window.send_input(&[
            "search",
            "--onlyvisible",
            "--name",
            "^Foretoken$",
            "mousemove",
            "--window",
            "%1",
            &x,
            &y,
        ]);
    };
    place(from);
    window.send_input(&["mousedown", "1"]);
    place((from.0 + 12, from.1 + 12));
    place((to.0 - 3, to.1));
    place(to);
    window.wait("it is dragged", async || !window.all("[data-testid='dragged']").await.is_empty()).await;
    held().await;
    window.send_input(&["mouseup", "1"]);
    window.wait("it is dropped", async || window.all("[data-testid='dragged']").await.is_empty()).await;
}

fn with_conversations(data: &Path, titles: &[&str]) {
    let mut store = Store::open(&data.join("foretoken.db")).unwrap();
    for title in titles {
        store.ask(None, *title, "starter", None).unwrap();
    }
}

#[tokio::test]
async fn folders_are_filled_by_menu_and_mouse_and_stay_folded_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    with_conversations(&data, &["About owls", "About hens", "About foxes"]);
    let window = Window::open(&data).await;
    create(&window, "Work").await;
    create(&window, MIXED).await;

    // By the menu.
    window.page.execute("document.querySelector(\"[data-conversation='3']\").focus()", vec![]).await.unwrap();
    window.press("m");
    window.find("move-to-1").await;
    window.photograph("folder-menu").await;
    window.click("move-to-1").await;
    let filed = json!([[["Work", ["About foxes"]], [MIXED, []]], ["About hens", "About owls"]]);
    window.wait("it is in the folder", async || shown(&window).await == filed).await;

    // With the mouse: into a folder and out of it.
    let from = middle(&window, "conversation-item", "About hens").await;
    let to = middle(&window, "folder-item", "مجلد").await;
    drag(&window, from, to, async || window.photograph("folder-drag").await).await;
    let both = json!([[["Work", ["About foxes"]], [MIXED, ["About hens"]]], ["About owls"]]);
    window.wait("it is dragged in", async || shown(&window).await == both).await;
    let from = middle(&window, "conversation-item", "About foxes").await;
    let to = middle(&window, "no-folder", "About owls").await;
    drag(&window, from, to, async || ()).await;
    let out = json!([[["Work", []], [MIXED, ["About hens"]]], ["About foxes", "About owls"]]);
    window.wait("it is dragged out", async || shown(&window).await == out).await;

    // A new chat in a folder, in both themes.
    window
        .page
        .execute("document.querySelector(\"[data-testid='folder-more']\").click()", vec![])
        .await
        .unwrap();
    window.click("menu-new-chat-here").await;
    window.ask("Tell me a story about a fox.").await;
    window.wait_for_reply(1).await;
    let story = "Tell me a story about a fox.";
    let begun = json!([[["Work", [story]], [MIXED, ["About hens"]]], ["About foxes", "About owls"]]);
    window.wait("it is in the folder", async || shown(&window).await == begun).await;
    window.photograph("folders-light").await;
    window.type_into("search", "hens").await;
    assert_eq!(window.text("search-folder").await, MIXED);
    window.photograph("folders-search").await;
    window.configure(json!({ "appearance": { "theme": "dark", "language": "de" } })).await;
    window.photograph("folders-dark").await;

    // Folded over a restart.
    window.click("folder-item").await;
    let folded = json!([[["Work", []], [MIXED, ["About hens"]]], ["About foxes", "About owls"]]);
    window.wait("it is folded", async || shown(&window).await == folded).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    window.close().await;
    let window = Window::open(&data).await;
    window.wait("it is folded still", async || shown(&window).await == folded).await;

    // Deleted and restored.
    window
        .page
        .execute("document.querySelector(\"[data-testid='folder-item']\").focus()", vec![])
        .await
        .unwrap();
    window.press("Delete");
    let without = json!([[[MIXED, ["About hens"]]], [story, "About foxes", "About owls"]]);
    window.wait("the folder is gone", async || shown(&window).await == without).await;
    window.photograph("folder-deleted").await;
    window.press("ctrl+z");
    window.wait("it is back", async || shown(&window).await == folded).await;
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let names: Vec<_> = store.folders().unwrap().into_iter().map(|folder| folder.name).collect();
    assert_eq!(names, ["Work", MIXED]);
}
