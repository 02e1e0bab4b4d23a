//! Attention over chains and trees.

use foretoken_model::{KeyHeads, KvDtype, Rotary, RotaryLayout};
use half::f16;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::super::attention::{AttentionRun, Join, Rotation};
use super::super::cache::KvCache;
use super::super::hadamard::{factors, rotate};
use super::super::int8_attention::key_offsets;
use super::super::isa::Isa;
use super::super::visible::Visible;
use super::{bits, numbers, sets};

const KV_HEADS: usize = 2;

const DTYPES: [KvDtype; 2] = [KvDtype::F16, KvDtype::Int8];

/// KV cache and the queries of one row.
#[derive(Clone)]
struct Scene {
    dtype: KvDtype,
    head_size: usize,
    heads: usize,
    cached: usize,
    /// `[positions, KV_HEADS, head_size]`
    keys: Vec<f32>,
    values: Vec<f32>,
    /// `[heads, head_size]`
    queries: Vec<f32>,
    /// `[heads]`, or empty.
    sinks: Vec<f32>,
    /// `[KV_HEADS, head_size]`, or empty.
    key_offsets: Vec<f32>,
}

impl Scene {
    fn new(dtype: KvDtype, head_size: usize, heads: usize, cached: usize, positions: usize) -> Self {
        let random = &mut StdRng::seed_from_u64((head_size * heads + cached) as u64);
        let mut some = |count: usize| numbers(random, count).iter().map(|x| x * 3.0).collect();
        let entries = positions * KV_HEADS * head_size;
        Self {
            dtype,
            head_size,
            heads,
            cached,
            keys: some(entries),
            values: some(entries),
            queries: some(heads * head_size),
            sinks: Vec::new(),
            key_offsets: Vec::new(),
        }
    }

    fn entry(&self, of: &[f32], kv_head: usize, position: usize) -> Vec<f32> {
        of[(position * KV_HEADS + kv_head) * self.head_size..][..self.head_size].to_vec()
    }

    /// Attends to the cached positions from `first` on and to the nodes `own`, which follow
    /// `hidden` nodes. Position `n` of the scene is cached at `cached_at[n]`.
    fn attend(
        &self,
        isa: Isa,
        kv_head: usize,
        cached_at: &[usize],
        first: usize,
        hidden: usize,
        own: &[usize],
    ) -> Vec<f32> {
        let kernels = isa.kernels();
        let mut cache = match self.dtype {
            KvDtype::F16 => KvCache::new(KV_HEADS, self.head_size),
            KvDtype::Int8 => KvCache::in_int8(KV_HEADS, self.head_size, self.key_offsets.clone()),
        };
        cache.reserve(0..cached_at.iter().max().unwrap() + 1).unwrap();
        for (position, &cached_at) in cached_at.iter().enumerate() {
            for kv_head in 0..KV_HEADS {
                let [key, value] = [&self.keys, &self.values].map(|of| self.entry(of, kv_head, position));
                let (key, value) = (key.as_ptr(), value.as_ptr());
                // SAFETY: the set is available, and the cache has the position.
                unsafe { (kernels.store_kv)(&cache, kv_head, cached_at, self.head_size, key, value) };
            }
        }
        let visible = Visible { cached: self.cached, first, hidden, own };
        let part = AttentionRun::part_size(self.head_size);
        let mut parts = vec![f32::NAN; visible.runs().len() * self.heads * part];
        let mut scratch = vec![f32::NAN; (self.heads + 1) * AttentionRun::scores(own.last().unwrap() + 1)];
        let mut queries = self.queries.clone();
        if self.dtype == KvDtype::Int8 {
            // SAFETY: the set is available, and there are as many queries.
            unsafe { (kernels.round_queries)(queries.as_mut_ptr(), self.heads, self.head_size) };
        }
        for (run, parts) in visible.runs().zip(parts.chunks_mut(self.heads * part)) {
            let job = AttentionRun {
                cache: &cache,
                kv_head,
                head_size: self.head_size,
                value_size: self.head_size,
                heads: self.heads,
                scale: 1.0 / (self.head_size as f32).sqrt(),
                queries: queries.as_ptr(),
                visible,
                positions: visible.positions_in(run),
                slots: visible.slots_in(run),
                parts: parts.as_mut_ptr(),
                scratch: scratch.as_mut_ptr(),
            };
            // SAFETY: as above, and all buffers have the sizes that are needed.
            unsafe { (kernels.attend)(&job) };
        }
        let mut out = vec![f32::NAN; self.heads * self.head_size];
        for (head, out) in out.chunks_mut(self.head_size).enumerate() {
            let join = Join {
                parts: parts[head * part..].as_mut_ptr(),
                stride: self.heads * part,
                runs: visible.runs().len(),
                value_size: self.head_size,
                sink: self.sinks.get(head).copied(),
                out: out.as_mut_ptr(),
            };
            // SAFETY: as above.
            unsafe { (kernels.join)(&join) };
        }
        out
    }

    /// A key as it is cached.
    fn cached_key(&self, row: &[f32]) -> Vec<f64> {
        match self.dtype {
            KvDtype::F16 => self.cached_value(row),
            KvDtype::Int8 => self.cached_value(&rotated(row, factors(self.head_size)[0])),
        }
    }

    /// A value as it is cached.
    fn cached_value(&self, row: &[f32]) -> Vec<f64> {
        match self.dtype {
            KvDtype::F16 => row.iter().map(|&x| f16::from_f32(x).to_f64()).collect(),
            KvDtype::Int8 => rounded(row, |scale| f16::from_f32(scale).to_f32()),
        }
    }

    fn rounded_query(&self, query: &[f32]) -> Vec<f64> {
        match self.dtype {
            KvDtype::F16 => query.iter().map(|&x| f64::from(x)).collect(),
            KvDtype::Int8 => rounded(&rotated(query, factors(self.head_size)[1]), |scale| scale),
        }
    }

    /// Largest difference to f64. In 8 bits, weights are rounded to 15 bits.
    fn tolerance(&self) -> f64 {
        if self.dtype == KvDtype::F16 { 2e-5 } else { 1e-3 }
    }

    #[track_caller]
    fn assert_near(&self, found: &[f32], kv_head: usize, seen: &[usize]) {
        for (found, expected) in found.iter().zip(self.expected(kv_head, seen)) {
            assert!((f64::from(*found) - expected).abs() < self.tolerance(), "{found} is not {expected}");
        }
    }

    /// Expected result in f64, over the positions in `seen`.
    fn expected(&self, kv_head: usize, seen: &[usize]) -> Vec<f64> {
        self.queries
            .chunks(self.head_size)
            .enumerate()
            .flat_map(|(head, query)| {
                let query = self.rounded_query(query);
                let sink = self.sinks.get(head).map_or(0.0, |&sink| f64::from(sink).exp());
                let weights: Vec<f64> = seen
                    .iter()
                    .map(|&position| {
                        let key = self.cached_key(&self.entry(&self.keys, kv_head, position));
                        let score: f64 = query.iter().zip(key).map(|(query, key)| query * key).sum();
                        (score / (self.head_size as f64).sqrt()).exp()
                    })
                    .collect();
                let sum: f64 = weights.iter().sum::<f64>() + sink;
                (0..self.head_size)
                    .map(|number| {
                        let values = seen.iter().map(|&position| {
                            self.cached_value(&self.entry(&self.values, kv_head, position))[number]
                        });
                        values.zip(&weights).map(|(value, weight)| value * weight).sum::<f64>() / sum
                    })
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Every case with both formats of the cache.
fn in_both<T>(cases: impl IntoIterator<Item = T> + Clone) -> impl Iterator<Item = (KvDtype, T)> {
    DTYPES.into_iter().flat_map(move |dtype| cases.clone().into_iter().map(move |case| (dtype, case)))
}

fn rotated(row: &[f32], factor: f32) -> Vec<f32> {
    let mut row = row.to_vec();
    rotate(&mut row, factor);
    row
}

/// A row in 8 bits, whose scale is stored by `stored`.
fn rounded(row: &[f32], stored: impl Fn(f32) -> f32) -> Vec<f64> {
    let scale = stored(row.iter().fold(0f32, |largest, x| largest.max(x.abs())) / 127.0);
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let numbers = row.iter().map(|x| (x * inverse).clamp(-127.0, 127.0).round_ties_even());
    numbers.map(|number| f64::from(number) * f64::from(scale)).collect()
}

#[test]
fn attention_over_a_tree_matches_f64() {
    for (dtype, (head_size, heads)) in
        in_both([64, 80, 20].into_iter().flat_map(|size| [1, 4, 7, 8, 9].map(|heads| (size, heads))))
    {
        for (cached, own) in
            [(0, vec![0]), (5, vec![0, 2, 5]), (37, vec![0, 1, 2]), (300, vec![3, 19]), (510, vec![0, 4, 9])]
        {
            let last = cached + own.last().unwrap();
            let scene = Scene::new(dtype, head_size, heads, cached, last + 1);
            let cached_at: Vec<usize> = (0..=last).collect();
            let seen: Vec<usize> = (0..cached).chain(own.iter().map(|own| cached + own)).collect();
            for kv_head in 0..KV_HEADS {
                let found = scene.attend(Isa::Scalar, kv_head, &cached_at, 0, 0, &own);
                scene.assert_near(&found, kv_head, &seen);
                for isa in sets() {
                    let other = scene.attend(isa, kv_head, &cached_at, 0, 0, &own);
                    assert_eq!(bits(&other), bits(&found), "{isa}, {dtype}, {heads} heads of {head_size}");
                }
            }
        }
    }
}

#[test]
fn attention_has_the_same_bits_wherever_in_the_pass_a_path_lies() {
    let cases = [(64, 7, 0), (80, 9, 30), (20, 4, 254)];
    for (dtype, (head_size, heads, cached)) in in_both(cases) {
        let scene = Scene::new(dtype, head_size, heads, cached, cached + 4);
        let at =
            |own: &[usize]| -> Vec<usize> { (0..cached).chain(own.iter().map(|own| cached + own)).collect() };
        for isa in sets() {
            let chain = [0, 1, 2, 3];
            let expected = scene.attend(isa, 1, &at(&chain), 0, 0, &chain);
            for tree in [[0, 1, 2, 4], [0, 3, 9, 17], [1, 18, 19, 40]] {
                let found = scene.attend(isa, 1, &at(&tree), 0, 0, &tree);
                assert_eq!(bits(&found), bits(&expected), "{isa}, {dtype}, {tree:?}");
            }
        }
    }
}

#[test]
fn windowed_attention_has_the_same_bits_wherever_the_pass_begins() {
    for (dtype, (head_size, heads)) in in_both([(64, 7), (20, 4)]) {
        let scene = Scene::new(dtype, head_size, heads, 0, 300);
        let cached_at: Vec<usize> = (0..300).collect();
        for first in [0, 30, 255, 256, 263, 299] {
            let seen: Vec<usize> = (first..300).collect();
            let with = |isa, cached: usize| {
                let scene = Scene { cached, ..scene.clone() };
                let own: Vec<usize> = (cached.max(first)..300).map(|position| position - cached).collect();
                scene.attend(isa, 1, &cached_at, first.min(cached), first.saturating_sub(cached), &own)
            };
            let expected = with(Isa::Scalar, 299);
            scene.assert_near(&expected, 1, &seen);
            for isa in sets() {
                for cached in [0, 17, 31, 256, 280, 299] {
                    assert_eq!(
                        bits(&with(isa, cached)),
                        bits(&expected),
                        "{isa}, {dtype}, {first}, {cached}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_attention_sink_takes_weight_and_adds_no_value() {
    for (dtype, (head_size, heads)) in in_both([(64, 8), (20, 3)]) {
        let mut scene = Scene::new(dtype, head_size, heads, 30, 33);
        // Larger than all scores, or negligible.
        scene.sinks = (0..heads).map(|head| [2.0, -1.0, 9.0, -40.0][head % 4]).collect();
        let (cached_at, seen): (Vec<usize>, Vec<usize>) = ((0..33).collect(), (4..33).collect());
        let found = scene.attend(Isa::Scalar, 1, &cached_at, 4, 0, &[0, 1, 2]);
        scene.assert_near(&found, 1, &seen);
        for isa in sets() {
            assert_eq!(bits(&scene.attend(isa, 1, &cached_at, 4, 0, &[0, 1, 2])), bits(&found), "{isa}");
        }
        // The exponential is beyond the range of f32.
        scene.sinks.fill(1e6);
        assert!(
            scene
                .attend(Isa::Scalar, 1, &cached_at, 4, 0, &[0, 1, 2])
                .iter()
                .all(|found| found.abs() < 1e-28)
        );
    }
}

#[test]
fn a_score_far_above_the_others_takes_all_the_weight() {
    let mut scene = Scene::new(KvDtype::F16, 64, 1, 40, 41);
    scene.queries.fill(30.0);
    scene.keys.fill(-1.0);
    scene.keys[12 * KV_HEADS * 64..][..64].fill(1.0);
    let cached_at: Vec<usize> = (0..=40).collect();
    let value = scene.entry(&scene.values, 0, 12);
    for isa in sets() {
        for (found, value) in scene.attend(isa, 0, &cached_at, 0, 0, &[0]).iter().zip(&value) {
            assert_eq!(*found, f16::from_f32(*value).to_f32(), "{isa}");
        }
    }
}

#[test]
fn rotation_keeps_products_and_spreads_a_large_component() {
    let random = &mut StdRng::seed_from_u64(9);
    for (size, block) in [(64, 64), (20, 4), (80, 16), (512, 512), (6, 2)] {
        let (mut key, query) = (numbers(random, size), numbers(random, size));
        key[3] = 1000.0;
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        let [of_keys, of_queries] = factors(size);
        let (turned, other) = (rotated(&key, of_keys), rotated(&query, of_queries));
        assert!((dot(&turned, &other) - dot(&key, &query)).abs() < 2e-3 * (size as f64).sqrt());
        let most = 1000.0 * of_keys * 1.1;
        assert!(turned.iter().all(|x| x.abs() < most), "{size}: {turned:?}");
        assert_eq!(turned.iter().filter(|x| x.abs() > most / 1.3).count(), block);
    }
}

#[test]
fn the_constant_part_of_keys_is_what_rope_hardly_turns_of_their_bias() {
    let keys = KeyHeads { count: 2, size: 6, ..KeyHeads::default() };
    let bias: Vec<f32> = (1..=12).map(|number| number as f32).collect();
    for (layout, expected) in [
        (RotaryLayout::Halves, [0.0, 4.0, 0.0, 8.0, 5.0, 6.0, 0.0, 16.0, 0.0, 20.0, 11.0, 12.0]),
        (RotaryLayout::Interleaved, [0.0, 0.0, 6.0, 8.0, 5.0, 6.0, 0.0, 0.0, 18.0, 20.0, 11.0, 12.0]),
    ] {
        let rotary = Rotary {
            layout,
            inverse_frequencies: vec![1.0, 1e-5],
            scale: 2.0,
            long_frequencies: None,
            attn_temperature: None,
            scaling: None,
            sections: None,
        };
        assert_eq!(key_offsets(&bias, keys, &rotary), expected);
    }
}

#[test]
fn a_constant_part_of_keys_does_not_coarsen_them_in_8_bits() {
    let mut scene = Scene::new(KvDtype::Int8, 64, 4, 300, 302);
    let (cached_at, seen): (Vec<usize>, Vec<usize>) = ((0..302).collect(), (0..302).collect());
    let exact = scene.expected(1, &seen);
    scene.key_offsets = vec![0.0; KV_HEADS * 64];
    scene.key_offsets[64 + 62] = -145.0;
    scene.key_offsets[64 + 31] = 135.0;
    for (number, key) in scene.keys.iter_mut().enumerate() {
        *key += scene.key_offsets[number % (KV_HEADS * 64)];
    }
    let error = |scene: &Scene| -> f64 {
        let found = scene.attend(Isa::Scalar, 1, &cached_at, 0, 0, &[0, 1]);
        found.iter().zip(&exact).map(|(found, exact)| (f64::from(*found) - exact).abs()).fold(0.0, f64::max)
    };
    let subtracted = error(&scene);
    scene.key_offsets.clear();
    let kept = error(&scene);
    assert!(subtracted < 0.02 && kept > 5.0 * subtracted, "{subtracted}, {kept}");
}

#[test]
fn outliers_and_zero_rows_in_8_bits_are_rounded_by_themselves() {
    let mut scene = Scene::new(KvDtype::Int8, 64, 7, 300, 302);
    let row = |position: usize| position * KV_HEADS * 64..(position + 1) * KV_HEADS * 64;
    scene.keys[row(3)].fill(0.0);
    scene.values[row(4)].fill(0.0);
    // Beyond half precision.
    scene.values[row(5)].fill(1e5);
    scene.keys[row(6)][7] = 900.0;
    scene.values[row(7)].fill(1e-6);
    scene.values[row(301)][0] = -5e4;
    scene.queries[..64].fill(0.0);
    let (cached_at, seen): (Vec<usize>, Vec<usize>) = ((0..302).collect(), (0..302).collect());
    let found = scene.attend(Isa::Scalar, 0, &cached_at, 0, 0, &[0, 1]);
    let largest = found.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    for (found, expected) in found.iter().zip(scene.expected(0, &seen)) {
        let most = 1e-4 * f64::from(largest);
        assert!((f64::from(*found) - expected).abs() < most, "{found} is not {expected}");
    }
    for isa in sets() {
        assert_eq!(bits(&scene.attend(isa, 0, &cached_at, 0, 0, &[0, 1])), bits(&found), "{isa}");
    }
}

#[test]
fn a_row_that_is_not_finite_shows_in_the_result_only_where_it_is_visible() {
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e20] {
        for position in [2, 40, 44] {
            let mut scene = Scene::new(KvDtype::Int8, 20, 4, 40, 46);
            let cached_at: Vec<usize> = (0..46).collect();
            let own: &[usize] = if position == 44 { &[0, 4, 5] } else { &[0, 5] };
            let without = scene.attend(Isa::Scalar, 1, &cached_at, 3, 0, &[1, 5]);
            scene.values[(position * KV_HEADS + 1) * 20 + 3] = wrong;
            let first = if position == 2 { 0 } else { 3 };
            for isa in sets() {
                let with = scene.attend(isa, 1, &cached_at, first, 0, own);
                assert!(with.iter().all(|number| !number.is_finite()), "{isa}, {wrong} at {position}");
                // In front of a window, and on another branch.
                let hidden = scene.attend(isa, 1, &cached_at, 3, 0, &[1, 5]);
                assert_eq!(bits(&hidden), bits(&without), "{isa}, {wrong} at {position}");
            }
            scene.keys[(position * KV_HEADS + 1) * 20 + 3] = wrong;
            let found = sets().map(|isa| scene.attend(isa, 1, &cached_at, first, 0, own));
            assert!(found.flatten().all(|number| !number.is_finite()));
        }
    }
}

#[test]
fn rotary_embedding_leaves_the_rest_of_a_head_unchanged() {
    let rotation = Rotation { layout: RotaryLayout::Halves, rotary_dim: 2, cosines: &0.0, sines: &1.0 };
    for isa in sets() {
        let mut head = [1.0, 2.0, 3.0, 4.0];
        // SAFETY: the set is available; the head and the angles have `rotary_dim` numbers.
        unsafe { (isa.kernels().rotate)(&rotation, head.as_mut_ptr()) };
        assert_eq!(head, [-2.0, 1.0, 3.0, 4.0], "{isa}");
    }
}

#[test]
fn rotary_embedding_rotates_the_pairs_of_its_layout() {
    let angles = [0.5f32, 1.5, -2.5];
    let (cosines, sines) = (angles.map(f32::cos), angles.map(f32::sin));
    let head: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    for (layout, pairs) in [
        (RotaryLayout::Interleaved, [(0, 1), (2, 3), (4, 5)]),
        (RotaryLayout::Halves, [(0, 3), (1, 4), (2, 5)]),
    ] {
        let rotation = Rotation { layout, rotary_dim: 6, cosines: cosines.as_ptr(), sines: sines.as_ptr() };
        for isa in sets() {
            let mut rotated = head;
            // SAFETY: the set is available; the head and the angles have `rotary_dim` numbers.
            unsafe { (isa.kernels().rotate)(&rotation, rotated.as_mut_ptr()) };
            for ((first, second), (cosine, sine)) in pairs.into_iter().zip(cosines.into_iter().zip(sines)) {
                assert_eq!(rotated[first], head[first].mul_add(cosine, -(head[second] * sine)), "{isa}");
                assert_eq!(rotated[second], head[first].mul_add(sine, head[second] * cosine), "{isa}");
            }
        }
    }
}
