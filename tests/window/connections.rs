//! Network connections of the application: none is made without a request of the user. Its sockets
//! are watched during ordinary use, and connections to a proxy or the hub reach a listener of the
//! test.
#![cfg(target_os = "linux")]

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use foretoken_tests::processes::below;
use foretoken_tests::window::Window;

use super::e2e::always_drafting;

/// Interval between checks, shorter than any name lookup or connection.
const EVERY: Duration = Duration::from_millis(5);

/// Watches the sockets of all processes that another has started.
struct Watch {
    ends: Arc<AtomicBool>,
    /// Remote addresses.
    found: Arc<Mutex<BTreeSet<String>>>,
    thread: JoinHandle<()>,
}

impl Watch {
    fn begin(root: u32, port: u16) -> Self {
        let (ends, found) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<BTreeSet<String>>>::default());
        let (end, seen) = (Arc::clone(&ends), Arc::clone(&found));
        let thread = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                seen.lock().unwrap().extend(connections(root, port));
                thread::sleep(EVERY);
            }
        });
        Self { ends, found, thread }
    }

    fn has_found(&self) -> bool {
        !self.found.lock().unwrap().is_empty()
    }

    fn end(self) -> BTreeSet<String> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.found.lock().unwrap().clone()
    }
}

/// Connections of the processes below `root` to other computers, or to `port` of this one. All
/// other local connections drive the window.
fn connections(root: u32, port: u16) -> BTreeSet<String> {
    let table = table();
    let ends = below(root).into_iter().flat_map(sockets).filter_map(|inode| table.get(&inode).cloned());
    let here =
        |to: &str| ["0100007F:", "00000000000000000000000001000000:"].iter().any(|ip| to.starts_with(ip));
    let listener = format!(":{port:04X}");
    ends.filter(|to| !to.ends_with(":0000") && (!here(to) || to.ends_with(&listener))).collect()
}

/// Remote address of every internet socket by its inode, as the kernel writes it.
fn table() -> HashMap<u64, String> {
    let mut table = HashMap::new();
    for kind in ["tcp", "tcp6", "udp", "udp6"] {
        let lines = fs::read_to_string(format!("/proc/net/{kind}")).unwrap_or_default();
        for line in lines.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let Some(inode) = fields.get(9).and_then(|inode| inode.parse().ok()) {
                table.insert(inode, fields[2].to_owned());
            }
        }
    }
    table
}

/// Inodes of a process's sockets; empty for a process that has ended.
fn sockets(process: u32) -> Vec<u64> {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect()
}

/// Ordinary use: a chat, with every page of the window opened.
async fn use_it(window: &Window, data: &Path) {
    window.ask("Tell me a story about a fox.").await;
    window.wait_for_reply(1).await;
    window.click("reply-more").await;
    window.click("check-reply").await;
    window.click("settings-open").await;
    for section in [
        "speculation",
        "sampling",
        "device",
        "system-prompt",
        "appearance",
        "server",
        "remote",
        "data",
        "updates",
    ] {
        window.click(&format!("settings-tab-{section}")).await;
    }
    window.click("settings-close").await;
    window.click("library-open").await;
    for section in ["installed", "get", "downloads", "advisor", "token"] {
        window.click(&format!("library-tab-{section}")).await;
    }
    assert!(data.join("logs").is_dir(), "logs are kept here");
}

#[tokio::test]
async fn nothing_is_connected_to_that_nobody_asked_for_and_what_is_asked_for_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = format!("http://127.0.0.1:{port}");
    let mut variables = vec![("HF_ENDPOINT", address.as_str())];
    variables.extend(
        ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|name| (name, address.as_str())),
    );
    // A release channel, which nothing connects to while the daily check is off.
    variables.extend([("FORETOKEN_UPDATE_ENDPOINT", address.as_str()), ("FORETOKEN_UPDATE_KEY", "key")]);
    // The driver's own connection to the window.
    variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1,localhost")));
    let window = Window::open_with(&data, &variables).await;
    let watch = Watch::begin(window.driver(), port);
    use_it(&window, &data).await;
    assert_eq!(watch.end(), BTreeSet::new(), "connections of a day");
    assert!(listener.accept().is_err(), "a connection was made");

    // The watch does see connections: the user searches the hub for a repository.
    let watch = Watch::begin(window.driver(), port);
    window.click("library-tab-get").await;
    window.type_into("repository-name", "owner/name").await;
    window.click("repository-find").await;
    let mut asked = None;
    window
        .wait("the hub is asked, and that is seen", async || {
            // The connection stays open as long as it is held.
            asked = asked.take().or_else(|| listener.accept().ok());
            asked.is_some() && watch.has_found()
        })
        .await;
    watch.end();
    window.close().await;
}
