//! Outputs of a pass and the cache after it, on the CPU and on tensors; and models that can rewind
//! only to some lengths.

use std::ops::ControlFlow;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::{Device, Tensor};
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::draft::{Drafters, ModelDrafter, Vocabulary};
use foretoken_engine::speculation::{Speculation, Staged, Tree};
use foretoken_forward::cpu::Isa;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, Model, Pass, Taps, TensorModel, Want, catch_up, load, rewind};
use foretoken_model::error::Result;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelConfig, ModelSource};
use foretoken_tests::{
    chat_prompt, families, loaded, loaded_with, starter_draft, starter_target, tested_families,
};

use super::invariance::difference;

/// The starter target on the CPU and on tensors.
fn both() -> [Box<dyn Model>; 2] {
    let source = starter_target();
    [loaded(&source), Box::new(TensorModel::exact(&source, &Device::Cpu).unwrap())]
}

/// The starter target on the CPU, whose rows have the same bits in any pass.
fn on_the_cpu() -> Box<dyn Model> {
    loaded_with(&starter_target(), Isa::choose().unwrap(), 2)
}

/// Token 5, followed by 6 with 7 after it, or by 8.
fn branches() -> TokenTree {
    let mut tree = TokenTree::chain([5, 6, 7]);
    tree.push(8, Some(0));
    tree
}

#[test]
fn a_dropped_pass_keeps_a_chain_and_nothing_of_a_tree() {
    for mut model in both() {
        model.run(&TokenTree::chain([3, 4]), &Want::nothing()).unwrap();
        assert_eq!(model.cached(), [3, 4]);
        model.run(&branches(), &Want::all_rows()).unwrap();
        assert_eq!(model.cached(), [3, 4]);
        model.run(&branches(), &Want::nothing()).unwrap().keep(&[0, 3]).unwrap();
        assert_eq!(model.cached(), [3, 4, 5, 8]);
        model.run(&TokenTree::chain([9]), &Want::nothing()).unwrap().keep(&[]).unwrap();
        assert_eq!(model.cached(), [3, 4, 5, 8]);
    }
}

#[test]
fn a_pass_that_cannot_grow_counts_as_dropped() {
    for mut model in both() {
        let mut tree = branches();
        let pass = model.run(&tree, &Want::nothing()).unwrap();
        tree.push(1_000_000, Some(1));
        assert!(pass.grow(&tree, &Want::nothing()).is_err());
        assert!(model.cached().is_empty());
        let mut chain = TokenTree::chain([5, 6]);
        let pass = model.run(&chain, &Want::nothing()).unwrap();
        chain.push(1_000_000, Some(1));
        assert!(pass.grow(&chain, &Want::nothing()).is_err());
        assert_eq!(model.cached(), [5, 6]);
    }
}

#[test]
#[should_panic(expected = "another pass's tree")]
fn a_pass_grows_by_its_own_tree_alone() {
    let mut model = loaded(&starter_target());
    let pass = model.run(&TokenTree::chain([5, 6]), &Want::nothing()).unwrap();
    let _ = pass.grow(&TokenTree::chain([5, 7, 8]), &Want::nothing());
}

#[test]
fn a_pass_that_grows_gives_the_same_scores_as_a_whole_one() {
    let rows = |pass: &Pass<'_>, count: usize| -> Vec<Vec<f32>> {
        (0..count).map(|row| pass.logits().row(row).logits().unwrap().to_vec()).collect()
    };
    let mut tree = TokenTree::chain([5, 6]);
    let mut grown = tree.clone();
    for (token, parent) in [(7, 1), (8, 0), (9, 2)] {
        grown.push(token, Some(parent));
    }
    let mut model = on_the_cpu();
    let expected = rows(&model.run(&grown, &Want::all_rows()).unwrap(), 5);
    let pass = model.run(&tree, &Want::rows(1..2)).unwrap();
    assert!(rows(&pass, 1) == expected[1..2]);
    tree.push(7, Some(1));
    tree.push(8, Some(0));
    let pass = pass.grow(&tree, &Want::rows(0..3)).unwrap();
    assert!(rows(&pass, 1) == expected[2..3], "the nodes before are not run again");
    let pass = pass.grow(&grown, &Want::all_rows()).unwrap();
    assert!(rows(&pass, 1) == expected[4..]);
    pass.keep(&[0, 1, 2, 4]).unwrap();
    assert_eq!(model.cached(), [5, 6, 7, 9]);
}

/// A model that rewinds only to multiples of 4.
struct Coarse(Box<dyn Model>);

impl Model for Coarse {
    fn config(&self) -> &ModelConfig {
        self.0.config()
    }

    fn cached(&self) -> &[TokenId] {
        self.0.cached()
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        self.0.run(tree, want)
    }

    fn truncate(&mut self, length: usize) -> usize {
        let cached = self.cached().len();
        self.0.truncate(if length < cached { length / 4 * 4 } else { cached })
    }
}

fn coarse(source: &ModelSource) -> Box<dyn Model> {
    Box::new(Coarse(loaded(source)))
}

#[test]
fn tokens_that_a_model_dropped_beyond_the_request_are_run_again() {
    let mut model = coarse(&starter_target());
    let _ = catch_up(model.as_mut(), &[3, 4, 5, 6, 7, 8, 9], &mut |_, _| ControlFlow::Continue(())).unwrap();
    let other = [3, 4, 5, 6, 7, 11, 12];
    assert_eq!(rewind(model.as_mut(), &other), 4);
    assert_eq!(model.cached(), [3, 4, 5, 6]);
    let (reused, _) = catch_up(model.as_mut(), &other, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!((reused, model.cached()), (4, &other[..6]));
}

#[test]
fn models_with_coarse_rewinding_write_the_same() {
    let tokenizer = Arc::new(starter_target().tokenizer().unwrap());
    let mut fine = Decoder::new(loaded(&starter_target()), Arc::clone(&tokenizer));
    let mut decoder = Decoder::new(coarse(&starter_target()), Arc::clone(&tokenizer));
    let draft = ModelDrafter::new(
        coarse(&starter_draft()),
        Vocabulary::Same(tokenizer.vocabulary()),
        tokenizer.ends(),
    );
    let mut drafters = Drafters::one(draft);
    let ways = [
        Speculation::fixed(2),
        Speculation { tree: Tree::Width(3), ..Speculation::fixed(4) },
        Speculation { staged: Staged::On, ..Speculation::fixed(5) },
        Speculation::fixed(16),
    ];
    // Each text starts as the one before and differs from another position on.
    let questions =
        ["Tell me a story about a fox.", "Tell me a story about two.", "Tell me a song.", "Tell us."];
    for ((length, question), speculation) in [60, 23, 38, 60].into_iter().zip(questions).zip(ways) {
        let request = Request {
            sampling: Sampling::greedy(),
            max_tokens: Some(length),
            ..Request::new(chat_prompt(&starter_target(), &tokenizer, question))
        };
        let write = |decoder: &mut Decoder, request: &Request, drafters: &mut Drafters| {
            decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
        };
        let expected = write(&mut fine, &request, &mut Drafters::default());
        let drafted = Request { speculation, ..request };
        let found = write(&mut decoder, &drafted, &mut drafters);
        assert_eq!(found.tokens, expected.tokens, "{:?}", drafted.speculation);
        let text = [&drafted.prompt[..], &found.tokens].concat();
        assert!(text.starts_with(decoder.target().cached()), "{:?}", drafted.speculation);
        assert!(found.summary.accepted > 5, "{} drafted tokens were accepted", found.summary.accepted);
    }
}

/// Input states of the first and the second layer, the output of the last, and the final normed
/// state.
fn taps(model: &dyn Model) -> Taps {
    Taps { entering: vec![0, 1, model.config().depth()], last: true, ..Taps::default() }
}

/// The features of each token, fed in chunks of this size.
fn features_in_chunks(model: &mut dyn Model, tokens: &[TokenId], size: usize) -> Vec<Vec<f32>> {
    let taps = taps(model);
    model.truncate(0);
    let mut rows = Vec::new();
    for chunk in tokens.chunks(size) {
        let tree = TokenTree::chain(chunk.iter().copied());
        let pass = model.run(&tree, &Want::nothing().features(&taps)).unwrap();
        rows.extend(copied(pass.features().unwrap()));
    }
    rows
}

fn copied(features: Features<'_>) -> Vec<Vec<f32>> {
    (0..features.len()).map(|row| features.row(row).to_vec()).collect()
}

fn tokens() -> Vec<TokenId> {
    (0..40).map(|i| 3 + i * 97 % 310).collect()
}

#[test]
fn features_of_a_token_have_the_same_bits_in_any_chunks_on_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    for family in tested_families() {
        let source = family.gguf(folder.path(), GgmlDType::Q8_0);
        let isa = Isa::choose().unwrap();
        let expected = features_in_chunks(loaded_with(&source, isa, 1).as_mut(), &tokens(), 1);
        assert_eq!((expected.len(), expected[0].len()), (40, 4 * 256));
        for (threads, size) in [(1, 40), (2, 7), (3, 2)] {
            let found = features_in_chunks(loaded_with(&source, isa, threads).as_mut(), &tokens(), size);
            assert!(found == expected, "{} in chunks of {size} on {threads} threads", family.label);
        }
    }
}

#[test]
fn features_of_a_tree_are_those_of_its_paths_and_change_no_logits() {
    let mut model = on_the_cpu();
    let taps = taps(model.as_ref());
    let of = |pass: &Pass<'_>, row: usize| {
        (pass.features().unwrap().row(row).to_vec(), pass.logits().row(row).logits().unwrap().to_vec())
    };
    let want = Want::all_rows().features(&taps);
    let chain = model.run(&TokenTree::chain([5, 8]), &want).unwrap();
    let expected = of(&chain, 1);
    chain.keep(&[]).unwrap();
    let pass = model.run(&branches(), &want).unwrap();
    assert!(pass.features().unwrap().len() == 4 && of(&pass, 3) == expected);
    drop(pass);
    let pass = model.run(&branches(), &Want::all_rows()).unwrap();
    assert!(pass.features().is_none() && pass.logits().row(3).logits().unwrap() == expected.1);
}

#[test]
fn features_on_the_cpu_equal_those_on_tensors() {
    let folder = tempfile::tempdir().unwrap();
    for family in families() {
        let source = family.gguf(folder.path(), GgmlDType::F32);
        let mut tensors = TensorModel::exact(&source, &Device::Cpu).unwrap();
        let expected = features_in_chunks(&mut tensors, &tokens(), 9);
        let found = features_in_chunks(
            load(&source, &foretoken_forward::device::Device::Cpu).unwrap().as_mut(),
            &tokens(),
            9,
        );
        for tap in 0..4 {
            let of = |rows: &[Vec<f32>]| -> Vec<Vec<f32>> {
                rows.iter().map(|row| row[tap * 256..][..256].to_vec()).collect()
            };
            let found = difference(&of(&found), &of(&expected));
            assert!(found < 2e-3, "{}, tap {tap}: {found}", family.label);
        }
    }
}

#[test]
fn the_output_matrix_maps_the_last_state_to_logits() {
    let folder = tempfile::tempdir().unwrap();
    for family in families() {
        let source = family.gguf(folder.path(), GgmlDType::F32);
        let name = if family.ties_embeddings() { "token_embd.weight" } else { "output.weight" };
        let output = source.weights(&Device::Cpu).unwrap().matrix(name).unwrap();
        let output = output.dequantize(&Device::Cpu).unwrap().t().unwrap();
        let scoring = source.config().unwrap().scoring;
        let taps = Taps { last: true, ..Taps::default() };
        let models: [Box<dyn Model>; 2] =
            [loaded(&source), Box::new(TensorModel::exact(&source, &Device::Cpu).unwrap())];
        for mut model in models {
            let tree = TokenTree::chain(tokens());
            let pass = model.run(&tree, &Want::all_rows().features(&taps)).unwrap();
            let states = Tensor::new(copied(pass.features().unwrap()), &Device::Cpu).unwrap();
            let mut expected: Vec<Vec<f32>> = states.matmul(&output).unwrap().to_vec2().unwrap();
            for score in expected.iter_mut().flatten() {
                *score *= scoring.scale;
                *score = scoring.cap.map_or(*score, |cap| cap * (*score / cap).tanh());
            }
            let logits = pass.logits();
            let found: Vec<Vec<f32>> =
                (0..40).map(|row| logits.row(row).logits().unwrap().to_vec()).collect();
            let found = difference(&found, &expected);
            assert!(found < 1e-5, "{}: {found}", family.label);
        }
    }
}
