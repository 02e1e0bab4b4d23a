//! Tests of attention and norms against their order of sums, written plainly: runs of 256 text
//! positions or numbers, with sixteen lanes within a run.

use half::f16;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::cache::{Cache, PAGE};
use super::chunk::Chunk;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::norm::{Norm, Pending};
use super::probe::{compute, norm, upload};
use super::runs::{Attention, RunSteps};
use super::state::Rows;
use super::step::{Quantise, Step};
use super::tests::{assert_bits, gpu, numbers};
use crate::tree::TokenTree;

/// e^x for x between -69 and 69, as the kernels compute it.
fn exponential(x: f32) -> f32 {
    let x = x.clamp(-69.0, 69.0);
    let n = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = n.mul_add(-0.693_359_4, x);
    let r = n.mul_add(2.121_944_4e-4, r);
    let factorials = [720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0];
    let series = factorials.iter().fold(1.0 / 5040.0, |series: f32, f| series.mul_add(r, 1.0 / f));
    series * f32::from_bits(((n as i32 + 127) as u32) << 23)
}

/// Sum of sixteen lanes.
fn across(mut lanes: [f32; 16]) -> f32 {
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    lanes[0]
}

/// A run's largest score, sum of weights, and values times weights.
fn part(scores: &[f32], values: &[&[f32]]) -> (f32, f32, Vec<f32>) {
    let largest = scores.iter().copied().fold(f32::MIN, f32::max);
    let weights: Vec<f32> = scores.iter().map(|score| exponential(score - largest)).collect();
    let mut lanes = [0.0; 16];
    weights.iter().enumerate().for_each(|(index, weight)| lanes[index % 16] += weight);
    let mut mixed = vec![0.0f32; values[0].len()];
    for (weight, value) in weights.iter().zip(values) {
        for (sum, number) in mixed.iter_mut().zip(*value) {
            *sum = weight.mul_add(*number, *sum);
        }
    }
    (largest, across(lanes), mixed)
}

/// Runs added up, with the weight of a sink.
fn join(parts: &[(f32, f32, Vec<f32>)], sink: Option<f32>) -> Vec<f32> {
    let most = parts.iter().map(|part| part.0).fold(f32::MIN, f32::max);
    let mut total = 0.0f32;
    let mut joined = vec![0.0f32; parts[0].2.len()];
    for (largest, sum, mixed) in parts {
        let factor = exponential(largest - most);
        total = factor.mul_add(*sum, total);
        for (joined, number) in joined.iter_mut().zip(mixed) {
            *joined = factor.mul_add(*number, *joined);
        }
    }
    total += sink.map_or(0.0, |sink| exponential(sink - most));
    let scale = 1.0 / total;
    joined.iter().map(|number| number * scale).collect()
}

/// Rows of a pass after cached positions.
#[derive(Debug, Clone)]
struct Scene {
    heads: usize,
    kv_heads: usize,
    head_size: usize,
    cached: usize,
    tree: TokenTree,
    window: Option<usize>,
    bidirectional: bool,
    gates: bool,
    sinks: bool,
}

impl Scene {
    /// Rows of a chain, four heads of 64 in two groups.
    fn chain(cached: usize, rows: usize) -> Self {
        Self {
            heads: 4,
            kv_heads: 2,
            head_size: 64,
            cached,
            tree: TokenTree::chain(vec![0; rows]),
            window: None,
            bidirectional: false,
            gates: false,
            sinks: false,
        }
    }

    /// Text positions that a row sees, in order, each with its place in the cache.
    fn visible(&self, row: usize) -> Vec<(usize, usize)> {
        let path = match self.bidirectional {
            true => (0..self.tree.len()).collect(),
            false => self.tree.visible()[row].clone(),
        };
        let own = self.cached + self.tree.depths()[row];
        let of_path = path.iter().enumerate().map(|(index, node)| (self.cached + index, self.cached + node));
        let near = |&(text, _): &(usize, usize)| self.window.is_none_or(|window| text.abs_diff(own) < window);
        (0..self.cached).map(|text| (text, text)).chain(of_path).filter(near).collect()
    }

    /// Compares the kernels with the plain order of sums; `parts` limits the buffer of parts.
    fn check(&self, parts: Option<usize>) {
        let Self { heads, kv_heads, head_size, cached, .. } = *self;
        let mut random = StdRng::seed_from_u64((cached * heads + head_size) as u64);
        let (rows, positions) = (self.tree.len(), cached + self.tree.len());
        let width = heads * head_size;
        let stride = if self.gates { 2 * width } else { width };
        let queries: Vec<f32> = numbers(&mut random, rows * stride).iter().map(|x| x * 3.0).collect();
        let mut halves = || -> Vec<f32> {
            let numbers = numbers(&mut random, positions * kv_heads * head_size);
            numbers.iter().map(|&number| f16::from_f32(number).to_f32()).collect()
        };
        let (keys, values) = (halves(), halves());
        let sinks = self.sinks.then(|| numbers(&mut random, heads));
        let entry = |of: &'static str, kv_head: usize, place: usize| {
            let from = if of == "keys" { &keys } else { &values };
            &from[(place * kv_heads + kv_head) * head_size..][..head_size]
        };
        let scale = 1.0 / (head_size as f32).sqrt();

        let mut expected = Vec::new();
        for row in 0..rows {
            let visible = self.visible(row);
            for head in 0..heads {
                let query = &queries[row * stride + head * head_size..][..head_size];
                let kv_head = head / (heads / kv_heads);
                let of_run = |run: &[(usize, usize)]| {
                    let score = |&(_, place): &(usize, usize)| {
                        let pairs = query.iter().zip(entry("keys", kv_head, place));
                        pairs.fold(0.0f32, |sum, (query, key)| query.mul_add(*key, sum)) * scale
                    };
                    let values: Vec<&[f32]> =
                        run.iter().map(|&(_, place)| entry("values", kv_head, place)).collect();
                    part(&run.iter().map(score).collect::<Vec<_>>(), &values)
                };
                let runs = visible.chunk_by(|(one, _), (two, _)| one / 256 == two / 256);
                let mut mixed =
                    join(&runs.map(of_run).collect::<Vec<_>>(), sinks.as_ref().map(|sinks| sinks[head]));
                if self.gates {
                    let gates = &queries[row * stride + width + head * head_size..][..head_size];
                    for (number, gate) in mixed.iter_mut().zip(gates) {
                        *number /= 1.0 + exponential(-gate);
                    }
                }
                expected.extend(mixed);
            }
        }

        let mut cache = Cache::new(gpu(), kv_heads, head_size).unwrap();
        cache.reserve(gpu(), positions).unwrap();
        let pairs = head_size / 2;
        let words = cache.positions() * kv_heads * pairs;
        let (mut key_words, mut value_words) = (vec![0; words], vec![0; words]);
        for (place, kv_head) in (0..positions).flat_map(|p| (0..kv_heads).map(move |head| (p, head))) {
            let (page, slot) = (place / PAGE * kv_heads + kv_head, place % PAGE);
            for pair in 0..pairs {
                let word = |of| {
                    let [low, high] =
                        [0, 1].map(|n| f16::from_f32(entry(of, kv_head, place)[2 * pair + n]).to_bits());
                    u32::from(low) | u32::from(high) << 16
                };
                key_words[((page * 16 + slot / 16) * pairs + pair) * 16 + slot % 16] = word("keys");
                value_words[(page * PAGE + slot) * pairs + pair] = word("values");
            }
        }
        gpu().write(&cache.keys, key_words);
        gpu().write(&cache.values, value_words);
        let chunk = Chunk::new(&self.tree, cached, 0..rows, &(0..0));
        let nodes = gpu().buffer(4 * chunk.words.len()).unwrap();
        gpu().write(&nodes, chunk.words.iter().copied());
        let given = upload(gpu(), &queries).unwrap();
        let out = Rows::new(gpu(), rows, width).unwrap();
        let parts = match parts {
            Some(numbers) => gpu().buffer(4 * numbers).unwrap(),
            None => RunSteps::parts(gpu(), heads, head_size, cache.positions()).unwrap(),
        };
        let vectors = upload(gpu(), sinks.as_deref().unwrap_or(&[0.0])).unwrap();
        let steps = RunSteps::new(gpu(), &given, &cache, &nodes, &parts, &vectors, &out).unwrap();
        let attention = Attention {
            heads_apart: false,
            heads,
            kv_heads,
            head_size,
            stride,
            gates: self.gates.then_some(width),
            sinks: if self.sinks { 0 } else { NONE },
            width: out.width,
            scale,
            rows,
            cached: chunk.cached,
            longest: chunk.longest,
            chain: chunk.chain,
            window: self.window,
            bidirectional: self.bidirectional,
        };
        let padded = compute(gpu(), &out.plain, rows * out.width, |pass| steps.run(pass, &attention));
        let padded = padded.unwrap();
        let plain: Vec<f32> = padded.chunks(out.width).flat_map(|row| &row[..width]).copied().collect();
        assert_bits(&plain, &expected, &format!("{self:?}"));
        if head_size.is_multiple_of(32) {
            let rounded = |of: &Rows| {
                let quants = compute(gpu(), &of.quants, rows * width / 4, |_| ()).unwrap();
                [quants, compute(gpu(), &of.scales, rows * width / 16, |_| ()).unwrap()].concat()
            };
            let other = Rows::new(gpu(), rows, width).unwrap();
            gpu().write(&other.plain, plain.iter().map(|number| number.to_bits()));
            let quantise = Quantise::new(gpu(), &other).unwrap();
            compute(gpu(), &other.scales, 1, |pass| quantise.run(pass, rows)).unwrap();
            assert_bits(&rounded(&out), &rounded(&other), &format!("8 bits of {self:?}"));
        }
    }
}

#[test]
fn attention_adds_in_runs_of_256_positions_at_every_length() {
    for length in [1, 15, 16, 17, 255, 256, 257, 600] {
        Scene::chain(length - 1, 1).check(None);
    }
    // Rows of a chain that begin before the end of a run and end after it.
    for (cached, rows) in [(0, 40), (250, 17), (509, 5)] {
        Scene::chain(cached, rows).check(None);
    }
}

#[test]
fn attention_has_the_same_order_for_heads_of_every_size_and_group() {
    for (heads, kv_heads, head_size) in
        [(1, 1, 512), (2, 1, 256), (7, 1, 128), (8, 8, 20), (6, 2, 80), (3, 3, 2), (9, 1, 32), (2, 2, 320)]
    {
        let scene = Scene { heads, kv_heads, head_size, ..Scene::chain(259, 1) };
        scene.check(None);
        Scene { tree: TokenTree::chain([0; 3]), ..scene }.check(None);
    }
}

/// Two branches after a chain of four, and one that follows the cached positions directly.
fn tree() -> TokenTree {
    let mut tree = TokenTree::chain([0; 4]);
    let branch = tree.push(1, Some(1));
    let twig = tree.push(2, Some(branch));
    tree.push(3, Some(3));
    tree.push(4, Some(twig));
    let alone = tree.push(5, None);
    tree.push(6, Some(alone));
    tree
}

#[test]
fn attention_over_a_tree_follows_the_order_of_the_text() {
    for cached in [0, 3, 253, 254, 255, 256, 300] {
        let scene = Scene { tree: tree(), ..Scene::chain(cached, 1) };
        scene.check(None);
        // One head in each group, so that a workgroup has queries of many rows.
        Scene { heads: 2, head_size: 40, ..scene }.check(None);
    }
}

#[test]
fn attention_within_a_window_keeps_the_runs_of_the_text() {
    for window in [1, 3, 16, 100, 256, 257, 300] {
        for (cached, rows) in [(0, 5), (254, 6), (599, 1), (700, 9)] {
            Scene { window: Some(window), ..Scene::chain(cached, rows) }.check(None);
        }
        Scene { window: Some(window), tree: tree(), ..Scene::chain(511, 1) }.check(None);
    }
}

#[test]
fn rows_of_a_bidirectional_block_attend_to_later_ones() {
    for window in [None, Some(1), Some(4), Some(259)] {
        for cached in [0, 250, 256, 511] {
            Scene { window, bidirectional: true, ..Scene::chain(cached, 12) }.check(None);
        }
    }
}

#[test]
fn output_gates_and_a_small_buffer_of_parts_change_nothing_else() {
    let scene = Scene { gates: true, ..Scene::chain(510, 5) };
    scene.check(None);
    // Room for one row of three runs, and for two.
    let row = 4 * 3 * 66;
    scene.check(Some(row));
    scene.check(Some(2 * row + 1));
    Scene { head_size: 20, tree: tree(), ..scene }.check(Some(4 * 3 * 22));
}

#[test]
fn a_sink_adds_its_weight_once_to_those_of_all_runs() {
    for cached in [0, 300] {
        Scene { sinks: true, ..Scene::chain(cached, 5) }.check(None);
    }
}

/// Scale of an RMS norm: the mean of squares in sixteen lanes for every 256 numbers.
fn rms_scale(row: &[f32], epsilon: f32) -> f32 {
    let mut total = [0.0f32; 16];
    for run in row.chunks(256) {
        let mut lanes = [0.0f32; 16];
        run.iter().enumerate().for_each(|(index, x)| lanes[index % 16] = x.mul_add(*x, lanes[index % 16]));
        total.iter_mut().zip(lanes).for_each(|(total, lane)| *total += lane);
    }
    1.0 / (across(total) / row.len() as f32 + epsilon).sqrt()
}

fn rms_norm(row: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    let scale = rms_scale(row, epsilon);
    row.iter().zip(weight).map(|(number, weight)| number * scale * weight).collect()
}

const LENGTHS: [usize; 12] = [1, 15, 16, 17, 255, 256, 257, 600, 1536, 4096, 4100, 8192];

#[test]
fn norms_add_squares_in_runs_of_256_numbers() {
    let mut random = StdRng::seed_from_u64(21);
    for length in LENGTHS {
        let (rows, weight) = (numbers(&mut random, 3 * length), numbers(&mut random, length));
        let expected: Vec<f32> = rows.chunks(length).flat_map(|row| rms_norm(row, &weight, 1e-5)).collect();
        assert_bits(&norm(gpu(), &rows, &weight, 1e-5).unwrap(), &expected, &format!("norms of {length}"));
    }
}

/// Rows padded to whole vectors, with numbers that must not count.
fn padded(rows: &[f32], length: usize) -> Vec<f32> {
    let stride = length.next_multiple_of(16);
    let pad = |row: &[f32]| row.iter().copied().chain(vec![7.0; stride - length]).collect::<Vec<_>>();
    rows.chunks(length).flat_map(pad).collect()
}

#[test]
fn a_pending_bias_branch_and_factor_are_applied_before_the_norm() {
    let mut random = StdRng::seed_from_u64(22);
    for length in LENGTHS {
        let mut some = |count| numbers(&mut random, count);
        let (rows, branches) = (some(2 * length), some(2 * length));
        let [weight, after, bias] = [some(length), some(length), some(length)];
        let (state, branch) = (padded(&rows, length), padded(&branches, length));
        let [state, branch, vectors] =
            [state, branch, [&weight[..], &after, &bias].concat()].map(|of| upload(gpu(), &of).unwrap());
        let to = Rows::new(gpu(), 2, length).unwrap();
        let buffers = [&state, &branch, &vectors, &to.plain, &to.quants, &to.scales];
        let step = Step::new(gpu(), Kernel::Norm, &buffers).unwrap();
        let pending = Pending { bias: 2 * length as u32, norm: length as u32, factor: 0.75 };
        let norm = Norm { pending, pending_epsilon: 1e-6, ..Norm::plain(length, 1e-5) };
        let run = |pass: &mut Dispatches| step.run(pass, &norm.params(), [2, 1]);
        let found = compute(gpu(), &to.plain, 2 * to.width, run).unwrap();
        let mut expected = Vec::new();
        for (row, branch) in rows.chunks(length).zip(branches.chunks(length)) {
            let added = rms_norm(branch, &after, 1e-6);
            let biased = row.iter().zip(&bias).map(|(number, bias)| number + bias);
            let state: Vec<f32> = biased.zip(added).map(|(number, added)| (number + added) * 0.75).collect();
            expected.extend(rms_norm(&state, &weight, 1e-5));
        }
        let found: Vec<f32> = found.chunks(to.width).flat_map(|row| &row[..length]).copied().collect();
        assert_bits(&found, &expected, &format!("norms of {length} after a branch"));
        if length.is_multiple_of(32) {
            let other = Rows::new(gpu(), 2, length).unwrap();
            gpu().write(&other.plain, found.iter().map(|number| number.to_bits()));
            let quantise = Quantise::new(gpu(), &other).unwrap();
            compute(gpu(), &other.scales, 1, |pass| quantise.run(pass, 2)).unwrap();
            let [ours, theirs] = [&to, &other].map(|rows| {
                let quants = compute(gpu(), &rows.quants, 2 * length / 4, |_| ()).unwrap();
                [quants, compute(gpu(), &rows.scales, 2 * length / 16, |_| ()).unwrap()].concat()
            });
            assert_bits(&ours, &theirs, &format!("8 bits of {length} numbers"));
        }
    }
}

#[test]
fn a_pending_bias_and_factor_are_applied_without_a_branch() {
    let length = 40;
    let mut random = StdRng::seed_from_u64(27);
    let mut some = || numbers(&mut random, length);
    let (row, bias) = (some(), some());
    let [state, vectors] = [padded(&row, length), bias.clone()].map(|of| upload(gpu(), &of).unwrap());
    let (branch, to) = (gpu().buffer(16).unwrap(), Rows::new(gpu(), 1, length).unwrap());
    let buffers = [&state, &branch, &vectors, &to.plain, &to.quants, &to.scales];
    let step = Step::new(gpu(), Kernel::Norm, &buffers).unwrap();
    for (bias_at, expected) in [
        (NONE, row.iter().map(|number| number * 0.75).collect::<Vec<_>>()),
        (0, row.iter().zip(&bias).map(|(number, bias)| (number * 0.75 + bias) * 0.75).collect()),
    ] {
        let pending = Pending { bias: bias_at, norm: NONE, factor: 0.75 };
        let norm = Norm { weight: NONE, pending, ..Norm::plain(length, 1e-5) };
        let run = |pass: &mut Dispatches| step.run(pass, &norm.params(), [1, 1]);
        let found = compute(gpu(), &to.plain, length, run).unwrap();
        assert_bits(&found, &expected, "a state without a branch");
    }
}

#[test]
fn heads_are_normed_in_runs_of_256_numbers() {
    let mut random = StdRng::seed_from_u64(23);
    for head_size in [2, 20, 128, 256, 258, 320, 512] {
        let (rows, weight) = (numbers(&mut random, 3 * head_size), numbers(&mut random, head_size));
        let [state, vectors] = [&rows, &weight].map(|of| upload(gpu(), of).unwrap());
        let others = [(); 4].map(|()| gpu().buffer(64).unwrap());
        let buffers = [&state, &others[0], &vectors, &others[1], &others[2], &others[3]];
        let step = Step::new(gpu(), Kernel::Rope, &buffers).unwrap();
        let size = head_size as u32;
        let sizes = [1, 1, size, size, 0, 0, 0, 0, NONE, NONE, NONE, 0, NONE, 1e-5f32.to_bits(), 0, 0];
        let found = compute(gpu(), &state, rows.len(), |pass| step.run(pass, &sizes, [1, 3])).unwrap();
        let expected: Vec<f32> =
            rows.chunks(head_size).flat_map(|row| rms_norm(row, &weight, 1e-5)).collect();
        assert_bits(&found, &expected, &format!("heads of {head_size}"));
    }
}

#[test]
fn queries_and_keys_of_a_row_are_normed_together_in_runs_of_256_numbers() {
    let mut random = StdRng::seed_from_u64(24);
    for (queries, keys) in [(64, 16), (256, 256), (4096, 1040), (5120, 272)] {
        let stride = queries + keys;
        let (rows, weight) = (numbers(&mut random, 2 * stride), numbers(&mut random, stride));
        let [state, vectors] = [&rows, &weight].map(|of| upload(gpu(), of).unwrap());
        let step = Step::new(gpu(), Kernel::NormHeads, &[&state, &vectors]).unwrap();
        let sizes = [stride, queries, keys, queries, 0, queries].map(|n| n as u32);
        let params = [&sizes[..], &[1e-5f32.to_bits()]].concat();
        let found = compute(gpu(), &state, rows.len(), |pass| step.run(pass, &params, [2, 2])).unwrap();
        let expected: Vec<f32> = rows
            .chunks(stride)
            .flat_map(|row| {
                let parts = [&row[..queries], &row[queries..]].into_iter();
                let weights = [&weight[..queries], &weight[queries..]];
                parts.zip(weights).flat_map(|(part, weight)| rms_norm(part, weight, 1e-5)).collect::<Vec<_>>()
            })
            .collect();
        assert_bits(&found, &expected, &format!("{queries} and {keys}"));
    }
}
