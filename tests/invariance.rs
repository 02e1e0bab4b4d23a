//! A row's logits have the same bits whatever else is in the pass; and they are right, by an
//! implementation nobody here wrote.

use candle_core::quantized::{GgmlDType, gguf_file};
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use foretoken_engine::forward::Model;
use foretoken_engine::model::ModelSource;
use foretoken_engine::trace::TokenId;
use foretoken_engine::tree::TokenTree;
use foretoken_tests::{loaded, random_model, starter_target};
use proptest::prelude::*;

const FORMATS: [GgmlDType; 9] = [
    GgmlDType::F32,
    GgmlDType::F16,
    GgmlDType::BF16,
    GgmlDType::Q8_0,
    GgmlDType::Q4_0,
    GgmlDType::Q5_0,
    GgmlDType::Q4K,
    GgmlDType::Q5K,
    GgmlDType::Q6K,
];

/// One row a token, fed in chunks of the given sizes, the last one repeated.
fn logits_in_chunks(model: &mut dyn Model, tokens: &[TokenId], chunks: &[usize]) -> Vec<Vec<f32>> {
    model.truncate(0);
    let mut rows = Vec::new();
    let mut sizes = chunks.iter().copied().chain(std::iter::repeat(*chunks.last().unwrap()));
    while rows.len() < tokens.len() {
        let size = sizes.next().unwrap().min(tokens.len() - rows.len());
        let tree = TokenTree::chain(tokens[rows.len()..][..size].iter().copied());
        let logits = model.forward(&tree, 0..size).unwrap();
        rows.extend((0..size).map(|row| logits.row(row).to_vec()));
    }
    rows
}

#[test]
fn logits_have_the_same_bits_in_any_chunks_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<TokenId> = (0..70).map(|i| i * 37 % 320).collect();
    for format in FORMATS {
        let mut model = loaded(&random_model(folder.path(), format));
        let expected = logits_in_chunks(model.as_mut(), &tokens, &[1]);
        for chunks in [&[2][..], &[3, 1, 5], &[8], &[16, 1], &[31, 32], &[70]] {
            let found = logits_in_chunks(model.as_mut(), &tokens, chunks);
            assert!(found == expected, "{format:?} in chunks of {chunks:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_starter_target_does_not_mind_how_it_is_fed(
        tokens in prop::collection::vec(3u32..4096, 1..60),
        chunks in prop::collection::vec(1usize..40, 1..6),
    ) {
        let mut model = loaded(&starter_target());
        let expected = logits_in_chunks(model.as_mut(), &tokens, &[1]);
        prop_assert!(logits_in_chunks(model.as_mut(), &tokens, &chunks) == expected);
    }

    #[test]
    fn every_path_of_a_tree_scores_as_it_would_alone(
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
        model.forward(&TokenTree::chain(prefix.clone()), 0..0).unwrap();
        let found = model.forward(&tree, 0..tree.len()).unwrap();
        let path = &paths[chosen.index(paths.len())];
        let alone: Vec<TokenId> = prefix.iter().copied().chain(path.iter().map(|&node| tokens[node])).collect();
        let mut fresh = loaded(&starter_target());
        let expected = fresh.forward(&TokenTree::chain(alone.clone()), alone.len() - 1..alone.len()).unwrap();
        prop_assert!(found.row(*path.last().unwrap()) == expected.row(0));

        // What is kept of the tree continues as if the rest had never been there.
        model.keep(path).unwrap();
        prop_assert_eq!(model.cached(), &alone[..]);
        let next = TokenTree::chain([11, 12]);
        prop_assert!(model.forward(&next, 0..2).unwrap() == fresh.forward(&next, 0..2).unwrap());
    }
}

#[test]
fn a_pass_that_is_refused_leaves_the_cache_alone() {
    let mut model = loaded(&starter_target());
    model.forward(&TokenTree::chain([5, 6, 7]), 0..0).unwrap();
    assert!(model.forward(&TokenTree::chain([8, 1_000_000]), 0..1).is_err());
    assert!(model.forward(&TokenTree::chain(vec![8; 2000]), 0..1).is_err());
    assert_eq!(model.cached(), [5, 6, 7]);
}

/// The largest difference to candle-transformers' own Llama, as a share of the largest logit.
fn difference_to_reference(source: &ModelSource, vocabulary: u32) -> f32 {
    let mut file = std::fs::File::open(source.path()).unwrap();
    let content = gguf_file::Content::read(&mut file).unwrap();
    let mut reference = ModelWeights::from_gguf(content, &mut file, &Device::Cpu).unwrap();
    let tokens: Vec<TokenId> = (0..40).map(|i| 3 + i * 97 % (vocabulary - 3)).collect();
    let found = logits_in_chunks(loaded(source).as_mut(), &tokens, &[40]);
    let difference = |(position, row): (usize, &Vec<f32>)| {
        let token = Tensor::new(&tokens[position..=position], &Device::Cpu).unwrap().unsqueeze(0).unwrap();
        let expected = reference.forward(&token, position).unwrap().flatten_all().unwrap();
        let expected: Vec<f32> = expected.to_vec1().unwrap();
        let scale = expected.iter().fold(0f32, |scale, logit| scale.max(logit.abs()));
        row.iter().zip(&expected).fold(0f32, |worst, (a, b)| worst.max((a - b).abs())) / scale
    };
    found.iter().enumerate().map(difference).fold(0f32, f32::max)
}

#[test]
fn logits_agree_with_the_reference_implementation() {
    let folder = tempfile::tempdir().unwrap();
    let plain = difference_to_reference(&random_model(folder.path(), GgmlDType::F32), 320);
    assert!(plain < 1e-4, "relative error {plain}");
    // Activations are rounded to eight bits before every product, which turns the last bit of one
    // layer's result into a visible difference in the next.
    let quantised = difference_to_reference(&starter_target(), 4096);
    assert!(quantised < 5e-2, "relative error {quantised}");
}
