//! Gemma 4's assistants: attention and scores equal those of transformers in both formats. A tree
//! costs no extra passes, observed states do not depend on history, and no text depends on the
//! assistant.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device, Tensor};
use foretoken_engine::decoder::{Progress, Request};
use foretoken_engine::draft::{DraftRequest, Drafter, HeadDrafter};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::session::{DraftSource, Form, Host, Session, ThisComputer};
use foretoken_engine::speculation::{DrafterChoice, Speculation};
use foretoken_forward::device::DeviceChoice;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, HeadInput, Model, Taps, TensorModel, Want};
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Renderer};
use foretoken_tests::{RandomAssistant, RandomFamily, family, loaded};

use super::invariance::difference;
use super::replay::{assert_changes_no_text, assert_drafts_for, replay};

/// Largest difference of rows, because the CPU stores keys and values in half precision.
const IN_HALVES: f32 = 3e-3;

/// Tokens of the observed text, and steps after it.
const TOKENS: usize = 24;
const STEPS: usize = 3;

/// Small targets: one whose layers share KV caches, and one with experts whose values are its keys.
const TARGETS: [&str; 2] = ["gemma4", "gemma4 with experts"];

fn text() -> Vec<TokenId> {
    (0..(TOKENS + STEPS) as TokenId).map(|i| 3 + i * 97 % 310).collect()
}

fn own() -> Taps {
    Taps { last: true, ..Taps::default() }
}

fn goldens() -> HashMap<String, Tensor> {
    let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/assistants.safetensors");
    candle_core::safetensors::load(goldens, &Device::Cpu).unwrap()
}

fn exact(source: &ModelSource) -> Box<dyn Model> {
    Box::new(TensorModel::exact(source, &Device::Cpu).unwrap())
}

fn drafter(target: &ModelSource, assistant: &ModelSource) -> HeadDrafter {
    let source = assistant.for_target(target).unwrap();
    HeadDrafter::new(&source, loaded(&source), target.tokenizer().unwrap().ends()).unwrap()
}

/// Inputs of an assistant from its target: the last states, and keys and values of two layers.
fn taps(assistant: &ModelSource) -> Taps {
    let assistant = assistant.config().unwrap().assistant().unwrap();
    Taps { last: true, cached: assistant.sees.clone(), ..Taps::default() }
}

/// Tapped features of every token of `text`, and their width.
fn features(target: &mut dyn Model, text: &[TokenId], taps: &Taps) -> (Vec<f32>, usize) {
    target.truncate(0);
    let tree = TokenTree::chain(text.iter().copied());
    let pass = target.run(&tree, &Want::nothing().features(taps)).unwrap();
    let features = pass.features().unwrap();
    (features.numbers().to_vec(), features.width())
}

/// Passes these rows of the target's features to an assistant, whose cache is empty.
fn observe(assistant: &mut dyn Model, text: &[TokenId], rows: Features<'_>) {
    assistant.truncate(0);
    let tree = TokenTree::chain(text.iter().copied());
    drop(assistant.run(&tree, &Want::nothing().head_input(HeadInput::Target(rows))).unwrap());
}

/// Scores after each token of `path`, which follows the observed text; `state` is the last state of
/// that text.
fn steps(assistant: &mut dyn Model, path: &[TokenId], state: &[f32]) -> Vec<Vec<f32>> {
    let (own, mut state, mut rows) = (own(), state.to_vec(), Vec::new());
    let mut tree = TokenTree::chain([path[0]]);
    let head_input = HeadInput::Own(Features::new(&state, state.len()));
    let mut pass = assistant.run(&tree, &Want::all_rows().features(&own).head_input(head_input)).unwrap();
    for &token in &path[1..] {
        rows.push(pass.logits().row(0).logits().unwrap().to_vec());
        state = pass.features().unwrap().row(0).to_vec();
        tree.push(token, Some(tree.len() - 1));
        let head_input = HeadInput::Own(Features::new(&state, state.len()));
        pass = pass.grow(&tree, &Want::all_rows().features(&own).head_input(head_input)).unwrap();
    }
    rows.push(pass.logits().row(0).logits().unwrap().to_vec());
    pass.keep(&[]).unwrap();
    rows
}

#[test]
fn assistant_scores_equal_those_of_transformers() {
    let folder = tempfile::tempdir().unwrap();
    let (goldens, text) = (goldens(), text());
    for label in TARGETS {
        let target = family(label).folder(folder.path(), DType::F32);
        for clustered in [false, true] {
            let assistant = RandomAssistant::new(&family(label), clustered);
            let kind = if clustered { "clustered" } else { "dense" };
            let golden = goldens[&format!("{label} {kind}")].to_vec2::<f32>().unwrap();
            for source in [assistant.folder(folder.path()), assistant.gguf(folder.path(), GgmlDType::F32)] {
                let source = source.unwrap().for_target(&target).unwrap();
                if source.path().extension().is_some() && clustered {
                    // GGUF files do not store the number of nearest clusters.
                    assert_eq!(source.config().unwrap().assistant().unwrap().clusters.unwrap().nearest, 20);
                    continue;
                }
                let exactly = [exact(&target), exact(&source)];
                for ([mut target, mut head], most) in
                    [(exactly, 1e-4), ([loaded(&target), loaded(&source)], IN_HALVES)]
                {
                    let (rows, width) = features(target.as_mut(), &text[..TOKENS], &taps(&source));
                    observe(head.as_mut(), &text[..TOKENS], Features::new(&rows, width));
                    let state = &rows[(TOKENS - 1) * width..][..256];
                    for _ in 0..2 {
                        let found = difference(&steps(head.as_mut(), &text[TOKENS..], state), &golden);
                        assert!(found < most, "{label} {kind}: {found}, at most {most}, {:?}", source.path());
                    }
                }
            }
        }
    }
}

#[test]
fn attended_keys_and_values_equal_those_of_transformers() {
    let folder = tempfile::tempdir().unwrap();
    let (goldens, text) = (goldens(), text());
    for (label, expected) in TARGETS.into_iter().zip([[3, 2], [3, 2]]) {
        let target = family(label).folder(folder.path(), DType::F32);
        let source = RandomAssistant::new(&family(label), false).folder(folder.path()).unwrap();
        let taps = taps(&source.for_target(&target).unwrap());
        assert_eq!(taps.cached, expected, "{label}: without a window, and with one");
        let golden = goldens[&format!("{label} keys")].to_vec2::<f32>().unwrap();
        for (mut target, most) in [(exact(&target), 1e-4), (loaded(&target), IN_HALVES)] {
            let (rows, width) = features(target.as_mut(), &text[..TOKENS], &taps);
            let found: Vec<Vec<f32>> = rows.chunks(width).map(|row| row[256..].to_vec()).collect();
            let found = difference(&found, &golden);
            assert!(found < most, "{label}: {found}, at most {most}");
        }
    }
}

#[test]
fn all_or_nearly_all_clusters_equal_none() {
    let folder = tempfile::tempdir().unwrap();
    let target = family("gemma4").folder(folder.path(), DType::F32);
    let text = text();
    let rows_of = |nearest: Option<usize>| {
        let mut assistant = RandomAssistant::new(&family("gemma4"), nearest.is_some());
        assistant.config["centroid_intermediate_top_k"] = nearest.into();
        let source = assistant.folder(folder.path()).unwrap().for_target(&target).unwrap();
        let (rows, width) = features(loaded(&target).as_mut(), &text[..TOKENS], &taps(&source));
        let mut head = loaded(&source);
        observe(head.as_mut(), &text[..TOKENS], Features::new(&rows, width));
        steps(head.as_mut(), &text[TOKENS..], &rows[(TOKENS - 1) * width..][..256])
    };
    let (dense, all, some) = (rows_of(None), rows_of(Some(20)), rows_of(Some(19)));
    assert_eq!(dense, all);
    for (dense, some) in dense.iter().zip(&some) {
        let lowest = some.iter().copied().fold(f32::INFINITY, f32::min);
        let others = some.iter().filter(|&&score| score == lowest).count();
        let same = dense.iter().zip(some).filter(|(dense, some)| dense == some).count();
        assert_eq!((others, same), (16, 320 - 16));
    }
}

/// The two likeliest tokens.
fn best_two(scores: &[f32]) -> Vec<TokenId> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
    order.into_iter().take(2).map(|token| token as TokenId).collect()
}

#[test]
fn each_guess_of_a_tree_continues_from_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    for (label, clustered) in [(TARGETS[0], true), (TARGETS[1], false)] {
        let target = family(label).gguf(folder.path(), GgmlDType::F32);
        let source = RandomAssistant::new(&family(label), clustered).folder(folder.path()).unwrap();
        let source = source.for_target(&target).unwrap();
        let (mut model, mut head, mut alone) = (loaded(&target), drafter(&target, &source), loaded(&source));
        let text = &text()[..TOKENS];
        replay(model.as_mut(), &mut head, &text.into());
        let request = DraftRequest::tree(3, 2, 14);
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let guesses = head.draft(&text.into(), &request, &mut sampler).unwrap().guesses;
        let depth = guesses.depths().into_iter().max();
        assert_eq!((guesses.len(), depth), (14, Some(2)), "two guesses after each");
        let (observed, last) = (&text[..TOKENS - 1], text[TOKENS - 1]);
        let (rows, width) = features(model.as_mut(), observed, head.taps().unwrap());
        observe(alone.as_mut(), observed, Features::new(&rows, width));
        let state = &rows[(observed.len() - 1) * width..][..256];
        let mut different = HashSet::new();
        for parent in [None].into_iter().chain((0..guesses.len()).map(Some)) {
            let children = guesses.iter().filter(|guess| guess.parent == parent).map(|guess| guess.token);
            let children: Vec<TokenId> = children.collect();
            if !children.is_empty() {
                let path: Vec<TokenId> = std::iter::once(last).chain(guesses.path(parent)).collect();
                let scores = steps(alone.as_mut(), &path, state);
                assert_eq!(children, best_two(&scores[scores.len() - 1]), "{label}: after {path:?}");
                different.insert(children);
            }
        }
        assert!(different.len() > 3, "nothing was tested: {different:?}");
    }
}

#[test]
fn an_assistant_drafts_as_from_a_fresh_start() {
    let folder = tempfile::tempdir().unwrap();
    for (label, clustered) in [(TARGETS[0], true), (TARGETS[1], false)] {
        let target = family(label).gguf(folder.path(), GgmlDType::Q8_0);
        let source =
            RandomAssistant::new(&family(label), clustered).gguf(folder.path(), GgmlDType::Q8_0).unwrap();
        assert_drafts_for(&target, &|| Box::new(drafter(&target, &source)), 5);
    }
}

#[test]
fn a_random_assistant_changes_no_text() {
    let folder = tempfile::tempdir().unwrap();
    for (label, clustered) in [(TARGETS[0], true), (TARGETS[1], false)] {
        let target = family(label).gguf(folder.path(), GgmlDType::Q8_0);
        let source = RandomAssistant::new(&family(label), clustered).folder(folder.path()).unwrap();
        assert_changes_no_text(&target, &text(), &|| Box::new(drafter(&target, &source)));
    }
}

#[test]
fn a_session_drafts_with_an_assistants_file() {
    let folder = tempfile::tempdir().unwrap();
    let (hardware, renderer) = (Arc::new(ThisComputer), Renderer::in_this_process());
    let host = Host { hardware, learning: None, renderer };
    let target = family("gemma4").gguf(folder.path(), GgmlDType::F32);
    let mut session = Session::load(&host, &target, Form::Raw, DeviceChoice::Cpu).unwrap();
    let request = Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(30),
        ignore_end: true,
        speculation: Speculation { drafter: DrafterChoice::Model, ..Speculation::fixed(3) },
        ..Request::new(text())
    };
    let plain = session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap();
    for eight_bits in [false, true] {
        let source = RandomAssistant::new(&family("gemma4"), eight_bits).folder(folder.path()).unwrap();
        let source = DraftSource::Model { source: source.in_eight_bits(eight_bits), stage: None };
        session.draft = session.open_draft(&source, None).unwrap();
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

/// Errors for an assistant of the small Gemma 4 after `change`, in both formats.
fn refused(target: &ModelSource, change: impl Fn(&mut RandomAssistant)) -> Vec<Error> {
    let folder = tempfile::tempdir().unwrap();
    let mut assistant = RandomAssistant::new(&family("gemma4"), true);
    change(&mut assistant);
    let loads = |source: Result<ModelSource>| {
        let source = source?.for_target(target)?;
        let model = foretoken_forward::load(&source, &foretoken_forward::device::Device::Cpu)?;
        HeadDrafter::new(&source, model, &[])
    };
    [assistant.folder(folder.path()), assistant.gguf(folder.path(), GgmlDType::F32)]
        .map(|source| loads(source).err().unwrap_or_else(|| panic!("taken: {}", assistant.config)))
        .into()
}

#[track_caller]
fn assert_said(errors: &[Error], said: &str) {
    errors.iter().for_each(|error| assert!(error.to_string().contains(said), "{error}"));
}

#[test]
fn an_assistant_for_another_target_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let target = |family: &RandomFamily| family.folder(folder.path(), DType::F32);
    let gemma = target(&family("gemma4"));
    // Tensors have the shapes of the config, so that only the target differs.
    let redrawn = |target: &RandomFamily| {
        let other = RandomAssistant::new(target, true);
        move |assistant: &mut RandomAssistant| *assistant = other.clone()
    };
    let mut wider = family("gemma4");
    wider.config["hidden_size"] = 320.into();
    assert_said(
        &refused(&gemma, redrawn(&wider)),
        "it reads states of 320 numbers, and the target's have 256",
    );
    for (key, value, said) in [
        (
            "num_key_value_heads",
            1,
            "without a window, 1 head of 64 numbers, and the target's have 2 heads of 64",
        ),
        ("head_dim", 16, "with a window, 2 heads of 16 numbers, and the target's have 2 heads of 32"),
        (
            "global_head_dim",
            32,
            "without a window, 2 heads of 32 numbers, and the target's have 2 heads of 64",
        ),
    ] {
        let mut other = family("gemma4");
        other.config[key] = value.into();
        let errors = refused(&gemma, redrawn(&other));
        assert_said(&errors, said);
        assert!(errors.iter().all(|error| matches!(error, Error::OtherTarget(_))), "{errors:?}");
    }
    let errors = refused(&target(&family("gemma3")), |_| ());
    assert_said(&errors, "and the target has no such layers");
    let tokens = refused(&gemma, |assistant| {
        *assistant = RandomAssistant::new(&family("gemma4"), false);
        assistant.config["text_config"]["vocab_size"] = 336.into();
        let table = assistant.tensors.get_mut("model.embed_tokens.weight").unwrap();
        *table = Tensor::cat(&[&*table, &table.narrow(0, 0, 16).unwrap()], 0).unwrap();
    });
    assert_said(&tokens, "it knows 336 tokens, and the target has 320");
}

#[test]
fn an_assistant_with_missing_or_unexpected_parts_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let target = family("gemma4").folder(folder.path(), DType::F32);
    let whole = RandomAssistant::new(&family("gemma4"), true);
    let like_others = |name: &&String| name.contains("layers.1.") || name.contains("layers.2.");
    for name in whole.tensors.keys().filter(|name| !like_others(name)) {
        // A GGUF file without centroids has no clusters.
        let errors = refused(&target, |assistant| {
            assistant.tensors.remove(name);
            if name.contains("centroids") {
                assistant
                    .tensors
                    .insert("more.weight".to_owned(), Tensor::ones(4, DType::F32, &Device::Cpu).unwrap());
            }
        });
        assert!(errors.iter().all(|error| matches!(error, Error::BadModel { .. })), "{name}: {errors:?}");
        let errors = refused(&target, |assistant| {
            let tensor = assistant.tensors.get_mut(name).unwrap();
            *tensor = Tensor::cat(&[&*tensor, &*tensor], tensor.rank() - 1).unwrap();
        });
        assert!(errors.iter().all(|error| matches!(error, Error::BadModel { .. })), "{name}: {errors:?}");
        let errors = refused(&target, |assistant| {
            let tensor = assistant.tensors.get_mut(name).unwrap();
            *tensor = (&*tensor * f64::NAN).unwrap();
        });
        assert_said(&errors, "infinity or NaN");
    }
    for (place, token, said) in [(0, 110, "110"), (319, -1, ""), (7, 320, "")] {
        let errors = refused(&target, |assistant| assistant.order.as_mut().unwrap()[place] = token);
        assert_said(&errors, "each of 320 tokens once in masked_embd_ordering");
        assert_said(&errors, said);
    }
    let errors = refused(&target, |assistant| {
        assistant.order.as_mut().unwrap().pop().unwrap();
    });
    assert_said(&errors, "masked_embd_ordering of shape [320], found [319]");
    let errors = refused(&target, |assistant| assistant.order = None);
    assert_said(&errors, "the tensor masked_embd_ordering, found none");
}

#[test]
fn impossible_assistant_sizes_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let said = |key: &str, value: serde_json::Value, inner: bool| {
        let mut assistant = RandomAssistant::new(&family("gemma4"), true);
        let config = if inner { &mut assistant.config["text_config"] } else { &mut assistant.config };
        config[key] = value;
        assistant.folder(folder.path()).err().unwrap().to_string()
    };
    for (key, value, inner, expected) in [
        ("num_centroids", 0, false, "a size in num_centroids, found none"),
        ("num_centroids", 7, false, "a number of clusters that divides 320 tokens, found 7"),
        ("centroid_intermediate_top_k", 21, false, "up to 20 clusters to look at, found 21"),
        ("centroid_intermediate_top_k", 0, false, "a size in centroid_intermediate_top_k, found none"),
        ("backbone_hidden_size", 0, false, "a size in backbone_hidden_size, found none"),
        ("backbone_hidden_size", 1 << 30, false, "backbone_hidden_size of at most"),
        ("sliding_window", 1, true, "a window of at least two tokens, found 1"),
        ("hidden_size", 0, true, "a size in hidden_size"),
    ] {
        let message = said(key, value.into(), inner);
        assert!(message.contains(expected), "{key}: {message}");
    }
    let alone = RandomAssistant::new(&family("gemma4"), true).folder(folder.path()).unwrap();
    assert!(matches!(alone.check_target(), Err(Error::HeadAlone { .. })));
    assert!(!alone.speaks_of_mtp());
}
