//! Draft heads with the GPU engine: on the GPU they have the CPU's bits, and on any device they
//! draft the same for a target on the GPU as for one on the CPU.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use candle_core::DType;
use candle_core::quantized::GgmlDType;
use foretoken_engine::decoder::{Decoder, Progress, Request};
use foretoken_engine::draft::{Drafters, head_drafter};
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_forward::device::Device;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{BlockState, Features, HeadInput, Model, Taps, Want, load};
use foretoken_model::ModelSource;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_tests::{
    BLOCK_ROWS, BlockKind, Flags, MASK, RandomAssistant, RandomBlockHead, RandomHead, chat_prompt,
    dense_gemma4, family, gpu, is_nightly, made_up, nightly_or, on_the_gpu, starter_target,
};

use super::{assert_the_cpus, on_the_cpu};

/// Rows of a text: more than fit into a chunk.
const TEXT: usize = 41;

/// Scores and states of a head after a text with random target states, and after a tree of guesses,
/// each with the head's own output as its input.
fn drafted(head: &mut dyn Model, own: &Taps) -> Vec<f32> {
    let width = head.config().draft_head.as_ref().unwrap().states();
    let states = made_up("states", TEXT * width);
    let mut tree = TokenTree::chain((0..TEXT as TokenId).map(|i| 3 + i * 97 % 310));
    let head_input = HeadInput::Target(Features::new(&states, width));
    let want = Want::rows(TEXT - 3..TEXT).features(own).head_input(head_input);
    let mut pass = head.run(&tree, &want).unwrap();
    let mut found = Vec::new();
    // Two branches, then two more nodes on each.
    for (step, parents) in [[TEXT - 1, TEXT - 1], [TEXT, TEXT + 1], [TEXT + 2, TEXT + 3]].iter().enumerate() {
        let features = pass.features().unwrap();
        let logits = pass.logits();
        let rows = if step == 0 { 3 } else { 2 };
        (0..rows).for_each(|row| found.extend(logits.row(row).logits().unwrap().iter()));
        found.extend(features.numbers());
        let last = features.len() - 1;
        let given = if step == 0 { [last, last] } else { [0, 1] };
        let (states, width) = (features.gather(&given), features.width());
        for (branch, &parent) in parents.iter().enumerate() {
            tree.push(20 + 7 * step as TokenId + branch as TokenId, Some(parent));
        }
        let head_input = HeadInput::Own(Features::new(&states, width));
        pass = pass.grow(&tree, &Want::all_rows().features(own).head_input(head_input)).unwrap();
    }
    found.extend(pass.logits().row(1).logits().unwrap().iter());
    found.extend(pass.features().unwrap().numbers());
    pass.keep(&(0..TEXT).collect::<Vec<_>>()).unwrap();
    assert_eq!(head.cached().len(), TEXT);
    found
}

#[test]
fn heads_that_draft_token_by_token_have_the_cpus_bits() {
    let folder = tempfile::tempdir().unwrap();
    let target = family("llama").folder(folder.path(), DType::F32);
    let none = Flags::default();
    for flags in [
        none,
        Flags { norm_before_residual: true, ..none },
        Flags { norm_before_fc: true, ..none },
        Flags { fc_norm: true, norm_output: true, ..none },
        Flags { head_norms: true, norm_before_residual: true, ..none },
    ] {
        let head = RandomHead::new(target.config().unwrap(), flags);
        let mut forms = vec![head.speculators(folder.path()).unwrap()];
        if !flags.head_norms {
            forms.push(head.gguf(folder.path(), GgmlDType::Q8_0).unwrap());
        }
        let own = match flags.norm_output {
            true => Taps { last: true, ..Taps::default() },
            false => Taps { entering: vec![1], ..Taps::default() },
        };
        for form in forms {
            let source = form.for_target(&target).unwrap();
            let expected = drafted(on_the_cpu(&source).as_mut(), &own);
            let found = drafted(on_the_gpu(&source).as_mut(), &own);
            assert_the_cpus(&found, &expected, &format!("{flags:?}, {:?}", source.path()));
        }
    }
}

#[test]
fn mtp_blocks_have_the_cpus_bits() {
    let folder = tempfile::tempdir().unwrap();
    let family = family("qwen35").with_mtp();
    let own = Taps { last: true, ..Taps::default() };
    for target in [family.folder(folder.path(), DType::F32), family.gguf(folder.path(), GgmlDType::Q8_0)] {
        let source = target.mtp_head().unwrap().for_target(&target).unwrap();
        let expected = drafted(on_the_cpu(&source).as_mut(), &own);
        let found = drafted(on_the_gpu(&source).as_mut(), &own);
        assert_the_cpus(&found, &expected, &format!("{:?}", source.path()));
    }
}

/// Scores and states of an assistant after a text whose keys and values it got in two parts, and
/// after a tree of guesses.
fn assisted(assistant: &mut dyn Model) -> Vec<f32> {
    let (width, carried) =
        (assistant.config().draft_head.as_ref().unwrap().states(), assistant.config().carried());
    let states = made_up("states", TEXT * width);
    let tokens: Vec<TokenId> = (0..TEXT as TokenId).map(|i| 3 + i * 97 % 310).collect();
    for part in [0..5, 5..TEXT] {
        let rows = Features::new(&states[part.start * width..part.end * width], width);
        let tree = TokenTree::chain(tokens[part].iter().copied());
        drop(assistant.run(&tree, &Want::nothing().head_input(HeadInput::Target(rows))).unwrap());
    }
    let own = Taps { last: true, ..Taps::default() };
    let want = || Want::all_rows().features(&own);
    let mut tree = TokenTree::chain([20]);
    let first = HeadInput::Own(Features::new(&states[..carried], carried));
    let mut pass = assistant.run(&tree, &want().head_input(first)).unwrap();
    let mut found = Vec::new();
    for (step, parents) in [[0, 0], [1, 2], [3, 4]].iter().enumerate() {
        let (features, logits) = (pass.features().unwrap(), pass.logits());
        (0..features.len()).for_each(|row| found.extend(logits.row(row).logits().unwrap().iter()));
        found.extend(features.numbers());
        let given = features.gather(if step == 0 { &[0, 0] } else { &[0, 1] });
        for (branch, &parent) in parents.iter().enumerate() {
            tree.push(30 + 7 * step as TokenId + branch as TokenId, Some(parent));
        }
        let head_input = HeadInput::Own(Features::new(&given, carried));
        pass = pass.grow(&tree, &want().head_input(head_input)).unwrap();
    }
    found.extend((0..2).flat_map(|row| pass.logits().row(row).logits().unwrap().to_vec()));
    pass.keep(&[]).unwrap();
    assert_eq!(assistant.cached(), tokens);
    found
}

#[test]
fn assistants_have_the_cpus_bits() {
    let folder = tempfile::tempdir().unwrap();
    for (family, clustered) in [(family("gemma4"), true), (dense_gemma4(), false)] {
        let target = family.folder(folder.path(), DType::F32);
        let assistant = RandomAssistant::new(&family, clustered);
        for form in [assistant.folder(folder.path()), assistant.gguf(folder.path(), GgmlDType::Q8_0)] {
            let source = form.unwrap().for_target(&target).unwrap();
            let expected = assisted(on_the_cpu(&source).as_mut());
            let found = assisted(on_the_gpu(&source).as_mut());
            assert_the_cpus(&found, &expected, &format!("{:?}", source.path()));
        }
    }
}

/// Scores of blocks of several lengths after a text with random target states, each position given
/// a token before it, and the head's confidence.
fn guessed(head: &mut dyn Model, kind: BlockKind) -> Vec<f32> {
    let width = head.config().draft_head.as_ref().unwrap().states();
    let states = made_up("states", TEXT * width);
    let tokens: Vec<TokenId> =
        (0..TEXT as TokenId + BLOCK_ROWS as TokenId).map(|i| 8 + i * 97 % 300).collect();
    for part in [0..5, 5..TEXT] {
        let rows = Features::new(&states[part.start * width..part.end * width], width);
        let tree = TokenTree::chain(tokens[part].iter().copied());
        drop(head.run(&tree, &Want::nothing().head_input(HeadInput::Target(rows))).unwrap());
    }
    let mut found = Vec::new();
    for rows in [2, 5, BLOCK_ROWS] {
        let masks = std::iter::repeat_n(MASK, rows - 1);
        let tree = TokenTree::chain(std::iter::once(tokens[TEXT]).chain(masks));
        let mut pass = head.run(&tree, &Want::rows(kind.first()..rows)).unwrap();
        let mut state = BlockState::default();
        for row in 0..rows - kind.first() {
            state = pass.next_state(&state, tokens[TEXT + row]).unwrap();
            let (scores, confidence) = pass.row_after(row, &state).unwrap();
            found.extend(scores.logits().unwrap().iter().copied().chain(confidence));
        }
        pass.keep(&[]).unwrap();
        assert_eq!(head.cached(), &tokens[..TEXT]);
    }
    found
}

#[test]
fn block_heads_have_the_cpus_bits() {
    let folder = tempfile::tempdir().unwrap();
    let target = family("llama").folder(folder.path(), DType::F32);
    for kind in BlockKind::ALL.into_iter().filter(|kind| !kind.is_lilicorr()) {
        let head = RandomBlockHead::new(target.config().unwrap(), kind);
        for form in head.forms(folder.path(), GgmlDType::Q8_0) {
            let source = form.for_target(&target).unwrap();
            let expected = guessed(on_the_cpu(&source).as_mut(), kind);
            let found = guessed(on_the_gpu(&source).as_mut(), kind);
            assert_the_cpus(&found, &expected, &format!("{kind:?}, {:?}", source.path()));
        }
    }
}

/// A head of each kind for the starter target.
fn heads(folder: &Path) -> Vec<ModelSource> {
    let target = starter_target();
    let config = target.config().unwrap();
    let mut head = RandomHead::new(config, Flags::default());
    head.entering = vec![2, 4, 6];
    let mut heads = vec![head.gguf(folder, GgmlDType::Q8_0).unwrap()];
    for kind in BlockKind::ALL {
        let mut head = RandomBlockHead::new(config, kind);
        head.entering = vec![2, 6];
        heads.push(head.any_form(folder));
    }
    heads.into_iter().map(|head| head.for_target(&target).unwrap()).collect()
}

/// Loads a head onto a device.
type Place = fn(&ModelSource) -> Box<dyn Model>;

/// Loads onto the GPU, or onto the CPU if the GPU engine rejects the model.
fn where_it_can(source: &ModelSource) -> Box<dyn Model> {
    load(source, &Device::Gpu(gpu())).unwrap_or_else(|error| {
        assert!(error.to_string().starts_with("Foretoken's GPU engine cannot run"), "{error}");
        on_the_cpu(source)
    })
}

/// Text of a pair, and everything that was drafted for it.
fn written(
    target: Box<dyn Model>,
    source: &ModelSource,
    head: Box<dyn Model>,
    sampling: &Sampling,
    tree: Tree,
) -> (Vec<TokenId>, Vec<TokenId>) {
    let starter = starter_target();
    let tokenizer = Arc::new(starter.tokenizer().unwrap());
    let prompt = chat_prompt(&starter, &tokenizer, "Tell me a story about a fox who finds a lantern.");
    let drafter = head_drafter(source, head, tokenizer.ends()).unwrap();
    let mut drafters = Drafters::new(vec![drafter]);
    let speculation = Speculation { tree, ..Speculation::fixed(4) };
    let request =
        Request { sampling: sampling.clone(), speculation, max_tokens: Some(12), ..Request::new(prompt) };
    let mut drafted = Vec::new();
    let reply = Decoder::new(target, tokenizer).reply(&request, &mut drafters, &mut |progress| {
        if let Progress::Round(round) = progress {
            drafted.extend(round.drafted.iter().map(|drafted| drafted.token));
        }
        ControlFlow::Continue(())
    });
    (reply.unwrap().tokens, drafted)
}

#[test]
fn a_head_drafts_the_same_for_a_target_on_the_gpu_and_on_the_cpu() {
    if !gpu().guarantees().cpu_bits {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let coupled =
        Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() };
    let ways = [(Sampling::greedy(), Tree::Width(1)), (coupled, Tree::Width(3))];
    for (index, source) in heads(folder.path()).into_iter().enumerate() {
        // Outside of nightly runs one head of each kind takes one of the ways.
        if !is_nightly() && index > 1 {
            break;
        }
        for (sampling, tree) in ways.iter().skip(nightly_or(0, index % 2)).step_by(nightly_or(1, 2)) {
            let on_the_cpus =
                written(on_the_cpu(&starter_target()), &source, on_the_cpu(&source), sampling, *tree);
            assert!(on_the_cpus.1.len() > 12, "hardly anything was drafted: {:?}", source.path());
            let places: [Place; 2] = [where_it_can, on_the_cpu];
            for place in places.iter().take(nightly_or(2, 2_usize.saturating_sub(index))) {
                let head = place(&source);
                let found = written(on_the_gpu(&starter_target()), &source, head, sampling, *tree);
                assert_eq!(found, on_the_cpus, "{sampling:?}, {tree:?}, {:?}", source.path());
            }
        }
    }
}
