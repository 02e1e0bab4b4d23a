//! The real window: the built application under a display, driven through WebKitWebDriver as a person would
//! use it. Linux only; the other platforms' webviews have no such driver.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

use crate::processes;

/// How long something is waited for.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// One window at a time: each computes on all cores.
static TURN: Mutex<()> = Mutex::const_new(());

/// A display, the driver, and through it the application with its data in a folder of its own.
pub struct Window {
    pub page: Client,
    driver: Child,
    display: Option<Child>,
    /// Of the display, as in the variable `DISPLAY`.
    display_name: String,
    _turn: MutexGuard<'static, ()>,
}

impl Window {
    /// With the starter as the default target, as where SmolLM2 is missing: it is there on every computer.
    pub async fn open(data: &Path) -> Self {
        Self::open_with(data, &[]).await
    }

    /// The same, with more variables in the application's environment.
    pub async fn open_with(data: &Path, variables: &[(&str, &str)]) -> Self {
        Self::start(data, &[&[("FORETOKEN_SMOLLM2_DIR", "/nonexistent")], variables].concat(), &[]).await
    }

    /// As the desktop opens a file with it.
    pub async fn open_file(data: &Path, file: &Path) -> Self {
        Self::start(data, &[("FORETOKEN_SMOLLM2_DIR", "/nonexistent")], &[file]).await
    }

    /// Where it is installed, with what it brings.
    pub async fn open_installed(data: &Path) -> Self {
        Self::start(data, &[], &[]).await
    }

    /// As if it were installed: SmolLM2 is the default target, which is in the source tree's own folder.
    pub async fn open_with_smollm2(data: &Path) -> Self {
        let folder = crate::smollm2().parent().unwrap().to_owned();
        Self::start(data, &[("FORETOKEN_SMOLLM2_DIR", folder.to_str().unwrap())], &[]).await
    }

    async fn start(data: &Path, variables: &[(&str, &str)], arguments: &[&Path]) -> Self {
        let turn = TURN.lock().await;
        let (display, name) = display();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Without a bus, so that an open Foretoken is not mistaken for this one. The driver and all it
        // starts are one group, to end together.
        let driver = Command::new("WebKitWebDriver")
            .arg(format!("--port={port}"))
            .env("DISPLAY", &name)
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
            .env("TAURI_AUTOMATION", "true")
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .env("FORETOKEN_DATA_DIR", data)
            // What the page remembers by itself; the hub's cache stays where it is.
            .env("XDG_DATA_HOME", data.join("webview"))
            // Whether this computer's GPU is faster is not what most tests are about.
            .env("WGPU_BACKEND", "noop")
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("WebKitWebDriver is missing: `make setup-tests` installs what the window test needs");
        let options = json!({
            "webkitgtk:browserOptions": { "binary": crate::application(), "args": arguments }
        });
        let url = format!("http://127.0.0.1:{port}");
        let started = Instant::now();
        let page = loop {
            let mut builder = ClientBuilder::new(HttpConnector::new());
            builder.capabilities(options.as_object().unwrap().clone());
            match builder.connect(&url).await {
                Ok(page) => break page,
                Err(error) if started.elapsed() > PATIENCE => panic!("no window came: {error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        };
        page.set_window_size(1280, 832).await.unwrap();
        let window = Self { page, driver, display, display_name: name, _turn: turn };
        window.wait_until_ready().await;
        window
    }

    /// The process that started the application.
    pub fn driver(&self) -> u32 {
        self.driver.id()
    }

    /// How long ago the application was started.
    pub fn age(&self) -> Duration {
        processes::age(processes::below(self.driver())[0])
    }

    pub async fn close(self) {
        self.page.clone().close().await.unwrap();
    }

    /// As a crash or a power cut would: nothing is asked, nothing is saved.
    pub fn kill(self) {}

    pub async fn all(&self, selector: &str) -> Vec<Element> {
        self.page.find_all(Locator::Css(selector)).await.unwrap()
    }

    pub async fn find(&self, name: &str) -> Element {
        let selector = format!("[data-testid='{name}']");
        let found = self.page.wait().at_most(PATIENCE).for_element(Locator::Css(&selector)).await;
        found.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// One that a person does not see, such as the field for files behind a button.
    pub async fn find_hidden(&self, name: &str) -> Element {
        self.page.find(Locator::Css(&format!("[data-testid='{name}']"))).await.unwrap()
    }

    /// All text on the page.
    pub async fn body(&self) -> String {
        self.page.find(Locator::Css("body")).await.unwrap().text().await.unwrap()
    }

    pub async fn click(&self, name: &str) {
        self.click_on(&format!("[data-testid='{name}']")).await;
    }

    pub async fn click_in(&self, selector: &str, name: &str) {
        self.click_on(&format!("{selector} [data-testid='{name}']")).await;
    }

    /// The page may draw an element anew, or move something over it, before it is clicked: then the next one is.
    async fn click_on(&self, selector: &str) {
        let started = Instant::now();
        loop {
            let found = self.page.wait().at_most(PATIENCE).for_element(Locator::Css(selector)).await;
            match found.unwrap_or_else(|error| panic!("{selector}: {error}")).click().await {
                Ok(()) => return,
                Err(error) if started.elapsed() > PATIENCE => panic!("{selector}: {error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// The state of the newest download that the library shows.
    pub async fn download(&self) -> String {
        self.attribute("[data-testid='download']", "data-state").await.unwrap_or_default()
    }

    /// Moves the pointer to a point of the page and turns the wheel towards the person, through the display.
    pub fn turn_wheel(&self, x: f64, y: f64, notches: usize) {
        let (x, y) = (format!("{x:.0}"), format!("{y:.0}"));
        let to = ["search", "--onlyvisible", "--name", "^Foretoken$", "mousemove", "--window", "%1", &x, &y];
        let notches = notches.to_string();
        self.send_input(&to);
        self.send_input(&["click", "--repeat", &notches, "--delay", "50", "5"]);
    }

    /// Presses keys, such as `ctrl+plus`, through the display, for those that are not the page's alone. They go to
    /// what has the keyboard rather than to a window, which `ctrl+q` closes before the keys are released.
    pub fn press(&self, keys: &str) {
        self.send_input(&["search", "--onlyvisible", "--name", "^Foretoken$", "windowfocus", "--sync"]);
        self.send_input(&["key", keys]);
    }

    /// Has the display send keys or pointer events to whatever is under the pointer or has the keyboard.
    pub fn send_input(&self, arguments: &[&str]) {
        let sent = Command::new("xdotool").args(arguments).env("DISPLAY", &self.display_name).status();
        let sent = sent.expect("xdotool is missing: `make setup-tests` installs what the window test needs");
        assert!(sent.success(), "xdotool {arguments:?}");
    }

    /// Also what is cut off where there is no room, which the driver leaves out.
    pub async fn text(&self, name: &str) -> String {
        self.find(name).await;
        let script = "return document.querySelector(arguments[0])?.textContent ?? ''";
        self.told(script, json!(format!("[data-testid='{name}']"))).await.as_str().unwrap().to_owned()
    }

    /// Of the last such element; `None` where there is none, or it has no such attribute.
    pub async fn attribute(&self, selector: &str, attribute: &str) -> Option<String> {
        let script = "const [selector, attribute] = arguments[0];
            return [...document.querySelectorAll(selector)].at(-1)?.getAttribute(attribute) ?? null";
        self.told(script, json!([selector, attribute])).await.as_str().map(str::to_owned)
    }

    /// Who drafts, or why nobody does: the header's pill has room for a few words, and says all to screen readers.
    pub async fn why(&self) -> String {
        self.attribute("[data-testid='speed-pill'] [aria-label]", "aria-label").await.unwrap_or_default()
    }

    /// Unfolds a section of the inspector, if it is folded.
    pub async fn unfold(&self, section: &str) {
        let script = "const [section] = arguments;
            document.querySelector(`[data-testid='section-${section}'] [aria-expanded='false']`)?.click();";
        self.page.execute(script, vec![json!(section)]).await.unwrap();
    }

    /// What a script says of the page: looked at in one go, as the page may redraw between two looks.
    async fn told(&self, script: &str, argument: serde_json::Value) -> serde_json::Value {
        self.page.execute(script, vec![argument]).await.unwrap()
    }

    pub async fn type_into(&self, name: &str, text: &str) {
        let field = self.find(name).await;
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    pub async fn ask(&self, text: &str) {
        self.type_into("composer", text).await;
        self.submit().await;
    }

    /// Sends what the composer holds.
    pub async fn submit(&self) {
        self.find("composer").await.send_keys(&Key::Enter.to_string()).await.unwrap();
    }

    pub async fn rounds(&self) -> usize {
        let rounds = self.attribute("[data-testid='heatmap']", "data-rounds").await;
        rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(0)
    }

    pub async fn state(&self) -> String {
        self.attribute("[data-testid='message-reply']", "data-state").await.unwrap_or_default()
    }

    pub async fn replies(&self) -> usize {
        self.all("[data-testid='message-reply']").await.len()
    }

    /// Until it is over and its last rounds, which may come after the stored reply, are there.
    pub async fn wait_for_reply(&self, count: usize) {
        self.wait("the reply is done", async || {
            self.replies().await == count && self.state().await == "done"
        })
        .await;
        let drawn = async || self.attribute("[data-testid='heatmap']", "data-rounds").await;
        self.wait("its rounds are there", async || {
            let before = drawn().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            before.as_deref() != Some("0") && drawn().await == before
        })
        .await;
    }

    pub async fn outcomes(&self) -> Vec<String> {
        let script =
            "return [...document.querySelectorAll(arguments[0])].map((chip) => chip.dataset.outcome)";
        serde_json::from_value(self.told(script, json!("[data-testid='token-chip']")).await).unwrap()
    }

    pub async fn wait(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let started = Instant::now();
        while !holds().await {
            if started.elapsed() > PATIENCE {
                self.photograph("failure").await;
                panic!("waited in vain until {what}; the window is in target/e2e/failure.png");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Changes settings, as the page would, and opens it again.
    pub async fn configure(&self, change: serde_json::Value) {
        let script = "const [change, done] = arguments;
            const { invoke } = window.__TAURI_INTERNALS__;
            invoke('settings', {})
                .then((settings) => invoke('save_settings', { settings: { ...settings, ...change } }))
                .then(() => done(null), (error) => done(error.message));";
        let refusal = self.page.execute_async(script, vec![change]).await.unwrap();
        assert_eq!(refusal, serde_json::Value::Null);
        self.open_page("").await;
    }

    /// Opens the page with options, such as `?replay`.
    pub async fn open_page(&self, options: &str) {
        self.page.goto(&format!("tauri://localhost/{options}")).await.unwrap();
        self.wait_until_ready().await;
    }

    /// Waits until the models are loaded and the page shows who drafts.
    async fn wait_until_ready(&self) {
        self.wait("the engine is ready", async || {
            let phase = self.attribute("[data-testid='engine-phase']", "data-phase").await;
            phase.as_deref() == Some("ready") && !self.why().await.is_empty()
        })
        .await;
    }

    /// Without compositing the driver waits for the next time something is painted, which may never be: a dot that
    /// nobody can see sees to it.
    async fn screenshot(&self) -> Vec<u8> {
        let script = "const dot = document.createElement('i');
            dot.style = 'position: fixed; inset: 0 auto auto 0; width: 1px; height: 1px; z-index: 9999';
            (document.querySelector('dialog[open]') ?? document.body).append(dot);
            let painted = 0;
            const paint = setInterval(() => {
                dot.style.background = `rgb(0 0 0 / ${1 + (painted % 2)}%)`;
                if (++painted < 40) return;
                clearInterval(paint);
                dot.remove();
            }, 50);";
        self.page.execute(script, vec![]).await.unwrap();
        self.page.screenshot().await.unwrap()
    }

    /// The picture of a part of the page that is in view. The driver's own leaves canvases empty.
    pub async fn picture_of(&self, name: &str) -> Vec<u8> {
        let place = self.find(name).await.rectangle().await.unwrap();
        // What was just changed is painted a little later.
        tokio::time::sleep(Duration::from_millis(400)).await;
        crate::picture::part(&self.screenshot().await, place)
    }

    /// Returns a PNG of the window for an animation.
    pub async fn frame(&self) -> Vec<u8> {
        tokio::time::sleep(Duration::from_millis(250)).await;
        self.screenshot().await
    }

    /// Into target/e2e, and among the documents where they show a picture of that name and pictures are kept.
    pub async fn photograph(&self, name: &str) {
        let folder = crate::repository().join("target/e2e");
        std::fs::create_dir_all(&folder).unwrap();
        // What was just changed is painted a little later.
        tokio::time::sleep(Duration::from_millis(400)).await;
        let picture = self.screenshot().await;
        let file = format!("{name}.png");
        std::fs::write(folder.join(&file), &picture).unwrap();
        let shown = crate::repository().join("docs/images").join(&file);
        if crate::picture::are_kept() && shown.exists() {
            std::fs::write(shown, picture).unwrap();
        }
    }
}

/// Also after a test that failed.
impl Drop for Window {
    fn drop(&mut self) {
        let group = format!("-{}", self.driver.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.driver.wait();
        if let Some(display) = &mut self.display {
            let _ = display.kill();
            let _ = display.wait();
        }
    }
}

/// The display there is, or one made for the test.
fn display() -> (Option<Child>, String) {
    if let Ok(name) = std::env::var("DISPLAY") {
        return (None, name);
    }
    let mut server = Command::new("Xvfb")
        .args(["-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("Xvfb is missing: `make setup-tests` installs what the window test needs");
    let mut number = String::new();
    BufReader::new(server.stdout.as_mut().unwrap().by_ref()).read_line(&mut number).unwrap();
    (Some(server), format!(":{}", number.trim()))
}
