//! MTP heads in models' own files: rows equal those of reference implementations in both formats.
//! Observed states do not depend on history, and no text depends on the head.

use std::ops::ControlFlow;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device, Tensor};
use foretoken_engine::compat::{self, Method};
use foretoken_engine::decoder::{Progress, Request};
use foretoken_engine::draft::{DraftRequest, Drafter, HeadDrafter};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::session::{DraftSource, Form, Host, Session, ThisComputer};
use foretoken_engine::speculation::Speculation;
use foretoken_forward::device::DeviceChoice;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, HeadInput, Model, Pass, Taps, TensorModel, Want};
use foretoken_model::error::Error;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{KvDtype, ModelSource, ProblemKind, Renderer};
use foretoken_tests::{RandomFamily, family, loaded, nightly_or, starter_target};

use super::invariance::difference;
use super::replay::{assert_changes_no_text, assert_drafts_for, replay};

/// Vocabulary size of all families here.
const VOCABULARY: usize = 320;

/// Largest difference of rows, because the CPU stores keys and values in half precision.
const IN_HALVES: f32 = 1.5e-3;

/// Tokens of the text.
const TOKENS: usize = 24;

/// Row at which a chain begins, and its number of steps.
const CHAIN: usize = 9;
const STEPS: usize = 3;

fn qwen35() -> RandomFamily {
    family("qwen35").with_mtp()
}

fn tokens() -> Vec<TokenId> {
    (0..TOKENS as TokenId).map(|i| 3 + i * 97 % 310).collect()
}

/// Texts of the first quarter of the vocabulary and of the second half, each with the length of the
/// shortlist that guesses after it come from.
fn texts() -> [(Vec<TokenId>, usize); 2] {
    let text = |first, count: TokenId| (0..TOKENS as TokenId).map(|i| first + i * 37 % count).collect();
    [(text(3, 77), VOCABULARY / 4), (text(160, 150), VOCABULARY)]
}

fn last() -> Taps {
    Taps { last: true, ..Taps::default() }
}

/// The MTP head of a model.
fn head(target: &ModelSource) -> ModelSource {
    target.mtp_head().unwrap().for_target(target).unwrap()
}

fn drafter(target: &ModelSource) -> HeadDrafter {
    let source = head(target);
    HeadDrafter::new(&source, loaded(&source), target.tokenizer().unwrap().ends()).unwrap()
}

/// States of a target after its final norm.
fn states(target: &mut dyn Model, tokens: &[TokenId]) -> Vec<f32> {
    target.truncate(0);
    let tree = TokenTree::chain(tokens.iter().copied());
    target.run(&tree, &Want::nothing().features(&last())).unwrap().features().unwrap().numbers().to_vec()
}

/// Scores of a head after each token except the first.
fn rows(head: &mut dyn Model, states: &[f32]) -> Vec<Vec<f32>> {
    let (tokens, width) = (tokens(), states.len() / TOKENS);
    head.truncate(0);
    let head_input = HeadInput::Target(Features::new(&states[..(TOKENS - 1) * width], width));
    let tree = TokenTree::chain(tokens[1..].iter().copied());
    let pass = head.run(&tree, &Want::all_rows().head_input(head_input)).unwrap();
    (0..TOKENS - 1).map(|row| pass.logits().row(row).logits().unwrap().to_vec()).collect()
}

/// Scores after the text's tokens behind `CHAIN`, which the head runs as if they were its own
/// guesses.
fn steps(head: &mut dyn Model, states: &[f32]) -> Vec<Vec<f32>> {
    let (tokens, width, own) = (tokens(), states.len() / TOKENS, last());
    head.truncate(0);
    let mut tree = TokenTree::chain(tokens[1..=CHAIN + 1].iter().copied());
    let head_input = HeadInput::Target(Features::new(&states[..tree.len() * width], width));
    let mut pass = head.run(&tree, &Want::nothing().features(&own).head_input(head_input)).unwrap();
    let mut rows = Vec::new();
    for &token in &tokens[CHAIN + 2..][..STEPS] {
        let state = pass.features().map(|states| states.gather(&[states.len() - 1])).unwrap();
        tree.push(token, Some(tree.len() - 1));
        let want = Want::all_rows().features(&own).head_input(HeadInput::Own(Features::new(&state, width)));
        pass = pass.grow(&tree, &want).unwrap();
        rows.push(pass.logits().row(0).logits().unwrap().to_vec());
    }
    rows
}

#[test]
fn mtp_rows_equal_those_of_the_block_around_transformers_layer() {
    let folder = tempfile::tempdir().unwrap();
    let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/mtp.safetensors");
    let goldens = candle_core::safetensors::load(goldens, &Device::Cpu).unwrap();
    for label in ["qwen35", "glm"] {
        let golden = |name: &str| goldens[&format!("{label}.{name}")].to_vec2::<f32>().unwrap();
        let family = family(label).with_mtp();
        let forms = [family.folder(folder.path(), DType::F32), family.gguf(folder.path(), GgmlDType::F32)];
        for target in forms {
            let source = head(&target);
            assert!(source.is_draft_head() && !target.is_draft_head());
            let exact = |source: &ModelSource| Box::new(TensorModel::exact(source, &Device::Cpu).unwrap());
            let exactly = [exact(&target), exact(&source)].map(|model| model as Box<dyn Model>);
            for ([mut target, mut head], most) in
                [(exactly, 1e-4), ([loaded(&target), loaded(&source)], IN_HALVES)]
            {
                let states = states(target.as_mut(), &tokens());
                let first = difference(&rows(head.as_mut(), &states), &golden("rows"));
                let later = difference(&steps(head.as_mut(), &states), &golden("steps"));
                assert!(first < most && later < most, "{label}: {first}, {later}, at most {most}");
            }
        }
    }
}

#[test]
fn an_mtp_block_with_experts_is_equal_in_both_formats_and_on_both_engines() {
    let folder = tempfile::tempdir().unwrap();
    for label in ["qwen35moe", "glm"] {
        let plain = family(label).folder(folder.path(), DType::F32);
        let plain = states(loaded(&plain).as_mut(), &tokens());
        let family = family(label).with_mtp();
        let target = family.folder(folder.path(), DType::F32);
        let states = states(loaded(&target).as_mut(), &tokens());
        assert!(states == plain, "{label}: the block changes its model");
        let expected = rows(&mut TensorModel::exact(&head(&target), &Device::Cpu).unwrap(), &states);
        for source in [head(&target), head(&family.gguf(folder.path(), GgmlDType::F32))] {
            let found = difference(&rows(loaded(&source).as_mut(), &states), &expected);
            assert!(found < IN_HALVES, "{label}: {found}");
        }
    }
}

#[test]
fn an_mtp_block_that_copies_the_state_guesses_the_targets_previous_favourite() {
    let folder = tempfile::tempdir().unwrap();
    let mut family = qwen35();
    for name in ["mtp.layers.0.self_attn.o_proj.weight", "mtp.layers.0.mlp.down_proj.weight"] {
        let nothing = family.tensors[name].zeros_like().unwrap();
        family.tensors.insert(name.to_owned(), nothing);
    }
    let hidden = family.size("hidden_size");
    let nothing = Tensor::zeros((hidden, hidden), DType::F32, &Device::Cpu).unwrap();
    let state = Tensor::eye(hidden, DType::F32, &Device::Cpu).unwrap();
    family.tensors.insert("mtp.fc.weight".to_owned(), Tensor::cat(&[&nothing, &state], 1).unwrap());
    for name in ["mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight"] {
        let one = family.tensors[name].zeros_like().unwrap();
        family.tensors.insert(name.to_owned(), one);
    }
    let target = family.gguf(folder.path(), GgmlDType::F32);
    let (mut model, mut drafter) = (loaded(&target), drafter(&target));
    for (text, guessed) in texts() {
        for length in 12..TOKENS {
            replay(model.as_mut(), &mut drafter, &text[..length].into());
            let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
            let draft = drafter.draft(&text[..length].into(), &DraftRequest::chain(3), &mut sampler).unwrap();
            model.truncate(0);
            let tree = TokenTree::chain(text[..length - 1].iter().copied());
            let pass = model.run(&tree, &Want::all_rows()).unwrap();
            let scores = pass.logits().row(length - 2).logits().unwrap()[..guessed].to_vec();
            let guesses: Vec<TokenId> = draft.guesses.iter().map(|guess| guess.token).collect();
            assert_eq!(guesses, [best(&scores); 3], "after {length} tokens of {guessed}");
        }
    }
}

fn best(scores: &[f32]) -> TokenId {
    (0..scores.len()).max_by(|&one, &other| scores[one].total_cmp(&scores[other])).unwrap() as TokenId
}

/// Likeliest chain of the first `guessed` tokens after `text`, by running the head with only its
/// own normed outputs.
fn alone(
    head: &mut dyn Model,
    text: &[TokenId],
    guessed: usize,
    states: &[f32],
    length: usize,
) -> Vec<TokenId> {
    let (width, own) = (states.len() / text.len(), last());
    head.truncate(0);
    let mut tree = TokenTree::chain(text[1..].iter().copied());
    let head_input = HeadInput::Target(Features::new(&states[..tree.len() * width], width));
    let mut pass = head.run(&tree, &Want::all_rows().features(&own).head_input(head_input)).unwrap();
    let mut row = tree.len() - 1;
    let best = |pass: &Pass<'_>, row| best(&pass.logits().row(row).logits().unwrap()[..guessed]);
    let mut chain = vec![best(&pass, row)];
    while chain.len() < length {
        let state = pass.features().map(|states| states.gather(&[row])).unwrap();
        tree.push(chain[chain.len() - 1], Some(tree.len() - 1));
        let want = Want::all_rows().features(&own).head_input(HeadInput::Own(Features::new(&state, width)));
        pass = pass.grow(&tree, &want).unwrap();
        row = 0;
        chain.push(best(&pass, row));
    }
    chain
}

#[test]
fn an_mtp_draft_continues_from_the_blocks_normed_output() {
    let folder = tempfile::tempdir().unwrap();
    let target = qwen35().gguf(folder.path(), GgmlDType::F32);
    let (mut model, mut drafter, mut by_hand) = (loaded(&target), drafter(&target), loaded(&head(&target)));
    for ((text, guessed), length) in
        texts().into_iter().flat_map(|one| (12..TOKENS).map(move |to| (one.clone(), to)))
    {
        let text = &text[..length];
        replay(model.as_mut(), &mut drafter, &text.into());
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let draft = drafter.draft(&text.into(), &DraftRequest::chain(5), &mut sampler).unwrap();
        let found: Vec<TokenId> = draft.guesses.iter().map(|guess| guess.token).collect();
        let states = states(model.as_mut(), text);
        let expected = alone(by_hand.as_mut(), text, guessed, &states, found.len());
        assert_eq!(found, expected, "after {length} tokens of {guessed}");
        assert!(!found.is_empty());
    }
}

#[test]
fn a_random_mtp_head_changes_no_text() {
    let folder = tempfile::tempdir().unwrap();
    for &label in nightly_or(&["qwen35", "qwen35moe", "glm"][..], &["qwen35", "glm"]) {
        let target = family(label).with_mtp().gguf(folder.path(), GgmlDType::Q8_0);
        for (text, _) in texts() {
            assert_changes_no_text(&target, &text, &|| Box::new(drafter(&target)));
        }
    }
}

#[test]
fn rows_of_the_first_tokens_are_prefixes_of_whole_rows() {
    let folder = tempfile::tempdir().unwrap();
    let target = qwen35().gguf(folder.path(), GgmlDType::Q8_0);
    let (source, states) = (head(&target), states(loaded(&target).as_mut(), &tokens()));
    let tensors: Box<dyn Model> = Box::new(TensorModel::load(&source, &Device::Cpu).unwrap());
    for mut head in [loaded(&source), tensors] {
        let whole = rows(head.as_mut(), &states);
        for (count, rest) in [(1, 0..9), (17, 3..7), (80, 0..23), (81, 2..3), (319, 0..23), (320, 0..1)] {
            head.truncate(0);
            let (tokens, width) = (tokens(), states.len() / TOKENS);
            let head_input = HeadInput::Target(Features::new(&states[..(TOKENS - 1) * width], width));
            let tree = TokenTree::chain(tokens[1..].iter().copied());
            let want = Want::rows(rest.clone()).head_input(head_input).vocabulary(count);
            let pass = head.run(&tree, &want).unwrap();
            for (row, whole) in rest.clone().zip(&whole[rest]) {
                let found = pass.logits().row(row - want.rows.start);
                assert_eq!(found.logits().unwrap(), &whole[..count], "row {row} of {count}");
                assert_eq!(found.likeliest(), best(&whole[..count]), "row {row} of {count}");
            }
        }
    }
}

#[test]
fn only_scored_tokens_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let target = qwen35().gguf(folder.path(), GgmlDType::F32);
    let (mut model, mut drafter) = (loaded(&target), drafter(&target));
    for (penalty, (text, guessed)) in
        [1.0, 1.3].into_iter().flat_map(|penalty| texts().map(|one| (penalty, one)))
    {
        replay(model.as_mut(), &mut drafter, &text[..].into());
        let sampling = Sampling {
            temperature: 1.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: penalty,
            ..Sampling::default()
        };
        let mut sampler = Sampler::new(&sampling).unwrap();
        let draft = drafter.draft(&text[..].into(), &DraftRequest::chain(4), &mut sampler).unwrap();
        assert_eq!(draft.guesses.len(), 4);
        for guess in draft.guesses.iter() {
            let entries = guess.drawn_from.as_ref().unwrap().entries();
            assert_eq!(entries.len(), guessed, "each has a chance");
            assert!(entries.iter().all(|&(token, _)| (token as usize) < guessed));
        }
    }
}

#[test]
fn an_mtp_head_drafts_as_from_a_fresh_start() {
    let folder = tempfile::tempdir().unwrap();
    let target = qwen35().gguf(folder.path(), GgmlDType::Q8_0);
    assert_drafts_for(&target, &|| Box::new(drafter(&target)), 5);
}

#[test]
fn a_session_drafts_with_the_block_in_its_targets_file_or_in_one_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (hardware, renderer) = (Arc::new(ThisComputer), Renderer::in_this_process());
    let host = Host { hardware, learning: None, renderer };
    let whole = qwen35().gguf(folder.path(), GgmlDType::F32);
    let without = family("qwen35").gguf(folder.path(), GgmlDType::Q8_0);
    let beside = ModelSource::open(&qwen35().mtp_gguf(folder.path(), GgmlDType::F32)).unwrap();
    let int8 = whole.clone().with_kv_dtype(KvDtype::Int8);
    for (source, beside) in
        [(whole.clone(), None), (int8, None), (whole.in_eight_bits(true), None), (without, Some(beside))]
    {
        let mut session = Session::load(&host, &source, Form::Raw, DeviceChoice::Cpu).unwrap();
        let request = Request {
            sampling: Sampling::greedy(),
            max_tokens: Some(30),
            ignore_end: true,
            speculation: Speculation::fixed(3),
            ..Request::new(tokens())
        };
        let go_on = &mut |_: Progress<'_>| ControlFlow::Continue(());
        let plain = session.reply(&request, go_on).unwrap();
        let head = beside.map_or_else(|| session.mtp_head(), Ok).unwrap();
        assert_eq!(head.eight_bits(), source.eight_bits());
        assert_eq!(head.config().unwrap().kv_dtype, KvDtype::F16);
        assert!(source.mtp_head().map_or(true, |head| head.config().unwrap().kv_dtype == KvDtype::F16));
        session.draft = session.open_draft(&DraftSource::Model { source: head, stage: None }, None).unwrap();
        let mut drafted = 0;
        let reply = session.reply(&request, &mut |progress| {
            if let Progress::Round(round) = progress {
                drafted += round.drafted.iter().filter(|one| one.drafter == DrafterKind::Head).count();
            }
            ControlFlow::Continue(())
        });
        assert_eq!(reply.unwrap().tokens, plain.tokens);
        assert!(drafted > 10, "{drafted}");
    }
}

#[test]
fn an_unsupported_mtp_head_is_rejected_with_a_message_and_its_model_runs() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut RandomFamily)| {
        let mut family = qwen35();
        change(&mut family);
        let forms = [family.folder(folder.path(), DType::F32), family.gguf(folder.path(), GgmlDType::F32)];
        forms.map(|target| {
            loaded(&target);
            target.mtp_head().err().unwrap()
        })
    };
    let remove = |name: &'static str| {
        move |family: &mut RandomFamily| {
            family.tensors.remove(name).unwrap();
        }
    };
    for (name, expected) in [
        ("mtp.fc.weight", "the tensor blk.0.nextn.eh_proj.weight in the block for MTP, found none"),
        ("mtp.pre_fc_norm_hidden.weight", "the tensor blk.0.nextn.hnorm.weight in the block for MTP"),
        ("mtp.layers.0.self_attn.q_proj.weight", "the tensor blk.0.attn_q.weight in the block for MTP"),
        ("mtp.layers.0.mlp.down_proj.weight", "the tensor blk.0.ffn_down.weight in the block for MTP"),
    ] {
        for error in refused(&remove(name)) {
            assert!(error.to_string().contains(expected), "{name}: {error}");
        }
    }
    let narrow = |family: &mut RandomFamily| {
        let fc = family.tensors["mtp.fc.weight"].narrow(1, 0, 256).unwrap().force_contiguous().unwrap();
        family.tensors.insert("mtp.fc.weight".to_owned(), fc);
    };
    for error in refused(&narrow) {
        assert!(error.to_string().contains("eh_proj.weight of shape [256, 512]"), "{error}");
    }
    // Files without the head's tensors still declare it.
    let strip = |family: &mut RandomFamily| family.tensors.retain(|name, _| !name.starts_with("mtp."));
    for error in refused(&strip) {
        assert!(matches!(error, Error::NoMtp { .. }), "{error}");
        assert_eq!(error.kind(), ProblemKind::NotInFile);
    }
    let plain = family("qwen35").folder(folder.path(), DType::F32);
    assert!(!plain.speaks_of_mtp() && plain.mtp_head().is_err());
}

#[test]
fn a_missing_norm_of_an_mtp_block_is_its_targets() {
    let folder = tempfile::tempdir().unwrap();
    let (mut without, mut same) = (qwen35(), qwen35());
    without.tensors.remove("mtp.norm.weight").unwrap();
    same.tensors.insert("mtp.norm.weight".to_owned(), same.tensors["model.norm.weight"].clone());
    let [without, same] = [without, same].map(|family| {
        let target = family.gguf(folder.path(), GgmlDType::F32);
        let states = states(loaded(&target).as_mut(), &tokens());
        rows(loaded(&head(&target)).as_mut(), &states)
    });
    assert!(without == same);
}

#[test]
fn a_file_with_only_the_mtp_block_is_a_head_and_not_a_target() {
    let folder = tempfile::tempdir().unwrap();
    for label in ["qwen35", "qwen35moe"] {
        let whole = family(label).with_mtp();
        let target = whole.gguf(folder.path(), GgmlDType::Q8_0);
        let alone = ModelSource::open(&whole.mtp_gguf(folder.path(), GgmlDType::Q8_0)).unwrap();
        assert!(alone.is_draft_head() && !alone.speaks_of_mtp());
        assert!(alone.check_target().unwrap_err().to_string().contains("is a draft head: it drafts for"));
        let verdict = compat::verdict(&target, &alone).unwrap();
        assert_eq!(verdict.method, Some(Method::Head), "{}", verdict.detail);
        assert_eq!(compat::verdict(&starter_target(), &alone).unwrap().method, None);
        let states = states(loaded(&target).as_mut(), &tokens());
        let rows_of = |source: &ModelSource| rows(loaded(source).as_mut(), &states);
        assert!(rows_of(&head(&target)) == rows_of(&alone.for_target(&target).unwrap()));
        // Shared tensors are the target's and are read from the target's file.
        let shared = alone.for_target(&target).unwrap().weights(&Device::Cpu).unwrap();
        let own = target.weights(&Device::Cpu).unwrap();
        for name in ["token_embd.weight", "output.weight"] {
            assert!(shared.identity(name).unwrap() == own.identity(name).unwrap(), "{name}");
        }
    }
}
