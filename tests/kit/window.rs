//! The real window: the built application on a display, driven through WebKitWebDriver as a user
//! would use it. Linux only; other platforms' webviews have no such driver.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

use crate::display::{GrabbedKey, request_close};
use crate::picture::Region;
use crate::processes;

/// Timeout of waits.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Name of the window for a quick question.
const QUICK: &str = "^Foretoken Quick$";

/// One window at a time: each computes on all cores.
static TURN: Mutex<()> = Mutex::const_new(());

/// A display, the driver, and the application with its data in a folder of its own.
pub struct Window {
    pub page: Client,
    driver: Child,
    display: Option<Child>,
    /// Name of the display, as in the variable `DISPLAY`.
    display_name: String,
    _turn: MutexGuard<'static, ()>,
}

impl Window {
    /// Opens with the starter as the default target, as if SmolLM2 were missing, so that it works
    /// on every computer.
    pub async fn open(data: &Path) -> Self {
        Self::open_with(data, &[]).await
    }

    /// Opens with more variables in the application's environment.
    pub async fn open_with(data: &Path, variables: &[(&str, &str)]) -> Self {
        Self::start(data, &[&[("FORETOKEN_SMOLLM2_DIR", "/nonexistent")], variables].concat(), &[]).await
    }

    /// Opens as if the desktop opened a file with it.
    pub async fn open_file(data: &Path, file: &Path) -> Self {
        Self::start(data, &[("FORETOKEN_SMOLLM2_DIR", "/nonexistent")], &[file]).await
    }

    /// Opens with more variables, and with a file as the desktop opens one.
    pub async fn open_file_with(data: &Path, variables: &[(&str, &str)], file: &Path) -> Self {
        Self::start(data, &[&[("FORETOKEN_SMOLLM2_DIR", "/nonexistent")], variables].concat(), &[file]).await
    }

    /// Opens the installed application with its own files.
    pub async fn open_installed(data: &Path) -> Self {
        Self::start(data, &[], &[]).await
    }

    /// Opens as if installed: SmolLM2, in the source tree's own folder, is the default target.
    pub async fn open_with_smollm2(data: &Path) -> Self {
        let folder = crate::smollm2().parent().unwrap().to_owned();
        Self::start(data, &[("FORETOKEN_SMOLLM2_DIR", folder.to_str().unwrap())], &[]).await
    }

    async fn start(data: &Path, variables: &[(&str, &str)], arguments: &[&Path]) -> Self {
        let turn = TURN.lock().await;
        let (display, name) = display();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // No session bus, so that another running Foretoken is not mistaken for this one. The
        // driver and its children are one process group, to end together.
        let driver = Command::new("WebKitWebDriver")
            .arg(format!("--port={port}"))
            .env("DISPLAY", &name)
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
            .env("TAURI_AUTOMATION", "true")
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .env("FORETOKEN_DATA_DIR", data)
            .env("FORETOKEN_PROGRAMS_HOME", data.join("programs"))
            // The page's own storage; the hub's cache stays where it is.
            .env("XDG_DATA_HOME", data.join("webview"))
            // Most tests do not measure whether this computer's GPU is faster.
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

    /// Process that started the application.
    pub fn driver(&self) -> u32 {
        self.driver.id()
    }

    /// Time since the application was started.
    pub fn age(&self) -> Duration {
        processes::age(processes::below(self.driver())[0])
    }

    pub async fn close(self) {
        self.page.clone().close().await.unwrap();
    }

    /// Kills the application as a crash or a power cut would, without saving.
    pub fn kill(self) {}

    /// Elements that match a selector. The page may redraw one while the driver lists them; then
    /// the driver is asked again.
    pub async fn all(&self, selector: &str) -> Vec<Element> {
        let started = Instant::now();
        loop {
            match self.page.find_all(Locator::Css(selector)).await {
                Err(error) if error.is_stale_element_reference() && started.elapsed() < PATIENCE => {}
                found => return found.unwrap_or_else(|error| panic!("{selector}: {error}")),
            }
        }
    }

    pub async fn find(&self, name: &str) -> Element {
        self.first(&format!("[data-testid='{name}']")).await
    }

    /// Waits for the first element that matches a selector.
    async fn first(&self, selector: &str) -> Element {
        let started = Instant::now();
        loop {
            match self.page.wait().at_most(PATIENCE).for_element(Locator::Css(selector)).await {
                Err(error) if error.is_stale_element_reference() && started.elapsed() < PATIENCE => {}
                found => return found.unwrap_or_else(|error| panic!("{selector}: {error}")),
            }
        }
    }

    /// Finds an element that is not visible, such as the file input behind a button.
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

    /// Clicks an element. The page may redraw it or move something over it before the click; then
    /// the next match is clicked.
    async fn click_on(&self, selector: &str) {
        let started = Instant::now();
        loop {
            match self.first(selector).await.click().await {
                Ok(()) => return,
                Err(error) if started.elapsed() > PATIENCE => panic!("{selector}: {error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// State of the newest download in the library.
    pub async fn download(&self) -> String {
        self.attribute("[data-testid='download']", "data-state").await.unwrap_or_default()
    }

    /// Moves the pointer to a point of the page and turns the wheel towards the person, through the
    /// display.
    pub fn turn_wheel(&self, x: f64, y: f64, notches: usize) {
        let (x, y) = (format!("{x:.0}"), format!("{y:.0}"));
        let to = ["search", "--onlyvisible", "--name", "^Foretoken$", "mousemove", "--window", "%1", &x, &y];
        let notches = notches.to_string();
        self.send_input(&to);
        self.send_input(&["click", "--repeat", &notches, "--delay", "50", "5"]);
    }

    /// Presses keys, such as `ctrl+plus`, through the display, for shortcuts that the page does not
    /// handle alone. They go to the focused element rather than to a window, which `ctrl+q` closes
    /// before the keys are released.
    pub fn press(&self, keys: &str) {
        self.send_input(&["search", "--onlyvisible", "--name", "^Foretoken$", "windowfocus", "--sync"]);
        self.send_input(&["key", keys]);
    }

    /// Returns whether the application's window is on the display.
    pub fn is_visible(&self) -> bool {
        !self.windows_named("^Foretoken$").is_empty()
    }

    /// Returns whether the window for a quick question is on the display.
    pub fn is_quick_visible(&self) -> bool {
        !self.windows_named(QUICK).is_empty()
    }

    /// Sends keys to the window for a quick question, to which a window manager gives the focus.
    pub fn send_to_quick(&self, arguments: &[&str]) {
        self.send_input(&["search", "--onlyvisible", "--name", QUICK, "windowfocus", "--sync"]);
        self.send_input(arguments);
    }

    /// Takes Ctrl+Alt and a letter from all other programs on the display.
    pub fn grab_key(&self, letter: char) -> GrabbedKey {
        GrabbedKey::take(&self.display_name, letter)
    }

    /// Closes the window as its frame's button does: the application is asked to.
    pub fn request_close(&self) {
        for window in self.windows_named("^Foretoken$") {
            request_close(&self.display_name, window);
        }
    }

    /// Ids of the visible windows on the display whose name matches.
    fn windows_named(&self, name: &str) -> Vec<u32> {
        let find = ["search", "--onlyvisible", "--name", name];
        let found = Command::new("xdotool").args(find).env("DISPLAY", &self.display_name).output().unwrap();
        String::from_utf8(found.stdout).unwrap().lines().map(|id| id.parse().unwrap()).collect()
    }

    /// Starts the application once more and waits for the end of that.
    pub fn start_again(&self, data: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> ExitStatus {
        let mut start = Command::new(crate::application());
        start.args(arguments).env("DISPLAY", &self.display_name).env("FORETOKEN_DATA_DIR", data);
        start.envs(variables.iter().copied()).stderr(Stdio::null()).status().unwrap()
    }

    /// Sends keys or pointer events through the display to whatever is under the pointer or
    /// focused.
    pub fn send_input(&self, arguments: &[&str]) {
        let sent = Command::new("xdotool").args(arguments).env("DISPLAY", &self.display_name).status();
        let sent = sent.expect("xdotool is missing: `make setup-tests` installs what the window test needs");
        assert!(sent.success(), "xdotool {arguments:?}");
    }

    /// Copies a PNG file to the clipboard, as another program does.
    pub fn copy_picture(&self, file: &Path) {
        let arguments = ["-selection", "clipboard", "-t", "image/png", "-i"];
        let mut copy = Command::new("xclip");
        // It goes on in the background until the display ends.
        copy.args(arguments).arg(file).env("DISPLAY", &self.display_name).stdout(Stdio::null());
        let copied =
            copy.status().expect("xclip is missing: `make setup-tests` installs what the window test needs");
        assert!(copied.success(), "xclip {}", file.display());
    }

    /// Text of an element, including parts that are cut off, which the driver omits.
    pub async fn text(&self, name: &str) -> String {
        self.find(name).await;
        let script = "return document.querySelector(arguments[0])?.textContent ?? ''";
        self.evaluate(script, json!(format!("[data-testid='{name}']"))).await.as_str().unwrap().to_owned()
    }

    /// Attribute of the last matching element; `None` without an element or attribute.
    pub async fn attribute(&self, selector: &str, attribute: &str) -> Option<String> {
        let script = "const [selector, attribute] = arguments[0];
            return [...document.querySelectorAll(selector)].at(-1)?.getAttribute(attribute) ?? null";
        self.evaluate(script, json!([selector, attribute])).await.as_str().map(str::to_owned)
    }

    /// Reason of the drafting state: the header's pill shows a few words and gives screen readers
    /// the whole text.
    pub async fn why(&self) -> String {
        self.attribute("[data-testid='speed-pill'] [aria-label]", "aria-label").await.unwrap_or_default()
    }

    /// Scrolls an element to the middle of what it is in.
    pub async fn scroll_to(&self, name: &str) {
        let script = "document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })";
        self.evaluate(script, json!(format!("[data-testid='{name}']"))).await;
    }

    /// Unfolds a section of the inspector, if it is folded.
    pub async fn unfold(&self, section: &str) {
        let script = "const [section] = arguments;
            document.querySelector(`[data-testid='section-${section}'] [aria-expanded='false']`)?.click();";
        self.page.execute(script, vec![json!(section)]).await.unwrap();
    }

    /// Result of a script on the page, in one call, because the page may redraw between two.
    async fn evaluate(&self, script: &str, argument: serde_json::Value) -> serde_json::Value {
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

    /// Sends the text in the composer.
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

    /// Waits until the reply has ended and its last rounds, which may follow the stored reply, are
    /// there.
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
        serde_json::from_value(self.evaluate(script, json!("[data-testid='token-chip']")).await).unwrap()
    }

    pub async fn wait(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let started = Instant::now();
        while !holds().await {
            if started.elapsed() > PATIENCE {
                self.save_picture("failure").await;
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

    /// Takes a screenshot. Without compositing, the driver waits for the next paint, which may
    /// never happen: an invisible dot causes one.
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

    /// Picture of a visible part of the page. The driver's own screenshots leave canvases empty.
    pub async fn picture_of(&self, name: &str) -> Vec<u8> {
        let (left, top, width, height) = self.find(name).await.rectangle().await.unwrap();
        // Changes are painted a little later.
        tokio::time::sleep(Duration::from_millis(400)).await;
        crate::picture::part(&self.screenshot().await, Region { left, top, width, height })
    }

    /// Returns a PNG of the window for an animation.
    pub async fn frame(&self) -> Vec<u8> {
        tokio::time::sleep(Duration::from_millis(250)).await;
        self.screenshot().await
    }

    /// Saves a screenshot to target/e2e if pictures are kept or in `make nightly`, and to the
    /// documents if they have a picture of that name and pictures are kept.
    pub async fn photograph(&self, name: &str) {
        if crate::is_nightly() || crate::picture::are_kept() {
            self.save_picture(name).await;
        }
    }

    /// Saves a screenshot; see [`Self::photograph`].
    pub async fn save_picture(&self, name: &str) {
        let folder = crate::repository().join("target/e2e");
        std::fs::create_dir_all(&folder).unwrap();
        // Changes are painted a little later.
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

/// Runs after a failed test, too.
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

/// The present display, or one made for the test.
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
