//! How soon a letter that is typed while a reply streams is on the screen.

use std::time::Duration;

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use foretoken_tests::spread::Spread;
use foretoken_tests::window::Window;

use super::painted::until_painted;

/// What is typed: at each letter's turn the next question.
const TEXT: &str = "and what would have happened if nobody had come by that evening";
/// Between two letters, as a quick typist writes.
const PAUSE: Duration = Duration::from_millis(90);

/// Types into the composer, and prints how long each letter waited to be taken, and to be on the screen, as long as the
/// reply streams. The time of a key is the one that the system gave it.
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
