//! Start at login: the switch writes and removes the entry of the system.
#![cfg(target_os = "linux")]

use std::fs;

use foretoken_tests::window::Window;

#[tokio::test]
async fn the_switch_adds_and_removes_the_entry_and_follows_one_that_was_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (data, home) = (folder.path().join("data"), folder.path().join("home"));
    fs::create_dir_all(&home).unwrap();
    let entry = home.join(".config/autostart/Foretoken.desktop");
    let variables = [("HOME", home.to_str().unwrap())];
    let window = Window::open_with(&data, &variables).await;
    window.click("settings-open").await;
    window.click("settings-start-at-login").await;
    window.wait("the entry is written", async || entry.exists()).await;
    window.photograph("start-at-login").await;
    let text = fs::read_to_string(&entry).unwrap();
    let program = text.lines().find_map(|line| line.strip_prefix("Exec=")).unwrap();
    assert!(program.trim_end().ends_with("foretoken"), "{text}");
    window.click("settings-start-at-login").await;
    window.wait("the entry is removed", async || !entry.exists()).await;
    window.click("settings-start-at-login").await;
    window.wait("the entry is there again", async || entry.exists()).await;
    window.close().await;

    fs::remove_file(&entry).unwrap();
    let window = Window::open_with(&data, &variables).await;
    window.click("settings-open").await;
    window.find("settings-start-at-login").await;
    let switch = "return document.querySelector('[data-testid=settings-start-at-login]').checked";
    let is_on = window.page.execute(switch, vec![]).await.unwrap();
    assert_eq!(is_on, false, "the entry was removed elsewhere");
    window.close().await;
}
