//! The GPU engine against the CPU engine: the same bits for any pass and any position in the cache.
//! Runs on a software renderer (Mesa's, which `make setup-tests` installs) if the computer has no
//! GPU.
//!
//! A device that does not guarantee the CPU's bits must give close numbers, and its own bits every
//! time.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod counts;
mod heads;
mod recurrent;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use candle_core::DType;
use candle_core::quantized::GgmlDType;
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::draft::{Drafters, ModelDrafter, NgramDrafter, Vocabulary};
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_forward::device::Device;
use foretoken_forward::gpu::{GpuDevice, comparisons, profiled};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Embeddings, LogitSubset, Media, MediaKey, Model, PictureShape, Taps, Want, load};
use foretoken_model::ModelSource;
use foretoken_model::format::Format;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_tests::{
    EVEN, ODD, RandomFamily, chat_prompt, dense_gemma4, families, family, gpu, logits_in_chunks, made_up,
    nightly_or, on_the_gpu, shaped_model, starter_draft, starter_target, tested_formats,
};

fn on_the_cpu(source: &ModelSource) -> Box<dyn Model> {
    load(source, &Device::Cpu).unwrap()
}

#[track_caller]
fn assert_the_cpus(found: &[f32], expected: &[f32], what: &str) {
    if gpu().guarantees().cpu_bits {
        let differ = found.iter().zip(expected).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        assert!(
            differ == 0 && found.len() == expected.len(),
            "{differ} of {} differ: {what}",
            expected.len()
        );
    } else {
        let largest = expected.iter().fold(0f32, |largest, number| largest.max(number.abs()));
        let near = |(a, b): (&f32, &f32)| (a - b).abs() < 2e-2 * largest;
        assert!(found.iter().zip(expected).all(near), "{what}");
    }
}

/// Runs the same tokens on both engines, in chunks on the GPU, and compares the logits.
#[track_caller]
fn compare(source: &ModelSource, tokens: &[TokenId], chunks: &[usize], what: &str) {
    let expected = logits_in_chunks(on_the_cpu(source).as_mut(), tokens, &[tokens.len()]);
    let found = logits_in_chunks(on_the_gpu(source).as_mut(), tokens, chunks);
    assert_the_cpus(&found.concat(), &expected.concat(), what);
}

#[test]
fn a_software_renderer_guarantees_the_cpus_bits() {
    let (label, guarantees) = (gpu().label().to_owned(), gpu().guarantees());
    assert!(guarantees.computes, "{label}");
    if label.ends_with("software") {
        assert!(guarantees.cpu_bits && guarantees.any_tile, "{label}: {guarantees:?}");
    }
}

#[test]
fn every_format_has_the_cpus_bits_in_any_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<TokenId> = (0..21).map(|i| i * 37 % 320).collect();
    for &format in tested_formats() {
        compare(&shaped_model(folder.path(), format, EVEN), &tokens, &[1, 3, 17], &format!("{format:?}"));
    }
    for format in [Format::F32, Format::F16] {
        compare(&shaped_model(folder.path(), format, ODD), &tokens, &[4, 17], &format!("{format:?}, odd"));
    }
}

#[test]
fn every_family_has_the_cpus_bits_in_any_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<TokenId> = (0..40).map(|i| 3 + i * 97 % 310).collect();
    for (index, family) in families().into_iter().enumerate() {
        let forms: [fn(&RandomFamily, &Path) -> ModelSource; 3] = [
            |family, folder| family.folder(folder, DType::F32),
            |family, folder| family.folder(folder, DType::BF16),
            |family, folder| family.gguf(folder, GgmlDType::Q8_0),
        ];
        // Outside of nightly runs each family has one of the forms, in turns.
        for form in forms.iter().skip(nightly_or(0, index % 3)).step_by(nightly_or(1, 3)) {
            compare(&form(&family, folder.path()), &tokens, &[7, 1, 32], family.label);
        }
    }
}

#[test]
fn a_text_with_a_picture_has_the_cpus_bits_in_any_chunks() {
    let folder = tempfile::tempdir().unwrap();
    // Positions by row and column, embeddings looked up on the device, and per-layer inputs.
    for label in ["qwen3vl", "qwen2", "gemma4"] {
        let source = family(label).gguf(folder.path(), GgmlDType::Q8_0);
        let hidden = source.config().unwrap().hidden;
        let (media, key) = (Arc::new(Media::default()), MediaKey([1; 32]));
        let shape = PictureShape { count: 12, columns: 4, placeholder: 7 };
        let picture = media.ids(key, shape).unwrap();
        // The picture's embeddings, and two numbers for each that are added after layers.
        let numbers = made_up("a picture", 12 * 3 * hidden);
        media.insert(key, Embeddings::new(&numbers, hidden, 3 * hidden).unwrap()).unwrap();
        let tokens: Vec<TokenId> = (5..14).chain(picture).chain(20..29).collect();
        let run = |mut model: Box<dyn Model>, chunks: &[usize]| {
            model.set_media(&media);
            logits_in_chunks(model.as_mut(), &tokens, chunks).concat()
        };
        let expected = run(on_the_cpu(&source), &[tokens.len()]);
        for chunks in [&[tokens.len()][..], &[3, 10, 1, 7]] {
            assert_the_cpus(&run(on_the_gpu(&source), chunks), &expected, label);
        }
    }
}

/// Few and many experts, of which rows use some or all.
#[test]
fn experts_have_the_cpus_bits_for_any_routing() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<TokenId> = (0..45).map(|i| 3 + i * 61 % 310).collect();
    let base = family("qwen3moe");
    for &(count, used) in nightly_or(&[(1, 1), (3, 3), (24, 2), (24, 8)][..], &[(1, 1), (24, 8)]) {
        // A GGUF file cannot say that expert weights are a softmax over all experts.
        let folder = folder.path();
        let of_all = base.with_experts(count, used, true).folder(folder, DType::F16);
        compare(&of_all, &tokens, &[1, 2, 5, 8, 29], &format!("{used} of {count}, shares of all"));
        let family = base.with_experts(count, used, false);
        for format in [GgmlDType::Q4_0, GgmlDType::Q5_1] {
            let source = family.gguf(folder, format);
            compare(&source, &tokens, &[1, 2, 5, 8, 29], &format!("{used} of {count}, {format:?}"));
        }
    }
}

#[test]
fn a_profile_times_every_dispatch_of_a_pass() {
    // A device of its own, since a profile has the passes of all threads.
    let gpu = GpuDevice::open(0, true).unwrap();
    let mut model = load(&starter_target(), &Device::Gpu(gpu.clone())).unwrap();
    let tree = TokenTree::chain([5, 6, 7]);
    let mut run = || -> foretoken_model::Result<()> { model.run(&tree, &Want::all_rows())?.keep(&[]) };
    let times = profiled(&gpu, &mut run).unwrap();
    // Devices without timestamps have no profile.
    if times.is_empty() {
        return;
    }
    assert!(times.is_sorted_by(|one, two| one.micros >= two.micros) && times[0].micros > 0.0, "{times:?}");
    let dispatches: usize = times.iter().map(|time| time.dispatches).sum();
    let attended = times.iter().filter(|time| time.kernel.starts_with("Attend")).map(|time| time.dispatches);
    assert_eq!(attended.sum::<usize>(), model.config().depth());
    assert_eq!(dispatches, model.dispatch_stats().unwrap().dispatches);
    let after: usize = profiled(&gpu, || Ok::<_, foretoken_model::Error>(())).unwrap().len();
    assert_eq!(after, 0, "a profile that has ended goes on");
}

#[test]
fn operations_that_are_compared_have_the_bits_that_the_device_guarantees() {
    let comparisons = comparisons(&gpu()).unwrap();
    let operations: Vec<_> = comparisons.iter().map(|comparison| comparison.operation).collect();
    let all = ["multiply-add", "norm", "activation", "product", "quantisation", "product in 8 bits"];
    assert_eq!(operations, all);
    for comparison in comparisons {
        assert_eq!(comparison.first.is_some(), comparison.different > 0, "{comparison:?}");
        assert!(comparison.different == 0 || !gpu().guarantees().cpu_bits, "{comparison:?}");
    }
}

/// A text for a model with this vocabulary.
fn text(source: &ModelSource, length: TokenId) -> Vec<TokenId> {
    let tokens = source.config().unwrap().vocabulary as TokenId;
    (0..length).map(|i| 3 + i * 761 % (tokens - 3)).collect()
}

/// Small models of Gemma 4, with room for more than a page: layers whose heads differ, windows,
/// shared caches and per-layer inputs; and values that are keys.
fn gemmas(folder: &Path) -> [ModelSource; 2] {
    [family("gemma4"), dense_gemma4()].map(|mut family| {
        family.config["max_position_embeddings"] = serde_json::json!(1024);
        family.gguf(folder, GgmlDType::Q8_0)
    })
}

#[test]
fn the_starter_has_the_cpus_bits_across_pages() {
    compare_across_pages(&starter_target());
}

#[test]
fn layers_that_differ_have_the_cpus_bits_across_pages() {
    let folder = tempfile::tempdir().unwrap();
    gemmas(folder.path()).iter().for_each(compare_across_pages);
}

/// Prompts longer than a page and longer than the rows of a chunk.
fn compare_across_pages(source: &ModelSource) {
    let tokens = text(source, 300);
    let (mut here, mut there) = (on_the_cpu(source), on_the_gpu(source));
    for at in [0..250, 250..251, 251..259, 259..300] {
        let tree = TokenTree::chain(tokens[at.clone()].iter().copied());
        let last = Want::rows(at.len() - 1..at.len());
        let [expected, found] = [&mut here, &mut there].map(|model| {
            let pass = model.run(&tree, &last).unwrap();
            pass.logits().row(0).logits().unwrap().to_vec()
        });
        assert_the_cpus(&found, &expected, &format!("{at:?}"));
    }
    // Rewinds and continues from there.
    for model in [&mut here, &mut there] {
        assert_eq!(model.truncate(255), 255);
    }
    let tree = TokenTree::chain([5, 6, 7]);
    let [expected, found] = [&mut here, &mut there].map(|model| {
        let pass = model.run(&tree, &Want::all_rows()).unwrap();
        (0..3).flat_map(|row| pass.logits().row(row).logits().unwrap().to_vec()).collect::<Vec<_>>()
    });
    assert_the_cpus(&found, &expected, "after going back");
}

#[test]
fn every_path_of_a_tree_has_the_bits_of_its_text_and_continues_as_it() {
    compare_paths(&starter_target());
}

#[test]
fn every_path_of_a_tree_has_the_bits_of_its_text_where_layers_differ() {
    let folder = tempfile::tempdir().unwrap();
    gemmas(folder.path()).iter().for_each(compare_paths);
}

/// Branches of several depths, more nodes than a tile has rows, across the end of a page.
fn compare_paths(source: &ModelSource) {
    let prefix = text(source, 249);
    let parents =
        [None, Some(0), Some(0), Some(1), Some(2), Some(3), Some(0), Some(4), Some(7), Some(5), Some(9)];
    let mut tree = TokenTree::default();
    for (node, parent) in parents.into_iter().enumerate() {
        tree.push(100 + 7 * node as TokenId, parent);
    }
    let (mut here, mut there) = (on_the_cpu(source), on_the_gpu(source));
    there.run(&TokenTree::chain(prefix.iter().copied()), &Want::nothing()).unwrap();
    let path = [0, 2, 4, 7, 8];
    here.run(&TokenTree::chain(prefix.iter().copied()), &Want::nothing()).unwrap();
    let pass = there.run(&tree, &Want::all_rows()).unwrap();
    for (row, path) in tree.visible().iter().enumerate() {
        here.truncate(prefix.len());
        let alone = TokenTree::chain(path.iter().map(|&node| tree.token(node)));
        let expected = here.run(&alone, &Want::rows(path.len() - 1..path.len())).unwrap();
        let expected = expected.logits().row(0).logits().unwrap().to_vec();
        assert_the_cpus(pass.logits().row(row).logits().unwrap(), &expected, &format!("node {row}"));
    }
    // A dropped pass leaves nothing of a tree in the cache.
    drop(pass);
    assert_eq!(there.cached().len(), prefix.len());
    let mut next = tree.clone();
    next.push(200, Some(8));
    let pass = there.run(&tree, &Want::rows(8..9)).unwrap();
    // The same pass continues with another node.
    let pass = pass.grow(&next, &Want::rows(11..12)).unwrap();
    let grown = pass.logits().row(0).logits().unwrap().to_vec();
    pass.keep(&path).unwrap();
    let kept: Vec<TokenId> = prefix.iter().copied().chain(path.map(|node| tree.token(node))).collect();
    assert_eq!(there.cached(), kept);
    here.truncate(0);
    here.run(&TokenTree::chain(kept.iter().copied()), &Want::nothing()).unwrap();
    let [expected, found] = [&mut here, &mut there].map(|model| {
        let pass = model.run(&TokenTree::chain([200, 12]), &Want::all_rows()).unwrap();
        [0, 1].map(|row| pass.logits().row(row).logits().unwrap().to_vec()).concat()
    });
    assert_the_cpus(&found, &expected, "after what was kept");
    assert_the_cpus(&grown, &expected[..grown.len()], "the node that was added");
}

#[test]
fn hidden_states_and_peaks_equal_the_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let gemma = families().into_iter().find(|family| family.architecture == "gemma3").unwrap();
    let gemma = gemma.gguf(folder.path(), GgmlDType::Q8_0);
    let [newer, _] = gemmas(folder.path());
    // Layers of the last one have other keys and values.
    for (source, cached) in [(starter_target(), vec![]), (gemma, vec![1]), (newer, vec![2, 3])] {
        let layers = source.config().unwrap().depth();
        let taps = Taps { entering: vec![0, 1, layers], last: true, cached };
        let tree = TokenTree::chain((0..35).map(|i| 3 + i * 61 % 300));
        let want = Want::rows(30..35).features(&taps).subset(LogitSubset::Peaks);
        let [expected, found] = [on_the_cpu(&source), on_the_gpu(&source)].map(|mut model| {
            let pass = model.run(&tree, &want).unwrap();
            let row = |row| {
                let row = pass.logits().row(row);
                [
                    row.likeliest() as f32,
                    row.largest(),
                    row.sum_exp(1.0).unwrap(),
                    row.probability(7).unwrap(),
                ]
            };
            let peaks: Vec<f32> = (0..5).flat_map(row).collect();
            [pass.features().unwrap().numbers().to_vec(), peaks].concat()
        });
        assert_the_cpus(&found, &expected, "hidden states and peaks");
    }
}

#[test]
fn the_starter_pair_writes_the_cpus_text_on_the_gpu_with_any_drafts() {
    let source = starter_target();
    let tokenizer = Arc::new(source.tokenizer().unwrap());
    let mut here = Decoder::new(on_the_cpu(&source), Arc::clone(&tokenizer));
    let mut there = Decoder::new(on_the_gpu(&source), Arc::clone(&tokenizer));
    let draft = on_the_gpu(&starter_draft());
    let draft = ModelDrafter::new(draft, Vocabulary::Same(tokenizer.vocabulary()), tokenizer.ends());
    let mut drafters = Drafters::new(vec![Box::new(draft), Box::<NgramDrafter>::default()]);
    let coupled =
        Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() };
    let tree = Speculation { tree: Tree::Width(3), ..Speculation::fixed(5) };
    let mut accepted = 0;
    for (index, sampling) in [Sampling::greedy(), coupled].into_iter().enumerate() {
        let prompt = chat_prompt(&source, &tokenizer, "Tell me a story about a fox who finds a lantern.");
        let mut request = Request { sampling, max_tokens: Some(24), ..Request::new(prompt) };
        request.speculation = Speculation::off();
        let mut write = |decoder: &mut Decoder, request: &Request| {
            decoder.reply(request, &mut drafters, &mut |_| ControlFlow::Continue(())).unwrap()
        };
        let expected = write(&mut here, &request);
        let ways = [Speculation::fixed(4), tree.clone(), Speculation::default()].into_iter();
        for speculation in ways.skip(nightly_or(0, index)).step_by(nightly_or(1, 2)) {
            request.speculation = speculation;
            let found = write(&mut there, &request);
            assert_eq!(found.tokens, expected.tokens, "{:?}", request.speculation);
            accepted += found.summary.accepted;
        }
    }
    assert!(accepted > 20, "only {accepted} drafted tokens were accepted: nothing was tested");
}

#[test]
fn a_rejected_pass_leaves_the_cache_unchanged() {
    let mut model = on_the_gpu(&starter_target());
    model.run(&TokenTree::chain([5, 6, 7]), &Want::nothing()).unwrap();
    assert!(model.run(&TokenTree::chain([8, 1_000_000]), &Want::all_rows()).is_err());
    assert!(model.run(&TokenTree::chain(vec![8; 20_000]), &Want::all_rows()).is_err());
    assert_eq!(model.cached(), [5, 6, 7]);
    model.wait().unwrap();
}
