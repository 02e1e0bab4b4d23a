//! Chats with an installed Foretoken, which FORETOKEN_APPLICATION names, as its first user would:
//! with the bundled model and no settings. `installed FOLDER CONVERSATIONS` keeps its data in a
//! folder that already has this many conversations, of this version or an older one, and starts one
//! more. Run by scripts/test-package.sh, on Linux: elsewhere the window has no driver.
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

    let [_, data, count] = &std::env::args().collect::<Vec<_>>()[..] else {
        panic!("expected a folder and how many conversations are in it")
    };
    let count: usize = count.parse().unwrap();
    let window = Window::open_installed(data.as_ref()).await;
    println!("{} answers {:.2} s after its start", application().display(), window.age().as_secs_f64());
    let line = window.why().await;
    assert!(line.contains("SmolLM2"), "it begins with the model it brings: {line}");
    window
        .wait("the conversations are there", async || {
            window.all("[data-testid='conversation-item']").await.len() == count
        })
        .await;
    if count > 0 {
        window.click("conversation-item").await;
        window.wait_for_reply(1).await;
        println!("{count} conversations are there, and the newest opens");
        window.click("new-chat").await;
    }
    window.ask("What is the capital of France?").await;
    window.wait_for_reply(1).await;
    let rounds = window.rounds().await;
    assert!(rounds > 0, "it wrote nothing");
    window.save_picture("installed").await;
    window.close().await;
    println!("it was asked for the capital of France, and replied in {rounds} rounds");
}
