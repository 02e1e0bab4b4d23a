//! The smallest window where a desktop draws everything larger: nothing that can be used is cut off.
#![cfg(target_os = "linux")]

use foretoken_tests::window::Window;
use serde_json::json;

use crate::accessibility::SCREENS;

/// What can be used and is cut off, a line for each: it reaches out of the window, and nothing around it scrolls.
async fn cut_off(window: &Window) -> Vec<String> {
    let script = "const scrolls = (element, way) => element !== null &&
            (/auto|scroll/.test(getComputedStyle(element)[`overflow-${way}`]) ||
                scrolls(element.parentElement, way));
        const out = (element) => {
            const { left, right, top, bottom, width, height } = element.getBoundingClientRect();
            if (width === 0 || height === 0 || !element.checkVisibility()) return false;
            const wide = (left < -1 || right > innerWidth + 1) && !scrolls(element, 'x');
            const high = (top < -1 || bottom > innerHeight + 1) && !scrolls(element, 'y');
            return wide || high;
        };
        const found = [...document.querySelectorAll('button, input, textarea, a, [role=tab], h1, h2')].filter(out);
        if (document.documentElement.scrollWidth > innerWidth) found.push(document.documentElement);
        return found.map((element) => element.outerHTML.slice(0, 200));";
    serde_json::from_value(window.page.execute(script, vec![]).await.unwrap()).unwrap()
}

#[tokio::test]
async fn nothing_is_cut_off_in_the_smallest_window_at_125_to_200_percent() {
    // Sharper, as on displays with more pixels, and larger letters, which is how desktops without that scale.
    for (scale, letters, text_size) in [("2", "1", 100), ("1", "1.25", 100), ("1", "1.5", 100), ("1", "1", 160)] {
        let folder = tempfile::tempdir().unwrap();
        let scaled = [("GDK_SCALE", scale), ("GDK_DPI_SCALE", letters)];
        let window = Window::open_with(folder.path(), &scaled).await;
        window.page.set_window_size(900, 600).await.unwrap();
        window.configure(json!({ "appearance": { "theme": "dark", "text_size": text_size } })).await;
        window.ask("Tell me a story about a fox.").await;
        window.wait_for_reply(1).await;
        for (screen, clicks) in SCREENS {
            window.open_page("").await;
            window.click("conversation-item").await;
            for name in clicks {
                window.click(name).await;
            }
            window.photograph(&format!("scaled-{scale}-{letters}-{text_size}-{}", screen.replace(' ', "-"))).await;
            assert_eq!(cut_off(&window).await, [""; 0], "{screen}, {scale}, {letters}, {text_size} %");
        }
        window.close().await;
    }
}
