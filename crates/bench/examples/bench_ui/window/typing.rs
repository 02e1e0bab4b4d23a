//! Latency of typed letters while a reply streams.

use std::time::Duration;

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use foretoken_tests::spread::Spread;
use foretoken_tests::window::Window;

use super::painted::until_painted;

/// Typed text.
const TEXT: &str = "and what would have happened if nobody had come by that evening";
/// Pause between two letters of a quick typist.
const PAUSE: Duration = Duration::from_millis(90);

/// Types into the composer, and prints for each letter the time until it is handled and until it is
/// displayed, as long as the reply streams. A key's time is the system's.
pub async fn while_it_streams(window: &Window) {
    window.find("composer").await.click().await.unwrap();
    let watch = format!(
        "{}
        const field = document.querySelector(\"[data-testid='composer']\");
        window.typed = {{ taken: [], shown: [] }};
        let pressed;
        field.addEventListener('keydown', (event) => {{ pressed = event.timeStamp; }}, true);
        field.addEventListener('input', () => {{
            if (!document.querySelector(\"[data-testid='stop']\")) return;
            const begin = pressed;
            window.typed.taken.push(performance.now() - begin);
            painted(begin).then((ms) => window.typed.shown.push(ms));
        }});",
        until_painted()
    );
    window.page.execute(&watch, vec![]).await.unwrap();
    let mut keys = KeyActions::new("keys".to_owned());
    for value in TEXT.chars() {
        keys = keys
            .then(KeyAction::Down { value })
            .then(KeyAction::Up { value })
            .then(KeyAction::Pause { duration: PAUSE });
    }
    window.page.perform_actions(keys).await.unwrap();
    let found = window.page.execute("return window.typed", vec![]).await.unwrap();
    let times = |name: &str| {
        let mut times = Spread::default();
        found[name].as_array().unwrap().iter().for_each(|ms| times.add(ms.as_f64().unwrap()));
        times
    };
    println!("  typing while it streams: a letter is taken after, ms: {}", times("taken"));
    println!("    and on the screen after, ms: {}", times("shown"));
}
