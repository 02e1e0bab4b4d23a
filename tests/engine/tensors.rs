//! The tensor engine, on the CPU unless FORETOKEN_TEST_DEVICE names another device: texts with
//! drafts equal those without, and the returned part of the logits suffices.

use std::ops::ControlFlow;

use candle_core::Device;
use foretoken_engine::check::{compare, difference};
use foretoken_engine::decoder::{Decoder, Reply, Request};
use foretoken_engine::draft::{Drafter, Drafters, ModelDrafter, NgramDrafter, RecyclingDrafter, Vocabulary};
use foretoken_engine::speculation::{Speculation, Staged, Tree};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{LogitSubset, Model, Row, TensorModel, Want};
use foretoken_model::format::Format;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_tests::{
    chat_prompt, logits_in_chunks, nightly_or, random_model, starter_draft, starter_target, tensors_on,
    tested_formats,
};

use super::invariance::{difference as error, exact, reference};

fn device() -> Device {
    tensors_on().cloned().unwrap_or(Device::Cpu)
}

/// A target and all its drafters; activations are rounded only if `rounding`.
fn pair(rounding: bool) -> (Decoder, Drafters) {
    let load = if rounding { TensorModel::load } else { TensorModel::exact };
    let tokenizer = starter_target().tokenizer().unwrap();
    let draft = Box::new(load(&starter_draft(), &device()).unwrap());
    let vocabulary = Vocabulary::Same(tokenizer.vocabulary());
    let drafters: Vec<Box<dyn Drafter>> = vec![
        Box::new(ModelDrafter::new(draft, vocabulary, tokenizer.ends())),
        Box::<NgramDrafter>::default(),
        Box::<RecyclingDrafter>::default(),
    ];
    let target = Box::new(load(&starter_target(), &device()).unwrap());
    (Decoder::new(target, tokenizer.into()), Drafters::new(drafters))
}

fn request(decoder: &Decoder, sampling: Sampling) -> Request {
    let question = "Tell me a story about a fox who finds a lantern.";
    let prompt = chat_prompt(&starter_target(), decoder.tokenizer(), question);
    Request { sampling, max_tokens: Some(24), ..Request::new(prompt) }
}

fn write(decoder: &mut Decoder, request: &Request, drafters: &mut Drafters) -> Reply {
    decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn coupled(change: Sampling) -> Sampling {
    Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..change }
}

fn ways() -> [Speculation; 4] {
    [
        Speculation::default(),
        Speculation::fixed(5),
        Speculation { tree: Tree::Width(3), ..Speculation::fixed(4) },
        Speculation { staged: Staged::On, ..Speculation::fixed(4) },
    ]
}

#[test]
fn drafts_change_no_text_in_any_sampling_mode() {
    let (mut decoder, mut drafters) = pair(false);
    // Each needs another part of the logits that stay on the device.
    let samplings = [
        Sampling::greedy(),
        coupled(Sampling::default()),
        coupled(Sampling { top_k: 20, top_p: 1.0, ..Sampling::default() }),
        coupled(Sampling { min_p: 0.05, top_p: 1.0, ..Sampling::default() }),
        coupled(Sampling { repetition_penalty: 1.2, ..Sampling::default() }),
    ];
    let mut accepted = 0;
    // Outside of nightly runs each sampling takes half of the ways, in turns.
    let every = nightly_or(1, 2);
    for (index, sampling) in samplings.into_iter().enumerate() {
        let mut request = request(&decoder, sampling);
        let plain = write(&mut decoder, &request, &mut Drafters::default());
        for way in ways().into_iter().skip(index % every).step_by(every) {
            request.speculation = way;
            let drafted = write(&mut decoder, &request, &mut drafters);
            assert_eq!(drafted.tokens, plain.tokens, "{request:?}");
            accepted += drafted.summary.accepted;
        }
    }
    assert!(
        accepted > 100 / every as u32,
        "only {accepted} drafted tokens were accepted: nothing was tested"
    );
}

#[test]
fn the_check_attributes_only_rounding_differences_to_rounding() {
    let (mut decoder, mut drafters) = pair(true);
    for (index, sampling) in [Sampling::greedy(), coupled(Sampling::default())].into_iter().enumerate() {
        let mut request = request(&decoder, sampling);
        let mut tokens = Vec::new();
        // The governor would decide by measured time.
        for way in ways().into_iter().skip(nightly_or(1, 1 + index)).step_by(nightly_or(1, 2)) {
            request.speculation = way;
            tokens = write(&mut decoder, &request, &mut drafters).tokens;
            let check = compare(&mut decoder, &request, &tokens, &mut |_| ControlFlow::Continue(())).unwrap();
            assert!(check.first_difference.is_none_or(|difference| difference.near_tie));
        }
        // An unlikely token is a bug, whatever the rounding.
        let wrong: Vec<TokenId> = tokens.iter().take(9).copied().chain([5]).collect();
        let found = difference(decoder.target_mut(), &request, &wrong, &tokens).unwrap().unwrap();
        assert!(found.position == 9 && !found.near_tie, "{found:?}");
    }
}

#[test]
fn logits_are_as_near_to_the_exact_ones_as_the_reference_implementation_is() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<TokenId> = (0..40).map(|i| 3 + i * 97 % 310).collect();
    for &format in tested_formats().iter().step_by(2) {
        let source = random_model(folder.path(), format);
        let exact = exact(&source, &tokens);
        // Formats that the reference does not read are dequantised when loaded.
        let theirs = format.candle().map_or(0.0, |_| error(&reference(&source, &tokens), &exact));
        for chunks in [&[40][..], &[1, 7]] {
            let mut model = TensorModel::load(&source, &device()).unwrap();
            let ours = error(&logits_in_chunks(&mut model, &tokens, chunks), &exact);
            assert!(
                ours < 1e-4_f32.max(1.5 * theirs),
                "{format:?} in chunks of {chunks:?}: {ours}, {theirs}"
            );
        }
    }
}

#[test]
fn everything_can_be_fetched_beyond_the_requested_subset() {
    let folder = tempfile::tempdir().unwrap();
    // Its vocabulary of 320 is five slices.
    let source = random_model(folder.path(), Format::F32);
    let mut model = TensorModel::load(&source, &device()).unwrap();
    let tree = TokenTree::chain([3, 5, 8]);
    let expected: Vec<Vec<f32>> = {
        let pass = model.run(&tree, &Want::all_rows()).unwrap();
        let logits = pass.logits();
        (0..3).map(|row| logits.row(row).logits().unwrap().to_vec()).collect()
    };
    for subset in [LogitSubset::Peaks, LogitSubset::Likely { temperature: 0.7, margin: 3.0, top: 2 }] {
        model.truncate(0);
        let pass = model.run(&tree, &Want::all_rows().subset(subset)).unwrap();
        let logits = pass.logits();
        for (row, expected) in expected.iter().enumerate() {
            let (found, expected_row) = (logits.row(row), Row::of(expected));
            assert_eq!(found.likeliest(), expected_row.likeliest());
            assert_eq!(found.top(3).unwrap(), expected_row.top(3).unwrap());
            assert_eq!(found.logits().unwrap(), expected.as_slice());
        }
    }
}
