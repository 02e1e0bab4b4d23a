//! Chats with an installed Foretoken, which FORETOKEN_APPLICATION names, as its first user would: with the model it
//! brings, and nothing set up. Run by scripts/test-package.sh, on Linux: elsewhere the window has no driver.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

fn main() {
    #[cfg(target_os = "linux")]
    chat();
}

#[cfg(target_os = "linux")]
#[tokio::main(flavor = "current_thread")]
async fn chat() {
    use foretoken_tests::application;
    use foretoken_tests::window::Window;

    let data = tempfile::tempdir().unwrap();
    let started = std::time::Instant::now();
    let window = Window::open_installed(data.path()).await;
    println!("{} answers {:.1} s after its start", application().display(), started.elapsed().as_secs_f64());
    let line = window.text("why-line").await;
    assert!(line.contains("SmolLM2"), "it begins with the model it brings: {line}");
    window.ask("What is the capital of France?").await;
    window.wait_for_reply(1).await;
    let rounds = window.rounds().await;
    assert!(rounds > 0, "it wrote nothing");
    window.photograph("installed").await;
    window.close().await;
    println!("it was asked for the capital of France, and replied in {rounds} rounds");
}
