//! Bits of a row's logits: independent of the rest of the pass, of threads and of instruction sets;
//! and correct by a reference implementation.

use candle_core::quantized::gguf_file;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use foretoken_forward::cpu::Isa;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{CpuModel, Model, TensorModel, Want};
use foretoken_model::ModelSource;
use foretoken_model::format::Format;
use foretoken_model::token::TokenId;
use foretoken_tests::{
    EVEN, ODD, Stored, instruction_sets, loaded, loaded_with, logits_in_chunks, nightly_or, random_model,
    random_weights, shaped_model, starter_target, tested_formats, write_model,
};
use proptest::prelude::*;

#[test]
fn logits_have_the_same_bits_in_any_chunks_on_any_threads_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<TokenId> = (0..70).map(|i| i * 37 % 320).collect();
    for &format in tested_formats() {
        let source = random_model(folder.path(), format);
        let expected = logits_in_chunks(loaded(&source).as_mut(), &tokens, &[1]);
        for (threads, chunks) in
            [(1, &[2][..]), (2, &[3, 1, 5]), (3, &[8]), (2, &[16, 1]), (3, &[31, 32]), (1, &[70])]
        {
            let mut model = loaded_with(&source, Isa::choose().unwrap(), threads);
            let found = logits_in_chunks(model.as_mut(), &tokens, chunks);
            assert!(found == expected, "{format:?} in chunks of {chunks:?} on {threads} threads");
        }
    }
}

#[test]
fn logits_have_the_same_bits_with_every_instruction_set() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<TokenId> = (0..23).map(|i| i * 37 % 320).collect();
    let odd = [Format::F32, Format::F16].map(|format| (format, ODD));
    for (format, shape) in tested_formats().iter().map(|&format| (format, EVEN)).chain(odd) {
        let source = shaped_model(folder.path(), format, shape);
        let expected = logits_in_chunks(loaded_with(&source, Isa::Scalar, 1).as_mut(), &tokens, &[1]);
        for isa in instruction_sets() {
            let found = logits_in_chunks(loaded_with(&source, isa, 2).as_mut(), &tokens, &[7]);
            assert!(found == expected, "{format:?} with {isa}, {shape:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(nightly_or(24, 8)))]

    #[test]
    fn the_starter_targets_logits_do_not_depend_on_chunks(
        tokens in prop::collection::vec(3u32..4096, 1..60),
        chunks in prop::collection::vec(1usize..40, 1..6),
    ) {
        let mut model = loaded(&starter_target());
        let expected = logits_in_chunks(model.as_mut(), &tokens, &[1]);
        for threads in 1..4 {
            let mut model = loaded_with(&starter_target(), Isa::choose().unwrap(), threads);
            prop_assert!(logits_in_chunks(model.as_mut(), &tokens, &chunks) == expected);
        }
    }

    #[test]
    fn every_path_of_a_tree_scores_as_its_text(
        prefix in prop::collection::vec(3u32..4096, 1..20),
        nodes in prop::collection::vec((3u32..4096, any::<prop::sample::Index>()), 1..9),
        chosen in any::<prop::sample::Index>(),
    ) {
        // Depth-first order is not needed for correctness, only parents before children.
        let mut tree = TokenTree::chain([nodes[0].0]);
        let mut paths = vec![vec![0]];
        for (index, (token, parent)) in nodes.iter().enumerate().skip(1) {
            let parent = parent.index(index);
            tree.push(*token, Some(parent));
            paths.push([paths[parent].clone(), vec![index]].concat());
        }
        let tokens: Vec<TokenId> = tree.tokens().collect();
        let mut model = loaded(&starter_target());
        model.run(&TokenTree::chain(prefix.clone()), &Want::nothing()).unwrap();
        let pass = model.run(&tree, &Want::all_rows()).unwrap();
        let found = pass.logits();
        let path = &paths[chosen.index(paths.len())];
        let alone: Vec<TokenId> = prefix.iter().copied().chain(path.iter().map(|&node| tokens[node])).collect();
        let mut fresh = loaded(&starter_target());
        let last = Want::rows(alone.len() - 1..alone.len());
        {
            let expected = fresh.run(&TokenTree::chain(alone.clone()), &last).unwrap();
            let expected = expected.logits().row(0).logits().unwrap();
            prop_assert!(found.row(*path.last().unwrap()).logits().unwrap() == expected);
        }

        // The kept part of the tree continues as if the rest had never run.
        pass.keep(path).unwrap();
        prop_assert_eq!(model.cached(), &alone[..]);
        let next = TokenTree::chain([11, 12]);
        let both = [&mut model, &mut fresh].map(|model| model.run(&next, &Want::all_rows()).unwrap());
        prop_assert!(both[0].logits() == both[1].logits());
    }
}

#[test]
fn a_rejected_tree_pass_leaves_the_cache_unchanged() {
    let mut model = loaded(&starter_target());
    model.run(&TokenTree::chain([5, 6, 7]), &Want::nothing()).unwrap();
    assert!(model.run(&TokenTree::chain([8, 1_000_000]), &Want::all_rows()).is_err());
    assert!(model.run(&TokenTree::chain(vec![8; 2000]), &Want::all_rows()).is_err());
    assert_eq!(model.cached(), [5, 6, 7]);
}

/// Root mean square of the difference to `expected`, relative to that of `expected`.
pub fn difference(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    let (found, expected) = (found.concat(), expected.concat());
    let difference: f32 = found.iter().zip(&expected).map(|(a, b)| (a - b).powi(2)).sum();
    let size: f32 = expected.iter().map(|x| x.powi(2)).sum();
    (difference / size).sqrt()
}

/// Logits by candle-transformers' own Llama.
pub fn reference(source: &ModelSource, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    let mut file = std::fs::File::open(source.path()).unwrap();
    let content = gguf_file::Content::read(&mut file).unwrap();
    let mut reference = ModelWeights::from_gguf(content, &mut file, &Device::Cpu).unwrap();
    let logits = |position: usize| {
        let token = Tensor::new(&tokens[position..=position], &Device::Cpu).unwrap().unsqueeze(0).unwrap();
        reference.forward(&token, position).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    };
    (0..tokens.len()).map(logits).collect()
}

/// Logits of the same weights in 32 bits, on tensors.
pub fn exact(source: &ModelSource, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    logits_in_chunks(&mut TensorModel::exact(source, &Device::Cpu).unwrap(), tokens, &[tokens.len()])
}

#[test]
fn tensors_agree_with_the_reference_implementation() {
    let folder = tempfile::tempdir().unwrap();
    let source = random_model(folder.path(), Format::F32);
    let tokens: Vec<TokenId> = (0..40).map(|i| i * 97 % 320).collect();
    let found = difference(&exact(&source, &tokens), &reference(&source, &tokens));
    assert!(found < 1e-4, "relative error {found}");
}

/// Asserts that logits of `source` are as near to the exact ones as the reference's of `read`, a
/// file with the same weights in a format that the reference reads.
fn assert_as_near_as_the_reference(source: &ModelSource, read: &ModelSource) {
    let tokens: Vec<TokenId> = (0..40).map(|i| 3 + i * 97 % 310).collect();
    let ours = logits_in_chunks(loaded(source).as_mut(), &tokens, &[40]);
    let ours = difference(&ours, &exact(source, &tokens));
    let theirs = difference(&reference(read, &tokens), &exact(read, &tokens));
    // Keys and values are stored in half precision, and quantised weights are multiplied with
    // eight-bit activations; the reference only does the latter.
    assert!(ours < 1.5e-3_f32.max(1.2 * theirs), "{}: {ours}, {theirs}", source.path().display());
}

#[test]
fn logits_are_as_near_to_the_exact_ones_as_the_reference_implementation_is() {
    assert_as_near_as_the_reference(&starter_target(), &starter_target());
    let folder = tempfile::tempdir().unwrap();
    for &format in tested_formats() {
        let weights = random_weights(format, EVEN);
        let write =
            |name: &str, weights: &[Stored]| write_model(&folder.path().join(name), EVEN, weights, None);
        let source = write(&format!("{}.gguf", format.name()), &weights);
        if format.candle().is_some() {
            assert_as_near_as_the_reference(&source, &source);
        } else {
            // Embeddings in Q8_0 would fit into eight-bit activations without an error.
            let copy: Vec<_> = weights.iter().map(|tensor| tensor.rounded_to(Format::Q4_1)).collect();
            assert_as_near_as_the_reference(&source, &write("copy.gguf", &copy));
        }
    }
}

#[test]
fn bytes_per_pass_are_computed_from_the_file_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        let source = random_model(folder.path(), format);
        let computed = source.read_bytes().unwrap() as f64;
        let read = CpuModel::load(&source).unwrap().read_weights() as f64;
        assert!((0.98..1.02).contains(&(computed / read)), "{format:?}: {computed} bytes for {read}");
        assert_eq!(source.describe().quantisation.as_deref(), Some(format.name()));
    }
}

#[test]
fn odd_sizes_give_the_same_logits_as_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<TokenId> = (0..40).map(|i| i * 97 % 320).collect();
    for format in [Format::F32, Format::F16, Format::Bf16] {
        let source = shaped_model(folder.path(), format, ODD);
        let found = logits_in_chunks(loaded(&source).as_mut(), &tokens, &[40]);
        let found = difference(&found, &exact(&source, &tokens));
        assert!(found < 1.5e-3, "{format:?}: {found}");
    }
}

#[test]
fn nan_weights_are_rejected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::F32, Format::Q8_0, Format::Q6K] {
        let source = random_model(folder.path(), format);
        let mut bytes = std::fs::read(source.path()).unwrap();
        // Matrices are in the middle of the file.
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4096].fill(0xff);
        let broken = folder.path().join("broken.gguf");
        std::fs::write(&broken, bytes).unwrap();
        let error = CpuModel::load(&ModelSource::open(&broken).unwrap()).err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains("infinity or NaN") && error.contains("weight"), "{format:?}: '{error}'");
    }
}
