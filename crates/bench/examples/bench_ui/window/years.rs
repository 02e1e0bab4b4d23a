//! A window after years of use: time to start and time to search.

use std::path::Path;

use foretoken_store::{Node, Store, Tree};
use foretoken_tests::spread::Spread;
use foretoken_tests::window::Window;
use serde_json::json;

use super::painted::until_painted;

const CONVERSATIONS: usize = 1000;
/// Messages per conversation.
const MESSAGES: usize = 100;
/// Number of starts.
const STARTS: usize = 7;
/// Repetitions of each search.
const SEARCHES: usize = 10;
/// A rare word, a word in every message, only common words, and the first letter of most queries.
const QUERIES: [&str; 5] = ["zyzzyva", "governor", "the", "the of and a t", "t"];

/// Fills a data folder with conversations, whose texts are this project's documents.
pub fn fill(data: &Path) {
    let words = words();
    let mut store = Store::open(&data.join("foretoken.db")).unwrap();
    for number in 0..CONVERSATIONS {
        let nodes = (0..MESSAGES).map(|place| node(&words, number * MESSAGES + place, place)).collect();
        let said = 1_600_000_000_000 + number as i64 * 86_400_000;
        let title = format!("Conversation {number}");
        let tree = Tree { title, named: true, created_at: said, updated_at: said, nodes, ..Tree::default() };
        let added = store.add_hidden(&tree).unwrap();
        store.show_added(&[(added, None)]).unwrap();
    }
}

fn words() -> Vec<String> {
    let folder = foretoken_tests::repository().join("docs");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Questions of 20 words and replies of 180, each from another part of the documents.
fn node(words: &[String], number: usize, place: usize) -> Node {
    let reply = place % 2 == 1;
    let length = if reply { 180 } else { 20 };
    let begin = number * 7919 % (words.len() - length);
    Node {
        parent: place.checked_sub(1),
        reply,
        text: words[begin..begin + length].join(" "),
        finish: reply.then(|| "stop".to_owned()),
        target: reply.then(|| "Starter".to_owned()),
        ..Node::default()
    }
}

/// Prints the time from the start of the process until the window accepts a message.
pub async fn starting(data: &Path) {
    let mut times = Spread::default();
    for _ in 0..STARTS {
        let window = Window::open(data).await;
        times.add(window.age().as_secs_f64() * 1000.0);
        window.close().await;
    }
    println!("starting with {CONVERSATIONS} conversations: ready after, ms: {times}");
}

/// Prints the time of a search: of the request, and from the last letter to the displayed results.
pub async fn searching(window: &Window) {
    println!("searching {} messages:", CONVERSATIONS * MESSAGES);
    for query in QUERIES {
        let (mut asked, mut seen, mut hits) = (Spread::default(), Spread::default(), 0);
        for _ in 0..SEARCHES {
            let script = "const [query, done] = arguments;
                const begin = performance.now();
                window.__TAURI_INTERNALS__.invoke('search_messages', { query })
                    .then((hits) => done([performance.now() - begin, hits.length]));";
            let found = window.page.execute_async(script, vec![json!(query)]).await.unwrap();
            asked.add(found[0].as_f64().unwrap());
            hits = found[1].as_u64().unwrap();
            seen.add(seen_after(window, query).await);
        }
        println!("  {query:?}: {hits} hits; answered after, ms: {asked}; on the screen after, ms: {seen}");
    }
}

/// Milliseconds from a query in the field to the end of the frame that shows its results.
async fn seen_after(window: &Window, query: &str) -> f64 {
    let script = format!(
        "const [query, done] = arguments;
        {}
        const field = document.querySelector(\"[data-testid='search']\");
        const nav = field.closest('nav');
        const put = (text) => {{ field.value = text; field.dispatchEvent(new Event('input', {{ bubbles: true }})); }};
        put('');
        const results = () => nav.querySelector(\"#search-results, p[role='status']\");
        const is_there = () => results() && results().textContent !== before;
        let before;
        setTimeout(() => {{
            put(query);
            const begin = performance.now();
            requestAnimationFrame(() => {{
                before = results()?.id ? '' : results()?.textContent;
                const look = () => is_there() ? painted(begin).then(done) : requestAnimationFrame(look);
                look();
            }});
        }}, 100);",
        until_painted()
    );
    window.page.execute_async(&script, vec![json!(query)]).await.unwrap().as_f64().unwrap()
}
