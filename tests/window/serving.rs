//! Requests of other programs to the window's models.
#![cfg(target_os = "linux")]

use std::net::TcpListener;

use foretoken_store::Store;
use foretoken_tests::client;
use foretoken_tests::window::Window;
use serde_json::json;

use super::e2e::always_drafting;

#[tokio::test]
async fn the_windows_model_replies_to_another_program_while_the_switch_is_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let window = Window::open(&data).await;

    // A port that is taken is reported at the switch.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    window
        .configure(json!({ "server": { "enabled": false, "host": "127.0.0.1", "port": port, "key": "" } }))
        .await;
    window.click("settings-open").await;
    window.click("settings-tab-server").await;
    window.click("settings-server").await;
    let shown = async || window.text("server-status").await;
    window.wait("the port is said to be taken", async || shown().await.contains("in use")).await;
    window.photograph("server-port-taken").await;

    // Once it is free, the address appears, and the model writes the same there as in the window.
    drop(taken);
    window.click("settings-server").await;
    window.wait("it is off", async || shown().await.trim().is_empty()).await;
    window.click("settings-server").await;
    window.wait("the address is shown", async || shown().await.contains(&format!(":{port}/v1"))).await;
    window.photograph("server").await;
    let address = format!("127.0.0.1:{port}");
    let question = json!({ "messages": [{ "role": "user", "content": "Tell me a story about a fox" }] });
    let answer = client::post(&address, "/v1/chat/completions", &question.to_string()).json();
    let replied = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(answer["usage"]["accepted"].as_u64().unwrap() > 0, "{answer}");
    window.click("settings-close").await;
    window.ask("Tell me a story about a fox").await;
    window.wait_for_reply(1).await;

    window.click("settings-open").await;
    window.click("settings-tab-server").await;
    window.click("settings-server").await;
    window.wait("it is off", async || shown().await.trim().is_empty()).await;
    assert!(std::net::TcpStream::connect(&address).is_err(), "it still listens");
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let messages = store.messages(store.conversations().unwrap()[0].id).unwrap();
    assert_eq!(messages.last().unwrap().text, replied);
}
