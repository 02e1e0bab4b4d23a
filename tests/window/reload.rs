//! State that survives a reload of the page in the real window: a running reply, unsent texts, the
//! zoom.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use foretoken_store::Store;
use foretoken_tests::endless_model;
use foretoken_tests::processes;
use foretoken_tests::window::Window;
use serde_json::json;

/// Creates a conversation for each title.
fn with_conversations(data: &Path, titles: &[&str]) {
    let mut store = Store::open(&data.join("foretoken.db")).unwrap();
    for title in titles {
        store.ask(None, *title, "starter", None).unwrap();
    }
}

#[tokio::test]
async fn a_page_that_is_loaded_again_goes_on_with_the_reply_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let endless = endless_model(folder.path()).path().display().to_string();
    let settings = json!({ "target": endless, "added_models": [endless], "max_tokens": 0 });
    Store::open(&data.join("foretoken.db")).unwrap().save_settings(&settings.to_string()).unwrap();
    let window = Window::open(&data).await;
    window.ask("Go on and on.").await;
    window.wait("rounds come", async || window.rounds().await > 5).await;
    let before = window.rounds().await;

    window.page.refresh().await.unwrap();
    window.wait("the conversation is open again", async || window.replies().await == 1).await;
    assert!(!window.body().await.contains("was closed before"), "{}", window.body().await);
    window
        .wait("the earlier rounds are there and more come", async || window.rounds().await > before + 5)
        .await;
    window.click("stop").await;
    window.wait_for_reply(1).await;
    assert!(!window.body().await.contains("was closed before"));
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let conversations = store.conversations().unwrap();
    assert_eq!(conversations.len(), 1);
    let messages = store.messages(conversations[0].id).unwrap();
    assert_eq!(messages[1].finish.as_deref(), Some("cancelled"));
}

/// Text in the composer.
async fn typed(window: &Window) -> String {
    let script = "return document.querySelector(\"[data-testid='composer']\").value";
    window.page.execute(script, vec![]).await.unwrap().as_str().unwrap().to_owned()
}

async fn open(window: &Window, title: &str) {
    let script = "const items = [...document.querySelectorAll(\"[data-testid='conversation-item']\")];
        items.find((item) => item.textContent.includes(arguments[0])).click();";
    window.page.execute(script, vec![json!(title)]).await.unwrap();
    window
        .wait("it is open", async || {
            window.attribute("[data-testid='message-user']", "data-testid").await.is_some()
                && window.text("message-user").await.contains(title)
        })
        .await;
}

#[tokio::test]
async fn what_is_typed_stays_in_its_conversation_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    with_conversations(&data, &["About foxes", "About owls"]);
    let window = Window::open(&data).await;
    window.type_into("composer", "for a new chat").await;
    open(&window, "About foxes").await;
    assert_eq!(typed(&window).await, "");
    window.type_into("composer", "and their tails?").await;
    open(&window, "About owls").await;
    assert_eq!(typed(&window).await, "");
    open(&window, "About foxes").await;
    assert_eq!(typed(&window).await, "and their tails?");
    // It is saved a moment after the last keystroke.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    window.close().await;

    let window = Window::open(&data).await;
    window.wait("the text is there", async || typed(&window).await == "for a new chat").await;
    open(&window, "About owls").await;
    assert_eq!(typed(&window).await, "");
    open(&window, "About foxes").await;
    assert_eq!(typed(&window).await, "and their tails?");
    window.close().await;
}

/// Names of the files attached to the message in the composer.
async fn attached(window: &Window) -> Vec<String> {
    let script = "const all = document.querySelectorAll(\"[data-composer] [data-testid='attachment']\");
        return [...all].map((chip) => chip.textContent.trim().split(/\\s/)[0])";
    serde_json::from_value(window.page.execute(script, vec![]).await.unwrap()).unwrap()
}

async fn attach(window: &Window, folder: &Path, name: &str) {
    let path = folder.join(name);
    std::fs::write(&path, format!("This is {name}.")).unwrap();
    window.find_hidden("attach").await.send_keys(path.to_str().unwrap()).await.unwrap();
    window.wait("the file is attached", async || attached(window).await.contains(&name.to_owned())).await;
}

#[tokio::test]
async fn attached_files_and_an_edited_question_survive_ctrl_q_a_moment_after_the_last_key() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    with_conversations(&data, &["About foxes", "About owls"]);
    let window = Window::open(&data).await;
    attach(&window, folder.path(), "new.txt").await;
    open(&window, "About foxes").await;
    assert_eq!(attached(&window).await, [""; 0]);
    attach(&window, folder.path(), "fox.txt").await;
    attach(&window, folder.path(), "den.txt").await;
    window.type_into("composer", "What is in them?").await;
    window
        .page
        .execute("document.querySelector(\"[data-testid='edit-question']\").click()", vec![])
        .await
        .unwrap();
    window.type_into("question-editor", "About hounds").await;
    let application = processes::below(window.driver())[0];
    window.press("ctrl+q");
    let gone = || !processes::below(window.driver()).contains(&application);
    window.wait("Foretoken is gone", async || gone()).await;
    drop(window);

    let window = Window::open(&data).await;
    window.wait("the file is there", async || attached(&window).await == ["new.txt"]).await;
    open(&window, "About owls").await;
    assert_eq!(attached(&window).await, [""; 0]);
    open(&window, "About foxes").await;
    window.wait("the files are there", async || attached(&window).await == ["fox.txt", "den.txt"]).await;
    assert_eq!(typed(&window).await, "What is in them?");
    window.photograph("unsent-files").await;
    window
        .page
        .execute("document.querySelector(\"[data-testid='edit-question']\").click()", vec![])
        .await
        .unwrap();
    let script = "return document.querySelector(\"[data-testid='question-editor']\").value";
    window
        .wait("the edit is there", async || {
            window.page.execute(script, vec![]).await.is_ok_and(|text| text == "About hounds")
        })
        .await;
    window.close().await;
}

/// The application on a display of its own, without a driver: a session of WebDriver ends with the
/// process of the page.
struct Alone {
    display: Child,
    application: Child,
    name: String,
}

impl Alone {
    fn start(data: &Path) -> Self {
        let mut display = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1200x800x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut number = String::new();
        BufReader::new(display.stdout.as_mut().unwrap()).read_line(&mut number).unwrap();
        let name = format!(":{}", number.trim());
        let application = Command::new(foretoken_tests::application())
            .env("DISPLAY", &name)
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
            .env("FORETOKEN_DATA_DIR", data)
            .env("XDG_DATA_HOME", data.join("webview"))
            .env("FORETOKEN_SMOLLM2_DIR", "/nonexistent")
            .env("WGPU_BACKEND", "noop")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { display, application, name }
    }

    fn types(&self, text: &str) {
        let typed = Command::new("xdotool").args(["type", text]).env("DISPLAY", &self.name).status();
        assert!(typed.unwrap().success());
    }

    /// Processes that show the page.
    fn pages(&self) -> Vec<u32> {
        let all = processes::below(self.application.id()).into_iter();
        all.filter(|process| {
            let stat = processes::stat(&Path::new("/proc").join(process.to_string()));
            stat.is_some_and(|(name, _)| name.starts_with("WebKitWebProces"))
        })
        .collect()
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        for process in [&mut self.application, &mut self.display] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Types `text` again and again until it is stored as what is not sent, since the page may not be
/// there yet.
fn types_until_stored(alone: &Alone, data: &Path, text: &str) -> String {
    let begun = Instant::now();
    loop {
        alone.types(text);
        thread::sleep(Duration::from_secs(2));
        let stored = Store::open(&data.join("foretoken.db")).ok().and_then(|store| store.unsent().ok());
        let found = stored.into_iter().flatten().map(|(_, text)| text).find(|found| found.contains(text));
        if let Some(found) = found {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "\"{text}\" is not stored");
    }
}

#[test]
fn a_page_whose_process_ends_is_loaded_again_with_what_was_typed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let alone = Alone::start(&data);
    let before = types_until_stored(&alone, &data, "foxes");
    let pages = alone.pages();
    assert!(!pages.is_empty());
    for page in &pages {
        assert!(Command::new("kill").args(["-9", &page.to_string()]).status().unwrap().success());
    }
    let after = types_until_stored(&alone, &data, "hens");
    assert!(after.contains(&before), "{after}");
    assert!(alone.pages().iter().all(|page| !pages.contains(page)), "another process shows the page");
}

/// Width of the page in CSS pixels, which shrinks with the zoom.
async fn width(window: &Window) -> u64 {
    window.page.execute("return innerWidth", vec![]).await.unwrap().as_u64().unwrap()
}

#[tokio::test]
async fn keys_zoom_the_page_and_quit_and_the_zoom_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let window = Window::open(&data).await;
    window.click("composer").await;
    let normal = width(&window).await;
    window.press("ctrl+plus");
    window.press("ctrl+plus");
    window.wait("the page is larger", async || width(&window).await * 12 / 10 <= normal + 2).await;
    window.press("ctrl+minus");
    window.wait("the page is a little smaller", async || width(&window).await * 12 / 10 > normal + 2).await;
    let zoomed = width(&window).await;
    assert!(zoomed < normal);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    window.close().await;

    let window = Window::open(&data).await;
    window.wait("the zoom is kept", async || width(&window).await == zoomed).await;
    window.click("composer").await;
    window.press("ctrl+0");
    window.wait("the page has its normal size", async || width(&window).await == normal).await;
    let application = processes::below(window.driver())[0];
    window.press("ctrl+q");
    let gone = || !processes::below(window.driver()).contains(&application);
    window.wait("Foretoken is gone", async || gone()).await;
}
