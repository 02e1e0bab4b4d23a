//! Families that candle-transformers lacks: logits equal those that transformers computes in 32
//! bits, from both formats, on the CPU and on tensors. `tests/goldens/families.py` makes the
//! goldens.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device, Tensor};
use foretoken_engine::decoder::{Decoder, Progress, Request};
use foretoken_engine::draft::{Drafters, NgramDrafter};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, TensorModel, Want, catch_up, rewind};
use foretoken_model::ModelSource;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_tests::{family, loaded, logits_in_chunks, recent, repository};
use serde_json::json;

use super::families::{IN_HALVES, tokens};
use super::invariance::difference;
use super::lossless::Hostile;

/// Positions with goldens.
const POSITIONS: [usize; 14] = [0, 1, 7, 8, 9, 14, 15, 16, 17, 24, 31, 32, 33, 39];

/// The family with RoPE factors for long texts, and the longest text that uses the short ones.
const TWO_LISTS: &str = "phi3 with two lists of factors";
const ORIGINAL: usize = 16;

fn goldens() -> HashMap<String, Vec<Vec<f32>>> {
    let path = repository().join("tests/goldens/families.safetensors");
    let tensors: HashMap<String, Tensor> = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    tensors.into_iter().map(|(label, rows)| (label, rows.to_vec2().unwrap())).collect()
}

/// Logits at the golden positions. Texts end there if the length of a text matters.
fn rows(model: &mut dyn Model, label: &str) -> Vec<Vec<f32>> {
    let tokens = tokens();
    if label != TWO_LISTS {
        let rows = logits_in_chunks(model, &tokens, &[7]);
        return POSITIONS.iter().map(|&place| rows[place].clone()).collect();
    }
    let last = |&place: &usize| logits_in_chunks(model, &tokens[..=place], &[7]).pop().unwrap();
    POSITIONS.iter().map(last).collect()
}

/// Compares tensors in 32 bits and the CPU with the goldens.
fn compare(label: &str, source: &ModelSource, expected: &[Vec<f32>]) {
    let mut tensors = TensorModel::load(source, &Device::Cpu).unwrap();
    let found = difference(&rows(&mut tensors, label), expected);
    assert!(found < 1e-4, "{label} on tensors from {}: relative error {found}", source.path().display());
    let found = difference(&rows(loaded(source).as_mut(), label), expected);
    assert!(found < IN_HALVES, "{label} on the CPU from {}: relative error {found}", source.path().display());
}

#[test]
fn recent_families_agree_with_transformers_from_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let goldens = goldens();
    for family in recent() {
        let expected = &goldens[family.label];
        compare(family.label, &family.folder(folder.path(), DType::F32), expected);
        compare(family.label, &family.gguf(folder.path(), GgmlDType::F32), expected);
    }
}

#[test]
fn mxfp4_experts_have_the_same_values_in_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let family = family("gpt-oss");
    let sources = [family.folder_in_blocks(folder.path()), family.gguf_in_blocks(folder.path())];
    let (expected, tokens) = (&goldens()[family.label], tokens());
    let [one, other] = sources.map(|source| {
        let found =
            difference(&rows(&mut TensorModel::load(&source, &Device::Cpu).unwrap(), family.label), expected);
        assert!(found < 1e-4, "on tensors from {}: relative error {found}", source.path().display());
        let found = rows(loaded(&source).as_mut(), family.label);
        // Activations of block-quantised products are rounded to eight bits.
        let rounded = difference(&found, expected);
        assert!(rounded < 0.03, "on the CPU from {}: relative error {rounded}", source.path().display());
        logits_in_chunks(loaded(&source).as_mut(), &tokens, &[7])
    });
    let most = difference(&one, &other);
    assert!(most < IN_HALVES, "{most}");
}

#[test]
fn the_text_part_of_ministral_is_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let plain = family("mistral3");
    let mut seeing = plain.clone();
    seeing.tensors = plain
        .tensors
        .iter()
        .map(|(name, tensor)| (format!("language_model.{name}"), tensor.clone()))
        .chain([(
            "vision_tower.patch.weight".to_owned(),
            Tensor::zeros(4, DType::F32, &Device::Cpu).unwrap(),
        )])
        .collect();
    let mut language = plain.config.clone();
    language.as_object_mut().unwrap().remove("architectures");
    seeing.config = json!({"architectures": ["Mistral3ForConditionalGeneration"], "text_config": language});
    compare("mistral3", &seeing.folder(folder.path(), DType::F32), &goldens()["mistral3"]);
}

/// Logits after the last of `tokens`, which run in one pass.
fn after(model: &mut dyn Model, tokens: &[TokenId]) -> Vec<f32> {
    logits_in_chunks(model, tokens, &[tokens.len()]).pop().unwrap()
}

#[test]
fn a_text_that_crosses_the_rope_switch_in_either_direction_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let source = family(TWO_LISTS).gguf(folder.path(), GgmlDType::Q8_0);
    let tokens = tokens();
    let models: [(f32, Box<dyn Model>); 2] =
        [(0.0, loaded(&source)), (1e-5, Box::new(TensorModel::exact(&source, &Device::Cpu).unwrap()))];
    for (most, mut model) in models {
        let expected = [ORIGINAL, ORIGINAL + 1].map(|length| after(model.as_mut(), &tokens[..length]));
        model.truncate(0);
        model.prepare_for_length(1);
        // It grows token by token past the switch length, and is cut again.
        for length in (1..=ORIGINAL + 1).chain([ORIGINAL]) {
            let context = &tokens[..length];
            rewind(model.as_mut(), context);
            let (_, carried) =
                catch_up(model.as_mut(), context, &mut |_, _| ControlFlow::Continue(())).unwrap();
            assert!(carried.is_continue() && model.cached() == &context[..length - 1]);
            let pass = model.run(&TokenTree::chain([tokens[length - 1]]), &Want::all_rows()).unwrap();
            let found = pass.logits().row(0).logits().unwrap().to_vec();
            if let Some(expected) = length.checked_sub(ORIGINAL).map(|beyond| &expected[beyond]) {
                let found = difference(&[found], std::slice::from_ref(expected));
                assert!(found <= most, "a text of {length} tokens: {found}");
            }
        }
        let apart = difference(&expected[..1], &expected[1..]);
        assert!(apart > 0.1, "the lists make no difference: {apart}");
        model.prepare_for_length(ORIGINAL + 1);
        assert!(model.cached().is_empty(), "keys of a short text in a long one");
    }
}

#[test]
fn each_token_of_a_reply_past_the_rope_switch_is_the_likeliest_of_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let source = family(TWO_LISTS).gguf(folder.path(), GgmlDType::Q8_0);
    let tokenizer = Arc::new(source.tokenizer().unwrap());
    let mut decoder = Decoder::new(loaded(&source), tokenizer);
    let mut fresh = loaded(&source);
    let request = Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(2 * ORIGINAL),
        ignore_end: true,
        ..Request::new(tokens()[..ORIGINAL - 4].to_vec())
    };
    let mut text = request.prompt.clone();
    // n-grams draft from the prompt, here a text that repeats itself.
    text.extend_from_within(..4);
    for prompt in [&request.prompt[..], &text] {
        let request = Request { prompt: prompt.to_vec(), ..request.clone() };
        // More tokens than requested, past the switch length and wrong.
        let hostile = Hostile(|_: &[_], length| Ok(vec![5; length + 3]));
        let repeating = NgramDrafter::default();
        for mut drafters in [Drafters::default(), Drafters::one(repeating), Drafters::one(hostile)] {
            let go_on = &mut |_: Progress<'_>| ControlFlow::Continue(());
            let reply = decoder.reply(&request, &mut drafters, go_on).unwrap();
            let mut text = prompt.to_vec();
            for token in reply.tokens {
                let logits = after(fresh.as_mut(), &text);
                let likeliest = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
                assert_eq!(token as usize, likeliest, "after {} tokens", text.len());
                text.push(token);
            }
        }
    }
}
