//! The mouse wheel in the real window. A driver scrolls by script and cannot test the wheel: these
//! events come through the display, as those of a mouse do.
#![cfg(target_os = "linux")]

use foretoken_store::Store;
use foretoken_tests::window::Window;
use serde_json::json;

/// Scrollable areas: name, elements to click, and selector.
const PLACES: [(&str, &[&str], &str); 4] = [
    ("chat", &[], "main"),
    ("inspector", &[], "aside"),
    ("library", &["library-open"], "dialog[open]"),
    ("settings", &["settings-open"], "dialog[open]"),
];

/// Marks the largest scroller of a part, makes it long enough to scroll, and returns its middle.
const MARK: &str = "const [place] = arguments;
    const area = (element) => element.clientWidth * element.clientHeight;
    const scrollers = [...document.querySelectorAll(`${place}, ${place} *`)]
        .filter((element) => /auto|scroll/.test(getComputedStyle(element).overflowY))
        .sort((one, other) => area(other) - area(one));
    const filler = document.createElement('div');
    filler.style.cssText = 'height: 3000px; flex: none';
    scrollers[0].append(filler);
    scrollers[0].scrollTop = 0;
    scrollers[0].dataset.wheeled = place;
    const box = scrollers[0].getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];";

/// Areas in which three notches of the wheel scroll nothing.
async fn dead_places(variables: &[(&str, &str)]) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut store = Store::open(&data.join("foretoken.db")).unwrap();
    store.ask(None, &*"A line of a long question.\n".repeat(200), "starter", None).unwrap();
    drop(store);
    let window = Window::open_with(&data, variables).await;
    let mut dead = Vec::new();
    for (name, clicks, place) in PLACES {
        window.open_page("").await;
        for click in ["conversation-item"].iter().chain(clicks) {
            window.click(click).await;
        }
        window.wait("it is open", async || !window.all(place).await.is_empty()).await;
        // A panel that was just opened may still be filled, which scrolls it.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let middle = window.page.execute(MARK, vec![json!(place)]).await.unwrap();
        let [x, y] = serde_json::from_value::<[f64; 2]>(middle).unwrap();
        let script = "return document.querySelector('[data-wheeled]').scrollTop";
        let started = std::time::Instant::now();
        // On a busy computer the window may not be under the pointer yet.
        let scrolled = loop {
            window.turn_wheel(x, y, 3);
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            let top = window.page.execute(script, vec![]).await.unwrap().as_f64().unwrap();
            if top > 0.0 || started.elapsed() > std::time::Duration::from_secs(10) {
                break top;
            }
        };
        if scrolled == 0.0 {
            dead.push(name);
        }
    }
    dead
}

#[tokio::test]
async fn the_wheel_scrolls_everywhere_without_a_gpu_device() {
    // As on a computer without a GPU.
    assert_eq!(dead_places(&[("LIBGL_ALWAYS_SOFTWARE", "1")]).await, [""; 0]);
}

#[tokio::test]
async fn the_wheel_scrolls_everywhere_where_webkit_composites() {
    assert_eq!(dead_places(&[("WEBKIT_FORCE_COMPOSITING_MODE", "1")]).await, [""; 0]);
}
