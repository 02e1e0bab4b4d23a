//! Attempts to navigate the real window's page away, all of which fail.
#![cfg(target_os = "linux")]

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use foretoken_tests::window::Window;
use serde_json::json;

/// Log of the application.
fn log(data: &Path) -> String {
    let files = data.join("logs").read_dir().unwrap().map(|file| file.unwrap().path());
    files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// Requests of all connections. A connection without a request does not count: WebKit opens one
/// before it asks whether navigation is allowed.
fn asked(listener: &TcpListener) -> Vec<String> {
    let visitors = std::iter::from_fn(|| listener.accept().ok());
    let said = visitors.map(|(mut visitor, _)| {
        visitor.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut said = [0; 100];
        let length = visitor.read(&mut said).unwrap_or(0);
        String::from_utf8_lossy(&said[..length]).into_owned()
    });
    said.filter(|said| !said.is_empty()).collect()
}

/// Places links to `address` over the page, and elements that need no click.
const TRIES: &str = "const [address] = arguments;
    window.stayed = true;
    const link = (name, target, top) => {
        const one = document.createElement('a');
        Object.assign(one, { href: `${address}/${name}`, target, textContent: name });
        one.dataset.testid = `try-${name}`;
        one.style.cssText = `position: fixed; left: 400px; top: ${top}px; z-index: 9999; padding: 9px; background: red`;
        document.body.append(one);
    };
    link('link', '', 200);
    link('blank', '_blank', 260);
    const frame = document.createElement('iframe');
    frame.src = `${address}/frame`;
    const image = document.createElement('img');
    image.src = `${address}/image`;
    const form = document.createElement('form');
    form.action = `${address}/form`;
    document.body.append(frame, image, form);
    form.submit();
    fetch(`${address}/fetch`).catch(() => {});
    location.assign(`${address}/assigned`);";

#[tokio::test]
async fn no_link_and_no_script_takes_the_page_elsewhere_or_opens_another_window() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let window = Window::open(&data).await;

    window.page.execute(TRIES, vec![json!(address)]).await.unwrap();
    window.click("try-link").await;
    window.click("try-blank").await;
    for (refused, name) in [("not go to", "assigned"), ("not go to", "link"), ("open no window for", "blank")]
    {
        let refusal = format!("the page may {refused} {address}/{name}");
        window.wait(&refusal, async || log(&data).contains(&refusal)).await;
    }

    let here = window.page.execute("return [location.href, window.stayed]", vec![]).await.unwrap();
    assert_eq!(here, json!(["tauri://localhost", true]));
    assert_eq!(window.page.windows().await.unwrap().len(), 1);
    assert_eq!(asked(&listener), [""; 0], "a connection was made");
    window.close().await;
}
