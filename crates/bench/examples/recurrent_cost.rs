//! Cost of recurrent layers in a pass with the sizes of Qwen3.5 9B, and of committing accepted
//! rows: `cargo run -p foretoken-bench --example recurrent_cost -- FOLDER [LAYERS]`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{CpuModel, Model, Want};
use foretoken_tests::qwen35_9b;

/// Measurements of each pass, in turn with the others.
const TURNS: usize = 25;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".into());
    let layers = arguments.next().map_or(4, |layers| layers.parse().unwrap());
    let source = qwen35_9b(Path::new(&folder), layers);
    let mut model = CpuModel::load(&source).unwrap();
    model.run(&TokenTree::chain(0..100), &Want::nothing()).unwrap();
    let bytes = model.read_weights();
    println!("{layers} layers, {} MB a pass", bytes / 1_000_000);
    let rows = [1, 4, 8, 17];
    // For each number of rows, passes that keep nothing, so that the next pass commits nothing; and
    // passes that keep all rows except the last, or the only one.
    let mut times = vec![[const { Vec::new() }; 2]; rows.len()];
    for _ in 0..TURNS {
        for (&rows, times) in rows.iter().zip(&mut times) {
            let chain = TokenTree::chain((0..rows as u32).map(|token| 300 + token));
            let kept: Vec<usize> = (0..(rows - 1).max(1)).collect();
            for (kept, times) in [&[][..], &kept].into_iter().zip(times) {
                // The first pass commits earlier rows, or leaves rows to commit.
                model.run(&chain, &Want::all_rows()).unwrap().keep(kept).unwrap();
                let start = Instant::now();
                let pass = model.run(&chain, &Want::all_rows()).unwrap();
                times.push(start.elapsed().as_secs_f64() * 1e3);
                pass.keep(&[]).unwrap();
                model.truncate(100);
            }
        }
    }
    for (rows, times) in rows.iter().zip(&mut times) {
        let [without, with] = times.each_mut().map(|times| {
            times.sort_by(f64::total_cmp);
            (times[0], times[times.len() / 2])
        });
        let share = 100.0 * (with.1 / without.1 - 1.0);
        println!(
            "{rows:2} rows: {:.2} ms (least {:.2}), with a commit {:.2} (least {:.2}), {share:+.1} %",
            without.1, without.0, with.1, with.0
        );
    }
}
