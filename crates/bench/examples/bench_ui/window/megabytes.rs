//! Longest block of the page's thread by a reply of a megabyte.

use std::path::Path;
use std::time::Duration;

use fantoccini::wd::TimeoutConfiguration;
use foretoken_store::{Ending, Store};
use foretoken_tests::window::Window;

/// Length of each reply in bytes.
const LENGTH: usize = 1 << 20;

/// Kinds of text with the piece that repeats.
const KINDS: [(&str, &str); 12] = [
    ("words", "word "),
    ("paragraphs", "Some words of a paragraph, and *some* more.\n\n"),
    ("lines", "a b c\n"),
    ("list items", "- a\n"),
    ("rows of one table", "| a | b |\n|---|---|\n| c | d |\n"),
    ("code", "```js\nlet a = 1;\n```\n"),
    ("one letter", "a"),
    ("stars", "*a "),
    ("links", "[a](b) "),
    ("formulas", "$a$ formula "),
    ("large formulas", "$$\\frac{a}{b}$$\n\n"),
    ("two dollars without end", "$$x\n"),
];

/// Stores a conversation for each kind of text.
pub fn fill(data: &Path) {
    std::fs::create_dir_all(data).unwrap();
    let mut store = Store::open(&data.join("foretoken.db")).unwrap();
    for (name, piece) in KINDS {
        let (_, reply) = store.ask(None, name, "Starter", None).unwrap();
        let text = piece.repeat(LENGTH / piece.len());
        let ending = Ending { text: &text, finish: Some("stop"), summary: None, problem: None };
        store.finish_reply(reply.id, ending).unwrap();
    }
}

/// Opens each conversation, scrolls through it, and prints the longest time in which the page's
/// thread answered nothing.
pub async fn blocks(data: &Path) {
    println!(
        "a reply of 1 MB: longest block of the page's thread, ms, when it is opened, and when it is scrolled:"
    );
    let window = Window::open(data).await;
    let patient = TimeoutConfiguration::new(Some(Duration::from_secs(300)), None, None);
    window.page.update_timeouts(patient).await.unwrap();
    // The newest conversation is first.
    for (at, (name, _)) in KINDS.iter().rev().enumerate() {
        window.open_page("").await;
        let found = window.page.execute_async(SCRIPT, vec![at.into()]).await.unwrap();
        println!("  {name}: {:.0}, {:.0}", found[0].as_f64().unwrap(), found[1].as_f64().unwrap());
    }
    window.close().await;
}

/// Opens a conversation and scrolls to both ends of it and its middle; calls back with both blocks.
/// A message to the page itself answers as soon as its thread is free.
const SCRIPT: &str = "
    const [at, done] = arguments;
    let [longest, last, changed] = [0, performance.now(), performance.now()];
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        channel.port2.postMessage(null);
    };
    new MutationObserver(() => { changed = performance.now(); })
        .observe(document.body, { childList: true, subtree: true, characterData: true });
    const settled = (begin) => new Promise((resolve) => {
        const look = () => {
            const now = performance.now();
            if (now - Math.max(begin, changed) > 1500 || now - begin > 30000) resolve();
            else setTimeout(look, 100);
        };
        look();
    });
    const take = () => { const found = longest; longest = 0; return found; };
    const list = () => document.querySelector('[data-scroller]');
    channel.port2.postMessage(null);
    (async () => {
        await settled(performance.now());
        take();
        document.querySelectorAll(\"[data-testid='conversation-item']\")[at].click();
        await settled(performance.now());
        const opened = take();
        for (const part of [0, 0.5, 1, 0]) {
            const element = list();
            element.scrollTop = part * element.scrollHeight;
            await settled(performance.now());
        }
        done([opened, take()]);
    })();";
