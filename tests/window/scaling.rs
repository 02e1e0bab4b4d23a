//! The smallest window on a desktop with enlarged text: no control is cut off.
#![cfg(target_os = "linux")]

use foretoken_tests::nightly_or;
use foretoken_tests::window::Window;
use serde_json::json;

use crate::accessibility::SCREENS;
use crate::e2e::always_drafting;

/// Controls that are cut off, one line each: they extend beyond the window or their part of it, and
/// nothing around them scrolls.
async fn cut_off(window: &Window) -> Vec<String> {
    let script = "const scrolls = (element, way, end) => element !== end &&
            (/auto|scroll/.test(getComputedStyle(element)[`overflow-${way}`]) ||
                scrolls(element.parentElement, way, end));
        const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
        const all = { left: 0, right: innerWidth };
        const out = (element) => {
            const box = element.getBoundingClientRect();
            if (box.width === 0 || box.height === 0 || !element.checkVisibility()) return false;
            const pane = element.closest('main, nav, aside, dialog') ?? document.body;
            const place = pane.getBoundingClientRect();
            const wide = !within(box, place) && !scrolls(element, 'x', pane.parentElement);
            const away = !within(place, all) && !scrolls(pane, 'x', null);
            const high = (box.top < -1 || box.bottom > innerHeight + 1) && !scrolls(element, 'y', null);
            return wide || away || high;
        };
        const found = [...document.querySelectorAll('button, input, textarea, a, [role=tab], h1, h2')].filter(out);
        // Both whole pixels; a zoomed page may be half a pixel wider than `innerWidth`.
        const root = document.documentElement;
        if (root.scrollWidth > Math.ceil(root.getBoundingClientRect().width)) found.push(root);
        return found.map((element) => element.outerHTML.slice(0, 200));";
    serde_json::from_value(window.page.execute(script, vec![]).await.unwrap()).unwrap()
}

/// Clicks without a pointer, because the driver's misses where text is enlarged. In a narrow window
/// the sidebar is opened first.
async fn press(window: &Window, name: &str) {
    let script = "const named = (name) => document.querySelector(`[data-testid='${name}']`);
        if (!named(arguments[0])) named('sidebar-show')?.click();";
    window.page.execute(script, vec![json!(name)]).await.unwrap();
    window.find(name).await;
    let script = "document.querySelector(`[data-testid='${arguments[0]}']`).click()";
    window.page.execute(script, vec![json!(name)]).await.unwrap();
}

#[tokio::test]
async fn nothing_is_cut_off_in_the_smallest_window_where_letters_are_larger() {
    // Desktops without fractional scales enlarge text instead; users can do so, too. Twice as many
    // pixels for everything change no layout.
    for (index, (letters, text_size)) in [("1.5", 100), ("1", 160)].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let scaled = [("GDK_DPI_SCALE", letters)];
        let data = folder.path().join("data");
        always_drafting(&data);
        let window = Window::open_with(&data, &scaled).await;
        window.page.set_window_size(900, 600).await.unwrap();
        window.configure(json!({ "appearance": { "theme": "dark", "text_size": text_size } })).await;
        window.ask("Tell me a story about a fox.").await;
        window.wait_for_reply(1).await;
        // Outside of nightly runs, every other screen each.
        for (screen, clicks) in SCREENS.into_iter().skip(nightly_or(0, index)).step_by(nightly_or(1, 2)) {
            window.open_page("").await;
            for name in ["conversation-item"].iter().chain(clicks) {
                press(&window, name).await;
            }
            assert_eq!(cut_off(&window).await, [""; 0], "{screen}, {letters}, {text_size} %");
        }
        window.close().await;
    }
}
