//! Display of a reply in the real window: its tokens, its numbers, the check against the target,
//! and the rounds that wrote it.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use fantoccini::key::Key;
use foretoken_store::Store;
use foretoken_tests::picture;
use foretoken_tests::window::Window;
use serde_json::{Value, json};

use crate::e2e::always_drafting;

/// Largest share of a picture that may differ from the reference.
const DIFFERENCE: f64 = 0.002;

/// A window of a user with a downloads folder.
struct Desk {
    window: Window,
    folder: tempfile::TempDir,
}

impl Desk {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        always_drafting(&data);
        let configuration = folder.path().join("config");
        std::fs::create_dir_all(&configuration).unwrap();
        let downloads = folder.path().join("downloads").display().to_string();
        std::fs::write(configuration.join("user-dirs.dirs"), format!("XDG_DOWNLOAD_DIR=\"{downloads}\"\n"))
            .unwrap();
        let window = Window::open_with(&data, &[("XDG_CONFIG_HOME", configuration.to_str().unwrap())]).await;
        Self { window, folder }
    }

    /// The only file whose name begins with `beginning`, once the page has reported that it is
    /// saved.
    async fn saved(&self, beginning: &str) -> PathBuf {
        let downloads = self.folder.path().join("downloads");
        let said = async || self.window.body().await.contains(beginning);
        self.window.wait("the page says what was saved", said).await;
        let mut found = std::fs::read_dir(downloads)
            .unwrap()
            .map(|file| file.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(beginning));
        let path = found.next().expect("nothing was saved");
        assert_eq!(found.next(), None);
        path
    }

    async fn import(&self, path: &Path) {
        let input = self.window.find_hidden("trace-import").await;
        input.send_keys(path.to_str().unwrap()).await.unwrap();
    }
}

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(name)
}

/// Text in the last line of a trace.
fn last_text(path: &Path) -> String {
    let lines = std::fs::read_to_string(path).unwrap();
    let done: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    done["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_reply_is_proved_to_be_what_the_target_writes_without_drafts() {
    let desk = Desk::open().await;
    let window = &desk.window;
    window.ask("Tell me a story about a fox.").await;
    window.wait_for_reply(1).await;
    window.click("reply-more").await;
    window.click("check-reply").await;
    assert_eq!(verdict(window).await, "identical");
    assert!(window.text("check-result").await.contains("120"));
    window.photograph("check").await;

    window.configure(json!({ "sampling": { "temperature": 0.8 } })).await;
    window.ask("Tell me a story about a cat.").await;
    window.wait_for_reply(1).await;
    window.click("reply-more").await;
    window.click("check-reply").await;
    assert_eq!(verdict(window).await, "distribution");
    assert!(window.text("check-result").await.contains("probabilities"));
    desk.window.close().await;
}

async fn verdict(window: &Window) -> String {
    window.find("check-result").await;
    window.attribute("[data-testid='check-result']", "data-verdict").await.unwrap()
}

#[tokio::test]
async fn the_heatmap_of_a_trace_is_the_picture_it_always_was() {
    let desk = Desk::open().await;
    let window = &desk.window;
    desk.import(&trace("trees.jsonl")).await;
    window.wait("the heatmap is drawn", async || window.rounds().await > 0).await;
    // The pointer is outside the page, and fonts are loaded.
    window
        .page
        .execute_async("document.fonts.ready.then(() => requestAnimationFrame(arguments[0]))", vec![])
        .await
        .unwrap();
    let same = async || picture::difference("heatmap", &window.picture_of("heatmap").await) <= DIFFERENCE;
    window.wait("the picture is the one that was kept", same).await;
    window.photograph("heatmap").await;
    desk.window.close().await;
}

/// Painted share of the heatmap's plot, without row numbers.
async fn painted(window: &Window) -> f64 {
    let script = "const canvas = document.querySelector(\"[data-testid='heatmap']\");
        const left = Math.ceil(20 * devicePixelRatio);
        const { data } = canvas.getContext('2d').getImageData(left, 0, canvas.width - left, canvas.height);
        let painted = 0;
        for (let at = 3; at < data.length; at += 4) painted += data[at] > 0 ? 1 : 0;
        return painted / (data.length / 4);";
    window.page.execute(script, vec![]).await.unwrap().as_f64().unwrap()
}

/// Distance of the last reply's end below the view, in CSS pixels.
async fn out_of_view(window: &Window) -> f64 {
    let script = "const bottom = (selector) => [...document.querySelectorAll(selector)].at(-1).getBoundingClientRect().bottom;
        return bottom(\"[data-testid='message-reply'] footer\") - bottom('[data-scroller]');";
    window.page.execute(script, vec![]).await.unwrap().as_f64().unwrap()
}

/// Lower limit of the painted share of a plot that is full of rounds.
const PAINTED: f64 = 0.03;

async fn wait_for_paint(window: &Window, after: &str) {
    let is_painted = async || painted(window).await > PAINTED;
    window.wait(&format!("the heatmap is painted after {after}"), is_painted).await;
}

#[tokio::test]
async fn the_heatmap_stays_when_long_replies_end_and_are_fetched_again() {
    let desk = Desk::open().await;
    let window = &desk.window;
    let endless = foretoken_tests::endless_model(desk.folder.path()).path().display().to_string();
    let change = json!({
        "added_models": [endless], "target": endless, "drafts": { &endless: "ngram" }, "max_tokens": 800,
        "speculation": foretoken_engine::speculation::Speculation::fixed(4),
    });
    window.configure(change).await;
    for replies in 1..=3 {
        window.ask("Go on and on.").await;
        window.wait_for_reply(replies).await;
        assert!(window.rounds().await > 60, "the reply is too short to show anything");
        wait_for_paint(window, &format!("reply {replies} has ended")).await;
        // Its messages are loaded again, as other objects with the same trace.
        window.click("conversation-item").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        wait_for_paint(window, &format!("reply {replies} was fetched")).await;
    }
    window.photograph("long-reply").await;
    desk.window.close().await;
}

/// Watches the positions of header, inspector parts and composer in every frame; `window.moved`
/// lists what moved or changed its size, with the pixels.
const WATCH: &str = "window.moved = [];
    const parts = ['header', 'target-picker', 'draft-picker', 'speed-pill', 'reply-view', 'hero', 'heatmap',
        'legend-outcomes', 'section-speed', 'section-governor', 'section-times', 'section-memory',
        'section-details', 'composer'];
    const boxOf = (name) => {
        const box = document.querySelector(`[data-testid='${name}']`).getBoundingClientRect();
        return [box.left, box.top, box.width, box.height];
    };
    const before = new Map(parts.map((name) => [name, boxOf(name)]));
    const look = () => {
        for (const [name, was] of before) {
            const by = Math.max(...boxOf(name).map((side, at) => Math.abs(side - was[at])));
            if (by > 0) window.moved.push(`${name}: ${by}`);
        }
        if (window.moved.length === 0) requestAnimationFrame(look);
    };
    look();";

#[tokio::test]
async fn nothing_beside_the_text_moves_while_a_reply_is_written() {
    let desk = Desk::open().await;
    let window = &desk.window;
    window.open_page("?replay&rate=200").await;
    window.ask("Go on and on.").await;
    window.wait("the reply is being written", async || window.rounds().await > 0).await;
    window.page.execute(WATCH, vec![]).await.unwrap();
    window.wait("hundreds of rounds have come", async || window.rounds().await > 300).await;
    window.click("stop").await;
    window.wait_for_reply(1).await;
    let moved = window.page.execute("return window.moved;", vec![]).await.unwrap();
    assert_eq!(moved, json!([]), "these moved, in pixels");
    desk.window.close().await;
}

#[tokio::test]
async fn a_long_stream_survives_a_window_that_is_resized_and_goes_out_of_sight() {
    let desk = Desk::open().await;
    let window = &desk.window;
    window.open_page("?replay&rate=2000&rounds=100000").await;
    window.ask("Go on and on.").await;
    window.wait("a hundred thousand rounds are shown", async || window.rounds().await > 100_000).await;
    for (width, height) in [(900, 600), (1500, 900), (1280, 832)] {
        let before = window.rounds().await;
        window.page.set_window_size(width, height).await.unwrap();
        // Without a column of its own, the inspector, whose heatmap counts the rounds, floats once
        // it is opened.
        if width < 1100 {
            window.click("inspector-show").await;
        }
        window.wait("it goes on", async || window.rounds().await > before + 100).await;
        wait_for_paint(window, &format!("the window has {width} x {height}")).await;
        let in_view = async || out_of_view(window).await <= 0.5;
        window.wait(&format!("the end of the text is in view at {width} x {height}"), in_view).await;
    }
    let hide = "window.isHidden = arguments[0];
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => window.isHidden });
        document.dispatchEvent(new Event('visibilitychange'));";
    window.page.execute(hide, vec![json!(true)]).await.unwrap();
    // A frame that was already under way is the last.
    let mut unseen = window.rounds().await;
    let still = async || {
        let before = std::mem::replace(&mut unseen, window.rounds().await);
        tokio::time::sleep(Duration::from_secs(2)).await;
        window.rounds().await == before
    };
    window.wait("nothing is painted any more that nobody sees", still).await;
    window.page.execute(hide, vec![json!(false)]).await.unwrap();
    window.wait("all of it is shown", async || window.rounds().await > unseen + 500).await;
    window.click("stop").await;
    window.wait_for_reply(1).await;
    assert!(!window.body().await.contains("are missing here"), "rounds were lost");
    wait_for_paint(window, "the reply has ended").await;
    window.wait("the end of the reply is in view", async || out_of_view(window).await <= 0.5).await;
    desk.window.close().await;
}

#[tokio::test]
async fn a_reply_is_replayed_round_by_round_exported_and_imported_again() {
    let desk = Desk::open().await;
    let window = &desk.window;
    window.ask("Tell me a story about a lighthouse.").await;
    window.wait_for_reply(1).await;
    let rounds = window.rounds().await;
    assert!(rounds > 20);

    window.click("reply-more").await;
    window.click("replay-open").await;
    window.wait("the replay begins", async || window.rounds().await < rounds).await;
    let play = window.find("replay-scrubber").await;
    play.send_keys(&Key::Home.to_string()).await.unwrap();
    window.wait("the scrubber is at the beginning", async || window.rounds().await <= 1).await;
    let before = window.rounds().await;
    window.click("replay-next").await;
    window.wait("one round more is shown", async || window.rounds().await == before + 1).await;
    window.click("replay-previous").await;
    window.wait("and one fewer", async || window.rounds().await == before).await;
    play.send_keys(&Key::End.to_string()).await.unwrap();
    window.wait("all rounds are shown at the end", async || window.rounds().await == rounds).await;
    for _ in 0..rounds / 3 {
        window.click("replay-previous").await;
    }
    window.photograph("replay").await;
    window.click("replay-close").await;

    window.click("reply-more").await;
    window.click("trace-export").await;
    let path = desk.saved("foretoken-trace-").await;
    let text = last_text(&path);
    let store = Store::open(&desk.folder.path().join("data/foretoken.db")).unwrap();
    let messages = store.messages(store.conversations().unwrap()[0].id).unwrap();
    assert_eq!(messages[1].text, text);

    window.click("new-chat").await;
    desk.import(&path).await;
    window.wait("the trace is back", async || window.rounds().await == rounds).await;
    desk.window.close().await;
}

#[tokio::test]
async fn tokens_keep_their_colours_in_markdown_and_nothing_in_them_runs() {
    let desk = Desk::open().await;
    let window = &desk.window;
    let path = trace("markdown.jsonl");
    desk.import(&path).await;
    window.wait("the tokens are drawn", async || window.outcomes().await.len() > 100).await;
    let script = "return [...document.querySelectorAll(\"[data-testid='token-chip']\")]
        .filter((chip) => !['rejected', 'discarded'].includes(chip.dataset.outcome))
        .map((chip) => chip.dataset.text ?? chip.textContent).join('')";
    let shown = window.page.execute(script, vec![]).await.unwrap();
    assert_eq!(shown.as_str().unwrap(), last_text(&path));
    for element in ["table", "pre", "li", "blockquote", "h1"] {
        assert!(!window.all(&format!("[data-testid='token-view'] {element}")).await.is_empty(), "{element}");
    }
    window.photograph("tokens").await;

    window.click("toggle-tokens").await;
    window
        .wait("the text is shown", async || !window.all("[data-testid='reply-text'] .katex").await.is_empty())
        .await;
    window.photograph("text").await;
    let nothing_ran = window.page.execute("return window.hacked === undefined", vec![]).await.unwrap();
    assert_eq!(nothing_ran, json!(true));
    for selector in ["article script", "article img", "article a[href^='javascript']"] {
        assert!(window.all(selector).await.is_empty(), "{selector}");
    }
    desk.window.close().await;
}

#[tokio::test]
async fn a_trace_that_cannot_be_read_is_refused_in_a_sentence() {
    let desk = Desk::open().await;
    let window = &desk.window;
    let broken = desk.folder.path().join("broken.jsonl");
    let good = std::fs::read_to_string(trace("trees.jsonl")).unwrap();
    let newer = good.replacen("\"version\":1", "\"version\":99", 1);
    for (text, sentence) in [("", "empty"), ("not JSON at all\n", "JSON"), (&newer, "99")] {
        std::fs::write(&broken, text).unwrap();
        desk.import(&broken).await;
        window.wait("the sentence is shown", async || window.body().await.contains(sentence)).await;
        assert_eq!(window.rounds().await, 0);
        window.page.refresh().await.unwrap();
        window.open_page("").await;
    }
    // A file that is cut in the middle of a line is shown up to there, with a notice.
    std::fs::write(&broken, &good[..good.len() / 2]).unwrap();
    desk.import(&broken).await;
    window.wait("what is there is drawn", async || window.rounds().await > 3).await;
    window.find("trace-notice").await;
    desk.window.close().await;
}

#[tokio::test]
async fn two_set_ups_meet_in_the_arena_and_the_outcome_is_kept() {
    let desk = Desk::open().await;
    let window = &desk.window;
    window.click("arena-open").await;
    window.type_into("arena-prompt", "Tell me a story about a fox.").await;
    window.click("arena-start").await;
    window.find("arena-verdict").await;
    window.photograph("arena").await;
    window.click("arena-export").await;
    let arena: Value =
        serde_json::from_slice(&std::fs::read(desk.saved("foretoken-arena-").await).unwrap()).unwrap();
    assert_eq!(arena["first_difference"], Value::Null, "greedy texts are the same");
    assert!(arena["runs"].as_array().unwrap().len() >= 2);
    window.click("arena-close").await;
    window.open_page("").await;
    window.click("arena-open").await;
    window.find("arena-saved-open").await;
    desk.window.close().await;
}

#[tokio::test]
async fn the_inspector_tells_what_drafting_saved_and_why_and_without_traces_the_numbers_stay() {
    let desk = Desk::open().await;
    let window = &desk.window;
    window.ask("Tell me a story about a fox.").await;
    window.wait_for_reply(1).await;
    window.ask("Count from one to twelve.").await;
    window.wait_for_reply(2).await;
    for section in ["governor", "memory", "details"] {
        window.unfold(section).await;
    }
    assert!(window.text("stat-acceptance").await.ends_with('%'));
    assert!(!window.text("stat-saved").await.is_empty());
    for name in ["conversation-numbers", "length-reasons", "memory", "written-with"] {
        assert!(!window.text(name).await.is_empty(), "{name}");
    }
    window.photograph("inspector").await;

    window.click("settings-open").await;
    window.click("settings-tab-data").await;
    window
        .wait("two traces are counted", async || window.text("trace-storage").await.contains("2 replies"))
        .await;
    window.click("delete-all-traces").await;
    window.click("confirm-yes").await;
    window.wait("no trace is left", async || !window.text("trace-storage").await.contains("2 replies")).await;
    window.open_page("").await;
    window.click("conversation-item").await;
    window.find("without-rounds").await;
    window.unfold("details").await;
    assert!(window.text("stat-acceptance").await.ends_with('%'));
    desk.window.close().await;
}
