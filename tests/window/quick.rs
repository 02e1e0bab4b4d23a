//! The window for a quick question: by a global shortcut, by the command line and from the tray.
#![cfg(target_os = "linux")]

use std::path::Path;

use fantoccini::wd::WindowHandle;
use foretoken_store::{Role, Store};
use foretoken_tests::session_bus::SessionBus;
use foretoken_tests::tray::DesktopTray;
use foretoken_tests::window::Window;
use serde_json::json;

/// Texts of the stored messages of the newest conversation, by role.
fn stored(data: &Path) -> Vec<(Role, String)> {
    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let conversations = store.conversations().unwrap();
    let messages = conversations.first().map(|newest| store.messages(newest.id).unwrap());
    messages.into_iter().flatten().map(|message| (message.role, message.text)).collect()
}

/// Waits until the newest conversation has so many messages that are complete.
async fn wait_for_messages(window: &Window, data: &Path, count: usize) {
    let all = async || {
        let messages = stored(data);
        messages.len() == count && messages.iter().all(|(_, text)| !text.is_empty())
    };
    window.wait(&format!("{count} messages are stored"), all).await;
}

/// Waits for the page of the quick window, to which later calls go; returns the handles of the main
/// window and of this one.
async fn switch_to_quick(window: &Window) -> [WindowHandle; 2] {
    let main = window.page.window().await.unwrap();
    let mut quick = None;
    window
        .wait("the driver finds the window", async || {
            quick = window.page.windows().await.unwrap().into_iter().find(|handle| *handle != main);
            quick.is_some()
        })
        .await;
    let quick = quick.unwrap();
    window.page.switch_to_window(quick.clone()).await.unwrap();
    window.find("quick-field").await;
    [main, quick]
}

/// Presses `x` for the shortcut until it is refused. The display gives the window its focus before
/// the first key, and without a window manager the page loses it for a moment, which ends a choice.
async fn press_without_modifier(window: &Window) {
    let button = "[data-testid='settings-quick-shortcut']";
    let refused = async || {
        if window.attribute(button, "aria-pressed").await.as_deref() != Some("true") {
            window.click("settings-quick-shortcut").await;
        }
        window.press("x");
        !window.all("[data-testid='settings-shortcut-refused']").await.is_empty()
    };
    window.wait("a key without modifier is refused", refused).await;
}

#[tokio::test]
async fn a_shortcut_is_chosen_by_pressing_it_and_a_taken_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let window = Window::open(&folder.path().join("data")).await;
    window.click("settings-open").await;
    press_without_modifier(&window).await;
    let refusal = window.text("settings-shortcut-refused").await;
    assert!(refusal.contains("Hold Ctrl"), "{refusal}");
    window.scroll_to("settings-quick-shortcut").await;
    window.photograph("quick-shortcut-refused").await;

    let taken = window.grab_key('x');
    // The keys themselves go to the program that has taken them.
    window.press("Escape");
    window.configure(json!({ "quick_shortcut": "control+alt+KeyX" })).await;
    window.click("settings-open").await;
    let problem = window.text("settings-shortcut-problem").await;
    assert!(problem.contains("another program uses this combination"), "{problem}");
    window.scroll_to("settings-quick-shortcut").await;
    window.photograph("quick-shortcut-taken").await;
    drop(taken);

    window.click("settings-quick-shortcut").await;
    window.press("ctrl+alt+y");
    let shown = async || window.text("settings-quick-shortcut").await;
    window.wait("the keys are shown", async || shown().await.trim() == "Ctrl Alt Y").await;
    window
        .wait("the problem is gone", async || {
            window.all("[data-testid='settings-shortcut-problem']").await.is_empty()
        })
        .await;
    window.send_input(&["key", "ctrl+alt+y"]);
    window.wait("the window opens", async || window.is_quick_visible()).await;
    let [main, _] = switch_to_quick(&window).await;
    window.send_to_quick(&["key", "Escape"]);
    window.wait("the window is hidden", async || !window.is_quick_visible()).await;
    window.page.switch_to_window(main).await.unwrap();
    window.click("settings-quick-shortcut-clear").await;
    window.wait("there is none", async || shown().await.trim() == "None").await;
    window.close().await;
}

#[tokio::test]
async fn a_quick_question_is_answered_and_goes_on_in_the_main_window() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    super::e2e::always_drafting(&data);
    let bus = SessionBus::start();
    let variables = [("DBUS_SESSION_BUS_ADDRESS", bus.address.as_str())];
    let tray = DesktopTray::open(&bus);
    let window = Window::open_with(&data, &variables).await;
    window.configure(json!({ "tray_icon": true })).await;

    // Another start with the option opens it, and the main window stays as it is.
    assert!(window.start_again(&data, &variables, &["--quick"]).success());
    window.wait("the window opens", async || window.is_quick_visible()).await;
    let [main, quick] = switch_to_quick(&window).await;
    window.send_to_quick(&["type", "Tell me a story about a fox"]);
    window.send_to_quick(&["key", "Return"]);
    window
        .wait("there is a reply", async || {
            !window.text("quick-reply").await.is_empty()
                && window.attribute("[data-testid='quick-reply']", "data-state").await.as_deref()
                    == Some("done")
        })
        .await;
    wait_for_messages(&window, &data, 2).await;
    let [(_, question), (_, reply)] = &stored(&data)[..] else { panic!() };
    assert_eq!(question, "Tell me a story about a fox");
    let shown = window.text("quick-reply").await;
    assert!(shown.contains(&reply[..20]), "{shown}");
    window.photograph("quick").await;

    // A second question goes on with the conversation; it continues in the main window.
    window.send_to_quick(&["type", "And then?"]);
    window.send_to_quick(&["key", "Return"]);
    wait_for_messages(&window, &data, 4).await;
    window.click("quick-continue").await;
    window.wait("the window is hidden", async || !window.is_quick_visible()).await;
    window.page.switch_to_window(main).await.unwrap();
    window.wait("the main window shows both replies", async || window.replies().await == 2).await;

    // The tray's menu opens it again, in the colours and the language of the settings.
    window.configure(json!({ "appearance": { "theme": "light", "language": "de" } })).await;
    tray.choose("Kurze Frage …");
    window.wait("the window opens", async || window.is_quick_visible()).await;
    window.page.switch_to_window(quick).await.unwrap();
    let empty = async || window.text("quick-reply").await.trim().is_empty();
    window.wait("the conversation before is gone", empty).await;
    window.wait("it is German", async || window.body().await.contains("Esc blendet")).await;
    window.photograph("quick-german-light").await;
    window.send_to_quick(&["key", "Escape"]);
    window.wait("the window is hidden", async || !window.is_quick_visible()).await;
    window.close().await;
}
