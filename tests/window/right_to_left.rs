//! Right-to-left text in WebKit's layout.
#![cfg(target_os = "linux")]

use foretoken_tests::window::Window;
use serde_json::{Value, json};

/// Distance of the text in `selector` from its left and right edge, in CSS pixels.
async fn margins(window: &Window, selector: &str) -> (f64, f64) {
    let script = "const element = document.querySelector(arguments[0]);
        const range = document.createRange();
        range.selectNodeContents(element);
        const [words, box] = [range.getBoundingClientRect(), element.getBoundingClientRect()];
        return [words.left - box.left, box.right - words.right];";
    serde_json::from_value(window.page.execute(script, vec![json!(selector)]).await.unwrap()).unwrap()
}

#[tokio::test]
async fn arabic_stands_on_the_right_and_english_on_the_left() {
    let folder = tempfile::tempdir().unwrap();
    let window = Window::open(folder.path()).await;
    for (text, direction) in [("مرحبا، كيف حالك؟ `f(x);`", "rtl"), ("Hello, how are you?", "ltr")]
    {
        window.click("new-chat").await;
        window.type_into("composer", text).await;
        let script = "return getComputedStyle(document.querySelector('[data-testid=composer]')).direction";
        assert_eq!(window.page.execute(script, vec![]).await.unwrap(), Value::from(direction));
        window.submit().await;
        window.wait_for_reply(1).await;
        let (left, right) = margins(&window, "[aria-current=page] .words").await;
        assert_eq!(right < left, direction == "rtl", "the title of {text}: {left}, {right}");
        let script =
            "return getComputedStyle(document.querySelector('[data-testid=message-user]')).direction";
        assert_eq!(window.page.execute(script, vec![]).await.unwrap(), Value::from(direction));
        window.photograph(&format!("written-{direction}")).await;
    }
    window.close().await;
}
