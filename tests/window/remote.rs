//! Remote server in the real window: our own server is added, chosen, replies, is stopped and
//! removed.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use fantoccini::key::Key;
use foretoken_tests::cli;
use foretoken_tests::endless_model;
use foretoken_tests::window::Window;

use super::e2e::always_drafting;

/// A `foretoken-cli serve` process that ends with the test.
struct Serving {
    process: Child,
    /// "127.0.0.1:4711".
    at: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(cli())
            .arg("serve")
            .args(arguments)
            .args(["--port", "0", "--threads", "1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let at = said
            .filter_map(|line| Some(line.split_once("http://")?.1.split_once("/v1")?.0.to_owned()))
            .next()
            .expect("the server says where it is");
        Self { process, at }
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Adds a server in the settings and chooses its model.
async fn choose(window: &Window, name: &str, address: &str, model: &str) {
    window.click("settings-open").await;
    window.click("settings-tab-remote").await;
    window.type_into("remote-name", name).await;
    window.type_into("remote-address", address).await;
    window.click("remote-add").await;
    let outcomes = async || window.attribute("[data-testid='remote-server']:last-child", "data-models").await;
    window.wait("the server has named its model", async || outcomes().await.as_deref() == Some("1")).await;
    window.photograph("remote").await;
    window.click("settings-close").await;
    window.click("target-picker").await;
    window.click(&format!("target-option-remote:{name}/{model}")).await;
    let chosen = async || window.text("device").await.contains(address);
    window.wait("the chip says where it computes", chosen).await;
}

#[tokio::test]
async fn a_server_elsewhere_is_added_chosen_replies_is_stopped_and_told_of_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let starter = Serving::start(&["--target", "starter", "--draft", "starter-draft"]);
    let window = Window::open(&data).await;
    choose(&window, "near", &starter.at, "starter").await;
    assert!(window.why().await.contains("The server drafts"));
    window.ask("Tell me a story about a fox.").await;
    let over = async |replies| window.replies().await == replies && window.state().await == "done";
    window.wait("the reply is whole", async || over(1).await).await;
    window.unfold("details").await;
    let numbers = async || window.text("stat-acceptance").await.ends_with('%');
    window.wait("what its drafts did is shown", numbers).await;
    window.photograph("remote-reply").await;

    let endless = folder.path().join("endless.gguf");
    endless_model(folder.path());
    let mut server = Serving::start(&["--target", endless.to_str().unwrap()]);
    choose(&window, "far", &server.at, "endless").await;
    window.configure(serde_json::json!({ "max_tokens": 0 })).await;
    window.click("conversation-item").await;
    window.ask("And then?").await;
    let written = async || window.all("[data-testid='message-reply']").await.len() == 2;
    window.wait("a second reply has begun", written).await;
    window.wait("it has words", async || words(&window).await > 40).await;
    window.find("composer").await.send_keys(&Key::Escape.to_string()).await.unwrap();
    window.wait("it is stopped", async || over(2).await).await;
    assert!(words(&window).await > 40, "what was written stays");

    server.kill();
    window.ask("Are you there?").await;
    let message = format!("{} refused the connection", server.at);
    window.wait("it says that the server is gone", async || window.body().await.contains(&message)).await;
    assert_eq!(window.replies().await, 2);
    window.close().await;
}

/// Number of letters in the newest reply.
async fn words(window: &Window) -> usize {
    let replies = window.all("[data-testid='message-reply']").await;
    replies.last().unwrap().text().await.unwrap().len()
}
