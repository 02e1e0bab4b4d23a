//! Attention over chains and trees.

use foretoken_model::RotaryLayout;
use half::f16;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::super::attention::{AttentionRun, Join, Rotation};
use super::super::cache::KvCache;
use super::super::isa::Isa;
use super::super::visible::Visible;
use super::{bits, numbers, sets};

const KV_HEADS: usize = 2;

/// KV cache and the queries of one row.
#[derive(Clone)]
struct Scene {
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
}

impl Scene {
    fn new(head_size: usize, heads: usize, cached: usize, positions: usize) -> Self {
        let random = &mut StdRng::seed_from_u64((head_size * heads + cached) as u64);
        let mut some = |count: usize| numbers(random, count).iter().map(|x| x * 3.0).collect();
        let entries = positions * KV_HEADS * head_size;
        Self {
            head_size,
            heads,
            cached,
            keys: some(entries),
            values: some(entries),
            queries: some(heads * head_size),
            sinks: Vec::new(),
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
        let mut cache = KvCache::new(KV_HEADS, self.head_size);
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
        let mut scratch = vec![f32::NAN; self.heads * AttentionRun::scores(own.last().unwrap() + 1)];
        for (run, parts) in visible.runs().zip(parts.chunks_mut(self.heads * part)) {
            let job = AttentionRun {
                cache: &cache,
                kv_head,
                head_size: self.head_size,
                value_size: self.head_size,
                heads: self.heads,
                scale: 1.0 / (self.head_size as f32).sqrt(),
                queries: self.queries.as_ptr(),
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

    /// Expected result in f64, over the positions in `seen`.
    fn expected(&self, kv_head: usize, seen: &[usize]) -> Vec<f64> {
        let half = |x: &f32| f16::from_f32(*x).to_f64();
        self.queries
            .chunks(self.head_size)
            .enumerate()
            .flat_map(|(head, query)| {
                let sink = self.sinks.get(head).map_or(0.0, |&sink| f64::from(sink).exp());
                let weights: Vec<f64> = seen
                    .iter()
                    .map(|&position| {
                        let key = self.entry(&self.keys, kv_head, position);
                        let score: f64 =
                            query.iter().zip(&key).map(|(&query, key)| f64::from(query) * half(key)).sum();
                        (score / (self.head_size as f64).sqrt()).exp()
                    })
                    .collect();
                let sum: f64 = weights.iter().sum::<f64>() + sink;
                (0..self.head_size)
                    .map(|number| {
                        let values = seen
                            .iter()
                            .map(|&position| half(&self.entry(&self.values, kv_head, position)[number]));
                        values.zip(&weights).map(|(value, weight)| value * weight).sum::<f64>() / sum
                    })
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

#[test]
fn attention_over_a_tree_matches_f64() {
    for (head_size, heads) in
        [64, 80, 20].into_iter().flat_map(|size| [1, 4, 7, 8, 9].map(|heads| (size, heads)))
    {
        for (cached, own) in
            [(0, vec![0]), (5, vec![0, 2, 5]), (37, vec![0, 1, 2]), (300, vec![3, 19]), (510, vec![0, 4, 9])]
        {
            let last = cached + own.last().unwrap();
            let scene = Scene::new(head_size, heads, cached, last + 1);
            let cached_at: Vec<usize> = (0..=last).collect();
            let seen: Vec<usize> = (0..cached).chain(own.iter().map(|own| cached + own)).collect();
            for kv_head in 0..KV_HEADS {
                let found = scene.attend(Isa::Scalar, kv_head, &cached_at, 0, 0, &own);
                for (found, expected) in found.iter().zip(scene.expected(kv_head, &seen)) {
                    assert!((f64::from(*found) - expected).abs() < 2e-5, "{found} is not {expected}");
                }
                for isa in sets() {
                    let other = scene.attend(isa, kv_head, &cached_at, 0, 0, &own);
                    assert_eq!(bits(&other), bits(&found), "{isa}, {heads} heads of {head_size}");
                }
            }
        }
    }
}

#[test]
fn attention_has_the_same_bits_wherever_in_the_pass_a_path_lies() {
    for (head_size, heads, cached) in [(64, 7, 0), (80, 9, 30), (20, 4, 254)] {
        let scene = Scene::new(head_size, heads, cached, cached + 4);
        let at =
            |own: &[usize]| -> Vec<usize> { (0..cached).chain(own.iter().map(|own| cached + own)).collect() };
        for isa in sets() {
            let chain = [0, 1, 2, 3];
            let expected = scene.attend(isa, 1, &at(&chain), 0, 0, &chain);
            for tree in [[0, 1, 2, 4], [0, 3, 9, 17], [1, 18, 19, 40]] {
                let found = scene.attend(isa, 1, &at(&tree), 0, 0, &tree);
                assert_eq!(bits(&found), bits(&expected), "{isa}, {tree:?}");
            }
        }
    }
}

#[test]
fn windowed_attention_has_the_same_bits_wherever_the_pass_begins() {
    for (head_size, heads) in [(64, 7), (20, 4)] {
        let scene = Scene::new(head_size, heads, 0, 300);
        let cached_at: Vec<usize> = (0..300).collect();
        for first in [0, 30, 255, 256, 263, 299] {
            let seen: Vec<usize> = (first..300).collect();
            let with = |isa, cached: usize| {
                let scene = Scene { cached, ..scene.clone() };
                let own: Vec<usize> = (cached.max(first)..300).map(|position| position - cached).collect();
                scene.attend(isa, 1, &cached_at, first.min(cached), first.saturating_sub(cached), &own)
            };
            let expected = with(Isa::Scalar, 299);
            for (found, expected) in expected.iter().zip(scene.expected(1, &seen)) {
                assert!((f64::from(*found) - expected).abs() < 2e-5, "{found} is not {expected}");
            }
            for isa in sets() {
                for cached in [0, 17, 31, 256, 280, 299] {
                    assert_eq!(bits(&with(isa, cached)), bits(&expected), "{isa}, {first}, {cached}");
                }
            }
        }
    }
}

#[test]
fn an_attention_sink_takes_weight_and_adds_no_value() {
    for (head_size, heads) in [(64, 8), (20, 3)] {
        let mut scene = Scene::new(head_size, heads, 30, 33);
        // Larger than all scores, or negligible.
        scene.sinks = (0..heads).map(|head| [2.0, -1.0, 9.0, -40.0][head % 4]).collect();
        let (cached_at, seen): (Vec<usize>, Vec<usize>) = ((0..33).collect(), (4..33).collect());
        let found = scene.attend(Isa::Scalar, 1, &cached_at, 4, 0, &[0, 1, 2]);
        for (found, expected) in found.iter().zip(scene.expected(1, &seen)) {
            assert!((f64::from(*found) - expected).abs() < 2e-5, "{found} is not {expected}");
        }
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
    let mut scene = Scene::new(64, 1, 40, 41);
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
