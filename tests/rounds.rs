//! Cost of a round beside its passes: neither memory nor time grows with the context. A binary of
//! its own, because it counts allocations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use foretoken_engine::decoder::{Decoder, Progress, Request};
use foretoken_engine::draft::{Drafters, ModelDrafter, NgramDrafter, RecyclingDrafter, Vocabulary};
use foretoken_engine::speculation::{Speculation, Staged, Tree};
use foretoken_model::ModelConfig;
use foretoken_model::sampling::Sampling;
use foretoken_tests::{TableModel, loaded, starter_target};

/// Allocator that counts requested bytes.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.fetch_add(size, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const VOCABULARY: usize = 64;

/// Context length of the models.
const CONTEXT: usize = 70_000;

/// Model whose passes cost next to nothing. Two models with different `taste` differ in the
/// continuation of every fourth token.
fn model(config: &ModelConfig, taste: usize) -> Box<TableModel> {
    let row = |token: usize| {
        let next = (token * 5 + 1 + if token.is_multiple_of(4) { taste } else { 0 }) % VOCABULARY;
        let logit = |other| if other == next { 4.0 } else { ((other * 7 + token) % 13) as f32 / 8.0 };
        (0..VOCABULARY).map(logit).collect()
    };
    Box::new(TableModel::new(config, CONTEXT, (0..VOCABULARY).map(row).collect()))
}

/// Bytes and microseconds of the rounds of a reply after `context` tokens: the median and the lower
/// quartile.
fn rounds(context: usize, sampling: &Sampling, speculation: &Speculation) -> (usize, f64) {
    let source = starter_target();
    let config = loaded(&source).config().clone();
    let tokenizer = Arc::new(source.tokenizer().unwrap());
    let draft = ModelDrafter::new(model(&config, 9), Vocabulary::Same(VOCABULARY), &[]);
    let mut drafters = Drafters::new(vec![
        Box::new(draft),
        Box::<NgramDrafter>::default(),
        Box::<RecyclingDrafter>::default(),
    ]);
    let mut decoder = Decoder::new(model(&config, 0), tokenizer);
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % VOCABULARY as u32
    };
    let request = Request {
        sampling: sampling.clone(),
        speculation: speculation.clone(),
        max_tokens: Some(1500),
        ignore_end: true,
        ..Request::new((0..context).map(|_| next()).collect())
    };
    let (mut bytes, mut times) = (Vec::with_capacity(2000), Vec::with_capacity(2000));
    let mut before = (BYTES.load(Ordering::Relaxed), Instant::now());
    let mut on_progress = |progress: Progress<'_>| {
        if matches!(progress, Progress::Round(_)) {
            bytes.push(BYTES.load(Ordering::Relaxed) - before.0);
            times.push(before.1.elapsed().as_secs_f64() * 1e6);
        }
        before = (BYTES.load(Ordering::Relaxed), Instant::now());
        ControlFlow::Continue(())
    };
    decoder.reply(&request, &mut drafters, &mut on_progress).unwrap();
    bytes.sort_unstable();
    times.sort_by(f64::total_cmp);
    (bytes[bytes.len() / 2], times[times.len() / 4])
}

fn ways() -> Vec<(Sampling, Speculation)> {
    let tree = Speculation { tree: Tree::Width(3), ..Speculation::fixed(4) };
    let drawn = Sampling { seed: Some(3), ..Sampling::default() };
    // Penalties over the whole text, the slowest case.
    let penalised = Sampling {
        repetition_penalty: 1.1,
        repeat_last_n: -1,
        dry_multiplier: 0.8,
        dry_allowed_length: 4,
        ..drawn.clone()
    };
    vec![
        (Sampling::greedy(), Speculation::off()),
        (Sampling::greedy(), Speculation::fixed(4)),
        (Sampling::greedy(), tree.clone()),
        (drawn.clone(), Speculation::fixed(4)),
        (drawn, tree),
        (Sampling::greedy(), Speculation { staged: Staged::On, ..Speculation::fixed(4) }),
        (Sampling::greedy(), Speculation::default()),
        (Sampling { temperature: 0.0, ..penalised.clone() }, Speculation::off()),
        (penalised.clone(), Speculation::default()),
        (penalised, Speculation::fixed(4)),
    ]
}

/// Serialises the tests, because allocations of all threads are counted.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_round_allocates_no_more_after_a_long_text_than_after_a_short_one() {
    let _alone = ALONE.lock();
    for (sampling, speculation) in ways() {
        // Automatic drafts depend on times, and so do their bytes.
        let holds = (0..8).any(|_| {
            let [short, long] = [1_000, 64_000].map(|context| rounds(context, &sampling, &speculation).0);
            eprintln!("{short} bytes a round after 1,000 tokens, {long} after 64,000: {speculation:?}");
            long < short + 4096
        });
        assert!(holds, "{speculation:?}, {sampling:?}");
    }
}

/// Extra microseconds, because older text is in slower memory. Copying or comparing a text of
/// 64,000 tokens takes several times as long.
const FURTHER_AWAY: f64 = 3.0;

#[test]
fn a_round_takes_no_longer_after_a_long_text_than_after_a_short_one() {
    let _alone = ALONE.lock();
    for (sampling, speculation) in ways() {
        // Other programs take time, but not in every attempt.
        let holds = (0..8).any(|_| {
            let [short, long] = [1_000, 64_000].map(|context| rounds(context, &sampling, &speculation).1);
            eprintln!("{short:.1} us a round after 1,000 tokens, {long:.1} after 64,000: {speculation:?}");
            long <= short * 1.1 + FURTHER_AWAY
        });
        assert!(holds, "{speculation:?}, {sampling:?}");
    }
}
