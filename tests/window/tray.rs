//! The tray icon: its menu on the desktop's bus, and a window that is hidden instead of closed.
#![cfg(target_os = "linux")]

use std::net::{TcpListener, TcpStream};

use foretoken_tests::processes;
use foretoken_tests::session_bus::SessionBus;
use foretoken_tests::tray::DesktopTray;
use foretoken_tests::window::Window;
use serde_json::json;

/// A port that is free.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Settings of a server that is off.
fn server_at(port: u16) -> serde_json::Value {
    json!({ "server": { "enabled": false, "host": "127.0.0.1", "port": port, "key": "" } })
}

#[tokio::test]
async fn the_trays_menu_shows_and_switches_the_local_server() {
    let folder = tempfile::tempdir().unwrap();
    let bus = SessionBus::start();
    let tray = DesktopTray::open(&bus);
    let window =
        Window::open_with(&folder.path().join("data"), &[("DBUS_SESSION_BUS_ADDRESS", &bus.address)]).await;
    let port = free_port();
    window.configure(server_at(port)).await;
    assert!(!tray.shows_icon(), "it is off by default");

    window.click("settings-open").await;
    window.click("settings-tray-icon").await;
    window.wait("the icon is shown", async || tray.shows_icon()).await;
    assert!(window.all("[data-testid='settings-no-tray']").await.is_empty());
    window.scroll_to("settings-keep-in-tray").await;
    window.photograph("tray-setting").await;
    let off = ["Open Foretoken", "Local server is off", "Start server", "Quick question…", "Quit Foretoken"];
    assert_eq!(tray.labels(), off);
    let unavailable = |label: &str| tray.menu().iter().any(|line| line.label == label && !line.enabled);
    assert!(unavailable("Local server is off"));
    assert!(tray.picture_width() >= 32);

    // The menu starts the server, and the page follows.
    tray.choose("Start server");
    let line = format!("Local server: http://127.0.0.1:{port}/v1");
    window.wait("the menu has the address", async || tray.labels()[1] == line).await;
    assert!(unavailable(&line));
    assert_eq!(tray.labels()[2], "Stop server");
    window.wait("the tooltip, too", async || tray.tooltip().contains(&line)).await;
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    window.click("settings-tab-server").await;
    let switch = "return document.querySelector('[data-testid=settings-server]').checked";
    let is_on = async || window.page.execute(switch, vec![]).await.unwrap();
    window.wait("the page's switch is on", async || is_on().await == true).await;

    // The page's switch stops it, and the menu follows.
    window.click("settings-server").await;
    window.wait("the menu says that it is off", async || tray.labels() == off).await;
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    tray.choose("Start server");
    let failed = "Local server could not start";
    window.wait("the menu says that the port is taken", async || tray.labels()[1] == failed).await;
    drop(taken);
    tray.choose("Start server");
    window.wait("it is tried again", async || tray.labels()[1] == line).await;

    window.click("settings-tab-appearance").await;
    window.click("settings-tray-icon").await;
    window.wait("the icon is gone", async || !tray.shows_icon()).await;
    window.close().await;
}

#[tokio::test]
async fn the_menu_speaks_the_windows_language_and_appears_once_a_panel_does() {
    let folder = tempfile::tempdir().unwrap();
    let bus = SessionBus::start();
    let window =
        Window::open_with(&folder.path().join("data"), &[("DBUS_SESSION_BUS_ADDRESS", &bus.address)]).await;
    window.click("settings-open").await;
    window.click("settings-tray-icon").await;
    let said = window.text("settings-no-tray").await;
    assert!(said.contains("shows no tray icons"), "{said}");
    window.scroll_to("settings-keep-in-tray").await;
    window.photograph("tray-missing").await;

    let tray = DesktopTray::open(&bus);
    window.wait("the icon is shown", async || tray.shows_icon()).await;
    window.configure(json!({ "appearance": { "language": "de", "theme": "dark" } })).await;
    window.wait("the menu is German", async || tray.labels()[0] == "Foretoken öffnen").await;
    let rest = ["Lokaler Server ist aus", "Server starten", "Kurze Frage …", "Foretoken beenden"];
    assert_eq!(tray.labels()[1..], rest);
    window.click("settings-open").await;
    window.find("settings-tray-icon").await;
    window.scroll_to("settings-keep-in-tray").await;
    window.photograph("tray-setting-german-dark").await;
    window.close().await;
}

#[tokio::test]
async fn a_closed_window_goes_on_in_the_tray_only_while_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let bus = SessionBus::start();
    let variables = [("DBUS_SESSION_BUS_ADDRESS", bus.address.as_str())];
    let tray = DesktopTray::open(&bus);
    let window = Window::open_with(&data, &variables).await;
    let port = free_port();
    window.configure(server_at(port)).await;
    window.configure(json!({ "tray_icon": true, "keep_in_tray": true })).await;
    window.wait("the icon is shown", async || tray.shows_icon()).await;
    tray.choose("Start server");
    window.wait("the server runs", async || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;

    // Hidden, with the server running; a click, the menu or a second start shows the window again.
    for returns in ["click", "menu", "start"] {
        window.request_close();
        window.wait("the window is hidden", async || !window.is_visible()).await;
        TcpStream::connect(("127.0.0.1", port)).unwrap();
        match returns {
            "click" => tray.click(),
            "menu" => tray.choose("Open Foretoken"),
            _ => assert!(window.start_again(&data, &variables, &[]).success()),
        }
        window.wait(&format!("the window is back by {returns}"), async || window.is_visible()).await;
    }

    // Without a tray the window would be lost, so it closes.
    let application = processes::below(window.driver())[0];
    tray.close();
    window.request_close();
    window.wait("the program has ended", async || !processes::is_alive(application)).await;
    window.kill();

    // The next start shows the window, and the menu quits.
    let tray = DesktopTray::open(&bus);
    let window = Window::open_with(&data, &variables).await;
    window.wait("the icon is shown", async || tray.shows_icon()).await;
    let application = processes::below(window.driver())[0];
    window.request_close();
    window.wait("the window is hidden", async || !window.is_visible()).await;
    tray.choose("Quit Foretoken");
    window.wait("the program has ended", async || !processes::is_alive(application)).await;
    window.wait("the server, too", async || TcpStream::connect(("127.0.0.1", port)).is_err()).await;
    window.kill();
}
