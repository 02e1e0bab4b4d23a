//! Cost of the window while a reply streams: `make bench-ui`. The meter is the page's own
//! (ui/src/meter.ts): a frame's cost is the time of the page's thread from its first callback to
//! the end of its rendering; a round's delay is the time from its arrival to the end of the frame
//! that showed it. FORETOKEN_BENCH_MODELS may name a folder with real models, which are then
//! measured, too.

mod megabytes;
mod painted;
mod speed;
mod taken;
mod typing;
mod years;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use foretoken_engine::decoder::{Reply, Request};
use foretoken_engine::draft::Drafters;
use foretoken_store::{Ending, Store};
use foretoken_tests::spread::Spread;
use foretoken_tests::window::Window;
use foretoken_tests::{chat_prompt, decoder, model_drafter, starter_target};
use painted::until_painted;
use serde_json::Value;
use speed::Pair;

/// Time during which frames are counted.
const WATCHED: Duration = Duration::from_secs(15);
/// Number of times that a long conversation is opened.
const OPENINGS: usize = 5;

#[tokio::main(flavor = "current_thread")]
pub async fn run() {
    let folder = tempfile::tempdir().unwrap();
    let models =
        std::env::var_os("FORETOKEN_BENCH_MODELS").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    for (number, pair) in Pair::all(models.as_deref()).iter().enumerate() {
        pair.measure(&folder.path().join(number.to_string())).await;
    }
    let data = folder.path().join("data");
    years::fill(&data);
    many_messages(&data, 500);
    years::starting(&data).await;
    speed::idle(&data).await;
    let window = Window::open(&data).await;
    years::searching(&window).await;
    println!("painting a reply of 2,000 tokens/s, heatmap, token view and numbers open:");
    painting(&window, "rate=2000").await;
    println!("the same behind 100,000 rounds:");
    painting(&window, "rate=2000&rounds=100000").await;
    typing::while_it_streams(&window).await;
    opening(&window).await;
    window.close().await;
    let data = folder.path().join("megabytes");
    megabytes::fill(&data);
    megabytes::blocks(&data).await;
}

/// Makes the page play an endless reply, and prints the cost of its frames.
async fn painting(window: &Window, options: &str) {
    window.open_page(&format!("?replay&meter&{options}")).await;
    window.ask("Go on and on.").await;
    window.wait("the reply streams", async || window.rounds().await > 1000).await;
    let measured = measure(window, WATCHED).await;
    let figure = |name: &str| measured[name].as_f64().unwrap();
    println!(
        "  {} frames in {WATCHED:?}: median {:.1} ms, p99 {:.1} ms, worst {:.1} ms",
        measured["frames"],
        figure("median_ms"),
        figure("p99_ms"),
        figure("worst_ms")
    );
    println!(
        "  {} rounds: painted after median {:.1} ms, p99 {:.1} ms",
        measured["rounds"],
        figure("delay_median_ms"),
        figure("delay_p99_ms")
    );
}

/// Opens a conversation of 500 messages, and prints the time until its end is displayed and until
/// all of it is on the page.
async fn opening(window: &Window) {
    let (mut end, mut all) = (Spread::default(), Spread::default());
    for _ in 0..OPENINGS {
        window.open_page("").await;
        let script = format!(
            "const done = arguments[0];
            {}
            const begin = performance.now();
            const shown = () => document.querySelectorAll(\"[data-testid='message-reply']\").length;
            const until = (count) => new Promise((resolve) => {{
                const look = () =>
                    shown() < count ? requestAnimationFrame(look) : painted(begin).then(resolve);
                look();
            }});
            document.querySelector(\"[data-testid='conversation-item']\").click();
            until(1).then((first) => until(250).then((all) => done([first, all])));",
            until_painted()
        );
        let found = window.page.execute_async(&script, vec![]).await.unwrap();
        end.add(found[0].as_f64().unwrap());
        all.add(found[1].as_f64().unwrap());
    }
    println!(
        "opening a conversation of 500 messages: its end is painted after, ms: {end}; all is on the page after, ms: {all}"
    );
}

async fn measure(window: &Window, time: Duration) -> Value {
    window.page.execute("window.foretokenMeter.start()", vec![]).await.unwrap();
    tokio::time::sleep(time).await;
    window.page.execute("return window.foretokenMeter.stop()", vec![]).await.unwrap()
}

/// Creates a conversation of `count` messages, each reply with its trace.
fn many_messages(data: &Path, count: usize) {
    let Reply { text, rounds, summary, .. } = written();
    let rounds: Vec<(u32, String)> =
        rounds.iter().map(|round| (round.index, serde_json::to_string(round).unwrap())).collect();
    let summary = serde_json::to_string(&summary).unwrap();
    let mut store = Store::open(&data.join("foretoken.db")).unwrap();
    let mut conversation = None;
    for _ in 0..count / 2 {
        let (_, reply) = store
            .ask(conversation, "Tell me a story about a fox.", "Starter", Some("Starter draft"))
            .unwrap();
        conversation = Some(reply.conversation);
        store.append_rounds(reply.id, &text, &rounds).unwrap();
        let ending = Ending { text: &text, finish: Some("stop"), summary: Some(&summary), problem: None };
        store.finish_reply(reply.id, ending).unwrap();
    }
}

fn written() -> Reply {
    let source = starter_target();
    let mut decoder = decoder(&source);
    let mut drafters = Drafters::one(model_drafter(decoder.tokenizer()));
    let prompt = chat_prompt(&source, decoder.tokenizer(), "Tell me a story about a fox.");
    let request = Request { max_tokens: Some(120), ..Request::new(prompt) };
    decoder.reply(&request, &mut drafters, &mut |_| ControlFlow::Continue(())).unwrap()
}
