//! Updates in the real window: a server on this computer announces versions, well and badly signed,
//! and the file that stands for the program is replaced after a click.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use foretoken_tests::processes;
use foretoken_tests::update_server::{Response, UpdateServer};
use foretoken_tests::window::Window;
use serde_json::json;

/// Version that is newer than every build's.
const NEWER: &str = "99.1.0";

const NOTES: &str = "- Faster drafts\n- <b>No HTML</b>";

/// A window with a release channel, and the file that stands for its program.
struct Updating {
    server: UpdateServer,
    window: Window,
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Updating {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("Foretoken.AppImage");
        fs::write(&program, "this version").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let server = UpdateServer::start();
        let window = open(&folder.path().join("data"), &server, &program).await;
        Self { server, window, program, folder }
    }

    /// Clicks on the next step and waits until it has ended in `phase`.
    async fn step_to(&self, phase: &str) {
        self.window.click("update-step").await;
        self.wait_for(phase).await;
    }

    async fn wait_for(&self, phase: &str) {
        let reached = async || {
            self.window.attribute("[data-testid='update-status']", "data-phase").await.as_deref()
                == Some(phase)
        };
        self.window.wait(phase, reached).await;
    }

    async fn status(&self) -> String {
        self.window.text("update-status").await.trim().to_owned()
    }

    /// Clicks on the next step, which fails for a reason with these words.
    async fn step_fails(&self, words: &str) {
        self.window.click("update-step").await;
        self.window.wait(words, async || self.status().await.contains(words)).await;
        self.wait_for("failed").await;
    }
}

/// Opens a window of a debug build, whose channel may be in the environment.
async fn open(data: &Path, server: &UpdateServer, program: &Path) -> Window {
    let (endpoint, key) = (server.endpoint(), server.public_key());
    let variables = [
        ("FORETOKEN_UPDATE_ENDPOINT", endpoint.as_str()),
        ("FORETOKEN_UPDATE_KEY", key.as_str()),
        ("APPIMAGE", program.to_str().unwrap()),
    ];
    let window = Window::open_file_with(data, &variables, &started(data)).await;
    show_updates(&window).await;
    window
}

/// File in the argument of the program, which exists once the new version has started.
fn started(data: &Path) -> PathBuf {
    data.with_file_name("started.txt")
}

async fn show_updates(window: &Window) {
    window.click("settings-open").await;
    window.click("settings-tab-updates").await;
}

/// A program that creates the file in its argument, of many bytes.
fn package() -> Vec<u8> {
    let mut package = fs::read("/bin/touch").unwrap();
    package.resize(8 << 20, 7);
    package
}

#[tokio::test]
async fn an_update_is_found_downloaded_verified_and_installed_after_a_click() {
    let updating = Updating::open().await;
    let Updating { server, window, program, folder } = &updating;
    let (data, package) = (folder.path().join("data"), package());
    assert!(server.requests().is_empty(), "nothing is asked for by itself");
    window.photograph("updates-unchecked").await;

    server.release(NEWER, NOTES, &package);
    updating.step_to("found").await;
    assert!(updating.status().await.contains(NEWER));
    assert_eq!(window.text("update-notes").await, NOTES, "notes are text");
    window.photograph("updates-found").await;
    assert_eq!(server.requests(), ["/latest.json"]);

    // A cancelled download leaves everything as it was.
    server.set_package(Response { stall_after: Some(3 << 20), ..Response::of(&package) });
    updating.step_to("downloading").await;
    server.wait_until_stalled();
    window.photograph("updates-downloading").await;
    window.click("update-cancel").await;
    updating.wait_for("found").await;
    server.wait_until_closed();

    // A package with another byte is discarded.
    let mut damaged = package.clone();
    damaged[1000] ^= 1;
    server.set_package(Response::of(&damaged));
    updating.step_fails("signature").await;
    window.photograph("updates-bad-signature").await;
    server.set_package(Response { cut_after: Some(1 << 20), ..Response::of(&package) });
    updating.step_to("found").await;
    updating.step_fails("connection").await;

    server.set_package(Response::of(&package));
    updating.step_to("found").await;
    updating.step_to("ready").await;
    assert_eq!(fs::read(program).unwrap(), b"this version", "nothing is installed by itself");
    window.configure(json!({ "appearance": { "language": "de", "theme": "dark" } })).await;
    show_updates(window).await;
    updating.wait_for("ready").await;
    window.photograph("updates-ready-german-dark").await;
    window.click("settings-close").await;
    window.type_into("composer", "unfinished").await;
    show_updates(window).await;
    let application = processes::below(window.driver())[0];
    window.click("update-step").await;
    window.wait("the program has ended", async || !processes::is_alive(application)).await;
    assert_eq!(fs::read(program).unwrap(), package);
    window.wait("the new version has started", async || started(&data).exists()).await;
    assert_eq!(program.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let Updating { window, server, program, folder } = updating;
    window.kill();

    let window = open(&data, &server, &program).await;
    window.click("settings-close").await;
    let text = window.find("composer").await.prop("value").await.unwrap();
    assert_eq!(text.as_deref(), Some("unfinished"), "nothing typed is lost");
    window.close().await;
    drop(folder);
}

#[tokio::test]
async fn what_the_update_server_sends_is_not_trusted() {
    let updating = Updating::open().await;
    let Updating { server, window, .. } = &updating;
    let package = package();
    let current = env!("CARGO_PKG_VERSION");
    for old in [current, "0.0.1"] {
        server.release(old, "", &package);
        updating.step_to("up_to_date").await;
        assert!(updating.status().await.contains(current), "{old}");
    }
    server.set_description(Response::of(b"<html>"));
    updating.step_fails("can't be read").await;
    window.photograph("updates-failed").await;
    server.set_description(Response { endless: true, ..Response::of(&[b' '; 65536]) });
    updating.step_fails("too much data").await;
    server.set_description(Response { status: 404, ..Response::default() });
    updating.step_fails("can't be reached").await;

    // An old package under a new number, one of another key, and one without a signature.
    let other = UpdateServer::start();
    for signature in [server.sign(&package, "0.0.1"), other.sign(&package, NEWER), String::new()] {
        server.release(NEWER, "", &package);
        server.announce(NEWER, "", &signature);
        updating.step_to("found").await;
        updating.step_fails("signature").await;
    }
    assert_eq!(fs::read(&updating.program).unwrap(), b"this version");
    updating.window.close().await;
}

#[tokio::test]
async fn daily_checks_are_off_until_they_are_switched_on() {
    let updating = Updating::open().await;
    let Updating { server, window, .. } = &updating;
    server.release(NEWER, NOTES, &package());
    assert!(server.requests().is_empty());
    window.click("settings-check-for-updates").await;
    updating.wait_for("found").await;
    window.click("settings-close").await;
    window.open_page("").await;
    let toast = window.text("toast").await;
    assert!(toast.contains(NEWER), "{toast}");
    window.photograph("updates-toast").await;
    window.click("toast-action").await;
    updating.wait_for("found").await;
    assert_eq!(server.requests(), ["/latest.json"]);
    let Updating { window, server, program, folder } = updating;
    window.close().await;

    let data = folder.path().join("data");
    let window = open(&data, &server, &program).await;
    window.wait("it checks at the start", async || server.requests().len() == 2).await;
    window.configure(json!({ "check_for_updates": false })).await;
    window.close().await;
    let window = open(&data, &server, &program).await;
    window.close().await;
    assert_eq!(server.requests().len(), 2, "it is off again");
}

#[tokio::test]
async fn a_copy_that_cannot_replace_itself_only_announces_a_version() {
    let folder = tempfile::tempdir().unwrap();
    let server = UpdateServer::start();
    server.release(NEWER, NOTES, &package());
    let (endpoint, key) = (server.endpoint(), server.public_key());
    let variables =
        [("FORETOKEN_UPDATE_ENDPOINT", endpoint.as_str()), ("FORETOKEN_UPDATE_KEY", key.as_str())];
    let window = Window::open_with(&folder.path().join("data"), &variables).await;
    show_updates(&window).await;
    window.click("update-step").await;
    let announced = async || window.text("update-status").await.contains(NEWER);
    window.wait("the version is announced", announced).await;
    assert!(window.body().await.contains("Install it the way you installed this version."));
    assert_eq!(window.text("update-step").await.trim(), "Check now", "there is no download");
    window.photograph("updates-announced").await;
    window.close().await;
}

#[tokio::test]
async fn a_build_without_a_channel_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let window = Window::open(&folder.path().join("data")).await;
    show_updates(&window).await;
    let said = window.text("update-status").await;
    assert!(said.contains("no update server"), "{said}");
    assert!(window.all("[data-testid='update-step']").await.is_empty());
    let switch = "return document.querySelector('[data-testid=settings-check-for-updates]').disabled";
    assert_eq!(window.page.execute(switch, vec![]).await.unwrap(), true);
    window.photograph("updates-none").await;
    window.configure(json!({ "appearance": { "language": "de", "theme": "dark" } })).await;
    show_updates(&window).await;
    window.photograph("updates-none-german-dark").await;
    window.close().await;
}
