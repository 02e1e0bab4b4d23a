//! Tests of opening models: complete ones, and files with every kind of defect.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod experts;
mod latent;
mod recent;
mod recurrent;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use candle_core::{DType, Tensor};
use serde_json::{Value as Json, json};

use super::*;
use crate::recommended::Recommended;
use foretoken_testkit::*;

fn open(gguf: &Gguf) -> Result<ModelSource> {
    let folder = tempfile::tempdir().unwrap();
    ModelSource::open(&gguf.write(folder.path()))
}

fn message(result: Result<ModelSource>) -> String {
    let message = result.err().expect("an error").to_string();
    assert!(!message.contains('\n'), "one sentence: {message}");
    message
}

/// Error message of opening a file with these bytes.
fn message_of_bytes(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    message(ModelSource::open(&path))
}

fn tiny_bytes() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    fs::read(Gguf::tiny().write(folder.path())).unwrap()
}

#[test]
fn a_gguf_tells_its_config() {
    let source = open(&Gguf::tiny()).unwrap();
    let config = source.config().unwrap();
    assert_eq!(config.name.as_deref(), Some("Tiny"));
    assert_eq!((config.vocabulary, config.hidden, config.intermediate()), (261, 32, 64));
    assert_eq!((config.depth(), config.heads, config.kv_heads(), config.head_size()), (1, 4, 2, 8));
    assert_eq!(config.context, 64);
    assert!((config.norm_epsilon - 1e-5).abs() < 1e-9);
    assert_eq!(config.attention_kinds[0].rotary.layout, RotaryLayout::Interleaved);
    // 10000^(-2i/8)
    let expected = [1.0, 0.1, 0.01, 0.001];
    for (found, expected) in config.attention_kinds[0].rotary.inverse_frequencies.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    assert!(config.tied_embeddings);
}

#[test]
fn weights_keep_their_type_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let source = ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap();
    let weights = source.weights(&Device::Cpu).unwrap();
    let query = weights.matrix("blk.0.attn_q.weight").unwrap();
    assert_eq!((query.dtype(), query.shape().dims()), (GgmlDType::F16, [32, 32].as_slice()));
    let found: Vec<f32> = query.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    let expected: Vec<f32> = ramp(&[32, 32]).flatten_all().unwrap().to_vec1().unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3));
    assert_eq!(weights.matrix("token_embd.weight").unwrap().dtype(), GgmlDType::Q8_0);
    let norm = weights.vector("output_norm.weight").unwrap();
    assert_eq!((norm.dtype(), norm.dims()), (DType::F32, [32].as_slice()));
    assert!(!weights.contains("output.weight"));
    let error = weights.matrix("output.weight").err().unwrap().to_string();
    assert!(error.contains("the tensor output.weight"), "{error}");
}

#[test]
fn an_output_matrix_of_its_own_is_found() {
    let mut gguf = Gguf::tiny();
    gguf.add("output.weight", &[VOCABULARY, HIDDEN], GgmlDType::F16);
    let source = open(&gguf).unwrap();
    assert!(!source.config().unwrap().tied_embeddings);
    assert!(source.weights(&Device::Cpu).unwrap().contains("output.weight"));
}

#[test]
fn a_description_needs_no_loading() {
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.chat_template", text("{{ messages }}"));
    let description = open(&gguf).unwrap().describe();
    assert_eq!(description.name, "Tiny");
    assert_eq!(description.architecture.as_deref(), Some("llama"));
    let elements = 261 * 32 + 32 * 3 + 32 * 32 * 2 + 16 * 32 * 2 + 64 * 32 * 3;
    assert_eq!(description.parameters, elements);
    assert_eq!(description.quantisation.as_deref(), Some("F16"), "seven matrices of eight");
    assert_eq!(description.label(), "Tiny 18K · F16");
    let tokenizer = description.tokenizer.as_ref().unwrap();
    assert_eq!((tokenizer.kind.as_str(), tokenizer.vocabulary), ("byte-level BPE, gpt-2", 261));
    assert_eq!(tokenizer.special.eos.as_ref().unwrap().text, "</s>");
    assert_eq!(description.sizes.as_ref().unwrap().context, 64);
    assert_eq!(description.template.as_deref(), Some("{{ messages }}"));
    assert_eq!(description.thinking, None);
    assert_eq!(serde_json::to_value(&description).unwrap()["sizes"]["kv_heads"], 2);
}

#[test]
fn a_model_goes_by_its_metadata_unless_that_is_nonsense() {
    let described = |values: &[(&str, Value)]| {
        let mut gguf = Gguf::tiny();
        values.iter().for_each(|(key, value)| gguf.set(key, value.clone()));
        open(&gguf).unwrap().describe().label()
    };
    let basename = ("general.basename", text("Tiny-Talker"));
    let size = ("general.size_label", text("19k"));
    let finetune = ("general.finetune", text("Instruct-GGUF"));
    assert_eq!(described(&[basename.clone(), size, finetune]), "Tiny Talker 19k Instruct 18K · F16");
    assert_eq!(described(&[("general.file_type", Value::U32(1))]), "Tiny 18K · F16");
    // The file type claims Q4_K_M, but no tensor has such a type.
    assert_eq!(described(&[("general.file_type", Value::U32(15))]), "Tiny 18K · F16");
    // Values of the wrong type count as missing.
    let wrong = ["general.name", "general.basename", "general.size_label", "general.finetune"];
    let wrong: Vec<_> = wrong.map(|key| (key, Value::U32(7))).into_iter().collect();
    assert!(described(&wrong).ends_with(" 18K · F16"), "{}", described(&wrong));
    assert_eq!(described(&[("general.file_type", text("Q4_K_M"))]), "Tiny 18K · F16");
}

#[test]
fn a_tokenizer_alone_opens_but_has_no_config() {
    let source = open(&Gguf::sentence_piece(&[("a", -1.0)])).unwrap();
    assert!(source.tokenizer().is_ok());
    let description = source.describe();
    assert_eq!((description.quantisation, description.sizes), (None, None));
    for error in [source.config().err(), source.weights(&Device::Cpu).err()] {
        assert!(error.unwrap().to_string().contains("found only a tokenizer"));
    }
}

#[test]
fn a_missing_template_says_what_to_do() {
    match open(&Gguf::tiny()).unwrap().template(&Renderer::in_this_process()) {
        Err(error @ Error::NoTemplate { .. }) => assert!(error.to_string().contains("--raw")),
        other => panic!("expected a missing template, found {:?}", other.err()),
    }
}

#[test]
fn a_template_knows_the_texts_of_special_tokens() {
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.chat_template", text("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"));
    let template = open(&gguf).unwrap().template(&Renderer::in_this_process()).unwrap();
    let messages = [ChatMessage::new(Role::User, "hi")];
    assert_eq!(template.render(&messages, true).unwrap(), "<s>hi</s>");
}

#[test]
fn a_file_of_another_kind_is_refused() {
    for bytes in [&b"x"[..], b"<!DOCTYPE html>", b"PK\x03\x04 a zip archive"] {
        let message = message_of_bytes(bytes);
        assert!(message.contains("expected a GGUF file"), "{message}");
    }
}

#[test]
fn an_empty_file_is_called_empty() {
    let message = message_of_bytes(b"");
    assert!(message.ends_with(" is empty. Download it again."), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let message = message(ModelSource::open(Path::new("/no/such/model.gguf")));
    assert!(message.contains("/no/such/model.gguf"), "{message}");
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let whole = tiny_bytes();
    // The last bytes are padding; all other truncations cut a tensor.
    let ends = (0..whole.len() - 64).step_by(97);
    for end in ends {
        message_of_bytes(&whole[..end]);
    }
    let message = message_of_bytes(&whole[..whole.len() - 4096]);
    assert!(message.contains("is incomplete (") && message.contains("Download it again"), "{message}");
}

/// The tiny file with the bytes at an offset replaced.
fn patched(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = tiny_bytes();
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn absurd_counts_are_refused_before_anything_is_allocated() {
    // Offsets of the number of tensors, the number of values and the length of the first key.
    for offset in [8, 16, 24] {
        for count in [u64::MAX, 1 << 62, 1 << 40, 1 << 30] {
            let message = message_of_bytes(&patched(offset, &count.to_le_bytes()));
            assert!(message.contains("a complete GGUF header"), "{offset} {count}: {message}");
        }
    }
}

#[test]
fn any_damaged_byte_gives_a_model_or_an_error_but_no_panic() {
    let whole = tiny_bytes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for offset in (0..1200).step_by(3).chain((1200..whole.len().min(12_000)).step_by(41)) {
        for value in [0, 0xFF] {
            let mut file = whole.clone();
            file[offset] = value;
            fs::write(&path, file).unwrap();
            if let Ok(source) = ModelSource::open(&path) {
                let _ =
                    (source.describe(), source.tokenizer(), source.template(&Renderer::in_this_process()));
            }
        }
    }
}

#[test]
fn an_alignment_of_nothing_is_refused() {
    let mut gguf = Gguf::tiny();
    gguf.set("general.alignment", Value::U32(0));
    assert!(message(open(&gguf)).contains("an alignment above 0"));
    gguf.set("general.alignment", Value::U32(32));
    assert!(open(&gguf).is_ok());
    // A nested list, and a key that some writers end with a zero.
    gguf.set("a.list", Value::Array(vec![Value::Array(vec![text("deep")])]));
    gguf.values.remove("general.alignment");
    gguf.set("general.alignment\0", Value::U8(0));
    assert!(message(open(&gguf)).contains("an alignment above 0"));
    gguf.set("general.alignment", Value::U32(32));
    assert!(message(open(&gguf)).contains("the key 'general.alignment' twice"));
}

#[test]
fn another_architecture_is_refused_by_name() {
    let mut gguf = Gguf::tiny();
    for name in ["mamba", "qwen2moe", "qwen3next", "llama4", "gemma3n", "granitemoe", "nemotron_h", "bert"] {
        gguf.set("general.architecture", text(name));
        assert_refused(open(&gguf), name);
    }
    // Mixtral declares the architecture of its experts.
    gguf.set("general.architecture", text("llama"));
    gguf.set("llama.expert_count", Value::U32(8));
    assert_refused(open(&gguf), "llama, a mixture of 8 experts");
}

#[test]
fn another_class_is_refused_by_name() {
    let classes = ["Qwen2MoeForCausalLM", "MixtralForCausalLM", "Llama4ForConditionalGeneration"];
    for class in classes.into_iter().chain(["Gemma3nForConditionalGeneration", "GraniteMoeForCausalLM"]) {
        assert_refused(HuggingFace::tiny().with("architectures", json!([class])).open(), class);
    }
}

#[track_caller]
fn assert_refused(found: Result<ModelSource>, name: &str) {
    match found {
        Err(error @ Error::Architecture { .. }) => {
            let message = error.to_string();
            assert!(message.contains(&format!("'{name}'")), "{message}");
            assert!(message.contains("It supports llama, ") && message.contains("phi3"), "{message}");
        }
        other => panic!("expected a refusal, found {:?}", other.err()),
    }
}

#[test]
fn a_tensor_of_another_shape_is_named_with_both_shapes() {
    let mut gguf = Gguf::tiny();
    gguf.add("blk.0.ffn_up.weight", &[48, HIDDEN], GgmlDType::F16);
    let message = message(open(&gguf));
    assert!(message.contains("blk.0.ffn_up.weight of shape [64, 32]"), "{message}");
    assert!(message.contains("found [48, 32]"), "{message}");
}

#[test]
fn a_missing_tensor_and_one_too_many_are_named() {
    let mut gguf = Gguf::tiny();
    gguf.tensors.remove("blk.0.attn_v.weight");
    assert!(message(open(&gguf)).contains("the tensor blk.0.attn_v.weight, found none"));
    let mut gguf = Gguf::tiny();
    gguf.add("blk.0.attn_q.bias", &[32], GgmlDType::F32);
    assert!(message(open(&gguf)).contains("found blk.0.attn_q.bias as well"));
}

#[test]
fn numbers_that_cannot_be_run_are_refused() {
    let cases = [
        ("llama.block_count", Value::U32(0), "llama.block_count, found none"),
        ("llama.block_count", text("one"), "a whole number for llama.block_count"),
        ("llama.embedding_length", Value::U64(1 << 60), "llama.embedding_length of at most"),
        ("llama.attention.head_count", Value::Array(vec![Value::U32(4)]), "a whole number"),
        ("llama.attention.head_count_kv", Value::U32(3), "key-value heads that divide"),
        ("llama.attention.value_length", Value::U32(16), "equal to the head size 8, found 16"),
        ("llama.rope.dimension_count", Value::U32(16), "an even rotary size up to the head size 8, found 16"),
        ("llama.rope.dimension_count", Value::U32(3), "an even rotary size up to the head size 8, found 3"),
        ("llama.rope.scaling.type", text("ntk"), "found 'ntk'"),
        ("llama.rope.freq_base", Value::F32(0.0), "positive rotary frequencies"),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(f32::NAN), "epsilon between 0 and 1"),
        ("llama.block_count", Value::U32(1 << 20), "at most 4096 layers"),
        ("llama.final_logit_softcapping", Value::F32(30.0), "logits without soft-capping"),
    ];
    for (key, value, expected) in cases {
        let mut gguf = Gguf::tiny();
        gguf.set(key, value);
        let message = message(open(&gguf));
        assert!(message.contains(expected), "{key}: {message}");
    }
}

#[test]
fn gguf_scaling_slows_the_rotation() {
    let frequencies = |gguf: &Gguf| {
        open(gguf).unwrap().config().unwrap().attention_kinds[0].rotary.inverse_frequencies.clone()
    };
    let plain = frequencies(&Gguf::tiny());
    let mut gguf = Gguf::tiny();
    gguf.set("llama.rope.scaling.type", text("linear"));
    gguf.set("llama.rope.scaling.factor", Value::F32(4.0));
    assert_eq!(frequencies(&gguf), plain.iter().map(|f| f / 4.0).collect::<Vec<_>>());
    let scaling = |gguf: &Gguf| open(gguf).unwrap().config().unwrap().rope_scaling();
    assert_eq!(scaling(&gguf), Some(RopeScaling::Linear { factor: 4.0 }));
    assert_eq!(scaling(&Gguf::tiny()), None);
    let mut gguf = Gguf::tiny();
    gguf.tensors.insert(
        "rope_freqs.weight".into(),
        candle_core::quantized::QTensor::quantize(
            &Tensor::new(&[1f32, 2.0, 8.0, 16.0], &Device::Cpu).unwrap(),
            GgmlDType::F32,
        )
        .unwrap(),
    );
    let divided: Vec<f32> = plain.iter().zip([1.0, 2.0, 8.0, 16.0]).map(|(f, by)| f / by).collect();
    let found = frequencies(&gguf);
    assert!(found.iter().zip(&divided).all(|(a, b)| (a / b - 1.0).abs() < 1e-6), "{found:?}");
    assert_eq!(scaling(&gguf), Some(RopeScaling::PerFrequency));
    gguf.add("rope_freqs.weight", &[3], GgmlDType::F32);
    assert!(message(open(&gguf)).contains("4 values in rope_freqs.weight"));
}

/// The tiny model as a model of another family: its keys under that name, and the family's
/// additional tensors.
fn as_family(name: &str) -> Gguf {
    let mut gguf = Gguf::tiny();
    let renamed = |key: String| key.replacen("llama.", &format!("{name}."), 1);
    gguf.values = gguf.values.into_iter().map(|(key, value)| (renamed(key), value)).collect();
    gguf.set("general.architecture", text(name));
    gguf
}

/// Gemma 3 with `layers` layers.
fn gemma(layers: usize) -> Gguf {
    let mut gguf = as_family("gemma3");
    gguf.set("gemma3.block_count", Value::U32(layers as u32));
    gguf.set("gemma3.attention.sliding_window", Value::U32(16));
    let first: Vec<(String, Vec<usize>, GgmlDType)> = gguf
        .tensors
        .iter()
        .filter_map(|(name, tensor)| {
            Some((name.strip_prefix("blk.0.")?.into(), tensor.shape().dims().into(), tensor.dtype()))
        })
        .collect();
    for layer in 0..layers {
        for (name, shape, dtype) in &first {
            gguf.add(&format!("blk.{layer}.{name}"), shape, *dtype);
        }
        for (name, length) in [
            ("attn_q_norm", HEAD_SIZE),
            ("attn_k_norm", HEAD_SIZE),
            ("post_attention_norm", HIDDEN),
            ("post_ffw_norm", HIDDEN),
        ] {
            gguf.add(&format!("blk.{layer}.{name}.weight"), &[length], GgmlDType::F32);
        }
    }
    gguf
}

#[test]
fn every_sixth_layer_of_a_gemma_sees_everything_unless_its_file_says_otherwise() {
    let windows = |gguf: &Gguf| -> Vec<bool> {
        let source = open(gguf).unwrap();
        let config = source.config().unwrap();
        (0..config.depth()).map(|layer| config.attention(layer).unwrap().window == Some(16)).collect()
    };
    let mut gguf = gemma(7);
    assert_eq!(windows(&gguf), [true, true, true, true, true, false, true]);
    let pattern = "gemma3.attention.sliding_window_pattern";
    gguf.set(pattern, Value::U32(3));
    assert_eq!(windows(&gguf), [true, true, false, true, true, false, true]);
    let listed = [false, true, false, false, false, false, false];
    gguf.set(pattern, Value::Array(listed.map(Value::Bool).into()));
    assert_eq!(windows(&gguf), listed);
    gguf.set(pattern, Value::Array(vec![Value::Bool(true)]));
    assert!(message(open(&gguf)).contains("sliding_window_pattern for every layer"));
    gguf.set(pattern, text("some"));
    assert!(message(open(&gguf)).contains("a whole number for gemma3.attention.sliding_window_pattern"));
}

#[test]
fn layers_of_a_gemma_that_see_a_window_turn_by_a_base_of_their_own() {
    let slowest = |gguf: &Gguf| {
        let config = open(gguf).unwrap().config().unwrap().clone();
        [0, 5].map(|layer| config.attention(layer).unwrap().rotary.inverse_frequencies[3])
    };
    let mut gguf = gemma(6);
    gguf.set("gemma3.rope.scaling.type", text("linear"));
    gguf.set("gemma3.rope.scaling.factor", Value::F32(8.0));
    // base^(-6/8)
    let [local, global] = slowest(&gguf);
    assert!((local / 1e-3 - 1.0).abs() < 1e-5 && (global / (10f32.powf(-4.5) / 8.0) - 1.0).abs() < 1e-5);
    gguf.set("gemma3.rope.freq_base_swa", Value::F32(16.0));
    assert_eq!(slowest(&gguf), [0.125, global]);
}

#[test]
fn the_largest_gemma_alone_scales_queries_by_its_width() {
    let scale = |layers| {
        let mut gguf = gemma(layers);
        // Heads that together are wider than the hidden state.
        gguf.set("gemma3.attention.head_count", Value::U32(8));
        gguf.set("gemma3.attention.key_length", Value::U32(8));
        for layer in 0..layers {
            gguf.add(&format!("blk.{layer}.attn_q.weight"), &[64, HIDDEN], GgmlDType::F16);
            gguf.add(&format!("blk.{layer}.attn_output.weight"), &[HIDDEN, 64], GgmlDType::F16);
        }
        open(&gguf).unwrap().config().unwrap().query_scale
    };
    assert_eq!(scale(48), 1.0 / 8f32.sqrt());
    assert_eq!(scale(62), 1.0 / 4f32.sqrt());
}

#[test]
fn missing_parts_of_a_family_are_named() {
    assert!(message(open(&as_family("qwen2"))).contains("the tensor blk.0.attn_q.bias, found none"));
    assert!(message(open(&as_family("qwen3"))).contains("the tensor blk.0.attn_q_norm.weight, found none"));
    let mut gguf = gemma(1);
    gguf.tensors.remove("blk.0.post_ffw_norm.weight");
    assert!(message(open(&gguf)).contains("the tensor blk.0.post_ffw_norm.weight, found none"));
}

#[test]
fn the_factors_of_longrope_are_among_the_tensors() {
    let mut gguf = as_family("phi3");
    gguf.set("phi3.rope.scaling.original_context_length", Value::U32(16));
    gguf.set("phi3.rope.dimension_count", Value::U32(4));
    for (name, factors) in [("long", [2f32, 4.0]), ("short", [1.0, 1.0])] {
        let factors = Tensor::new(&factors, &Device::Cpu).unwrap();
        let tensor = candle_core::quantized::QTensor::quantize(&factors, GgmlDType::F32).unwrap();
        gguf.tensors.insert(format!("rope_factors_{name}.weight"), tensor);
    }
    let rotary = |gguf: &Gguf| open(gguf).unwrap().config().unwrap().attention_kinds[0].rotary.clone();
    let both = rotary(&gguf);
    assert_eq!((both.layout, &both.inverse_frequencies[..]), (RotaryLayout::Halves, &[1.0, 0.01][..]));
    assert_eq!(both.scaling, Some(RopeScaling::LongRope { original: 16 }));
    let long = both.long_frequencies.unwrap();
    assert_eq!((long.original_context, &long.inverse_frequencies[..]), (16, &[0.5, 0.0025][..]));
    // sqrt(1 + ln 4 / ln 16)
    assert_eq!(both.scale, 1.5f32.sqrt());
    gguf.set("phi3.rope.scaling.attn_factor", Value::F32(1.25));
    assert_eq!(rotary(&gguf).scale, 1.25);
    gguf.set("phi3.context_length", Value::U32(16));
    assert_eq!((rotary(&gguf).inverse_frequencies, rotary(&gguf).long_frequencies), (vec![1.0, 0.01], None));
    assert_eq!(rotary(&gguf).scaling, None, "its context is not extended");
    gguf.add("rope_factors_short.weight", &[3], GgmlDType::F32);
    assert!(message(open(&gguf)).contains("2 values in rope_factors_short.weight, found 3"));
    gguf.tensors.remove("rope_factors_short.weight");
    assert!(message(open(&gguf)).contains("2 values in rope_factors_short.weight, found 0"));
}

/// A Hugging Face folder with the tiny model's sizes.
struct HuggingFace {
    config: Json,
    tensors: BTreeMap<String, Tensor>,
}

impl HuggingFace {
    fn tiny() -> Self {
        let config = json!({
            "architectures": ["LlamaForCausalLM"], "vocab_size": VOCABULARY, "hidden_size": HIDDEN,
            "intermediate_size": INTERMEDIATE, "num_hidden_layers": 1, "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
            "hidden_act": "silu", "tie_word_embeddings": true, "rope_scaling": null,
        });
        let shapes: [(&str, &[usize]); 11] = [
            ("model.embed_tokens.weight", &[VOCABULARY, HIDDEN]),
            ("model.norm.weight", &[HIDDEN]),
            ("model.layers.0.input_layernorm.weight", &[HIDDEN]),
            ("model.layers.0.self_attn.q_proj.weight", &[32, HIDDEN]),
            ("model.layers.0.self_attn.k_proj.weight", &[16, HIDDEN]),
            ("model.layers.0.self_attn.v_proj.weight", &[16, HIDDEN]),
            ("model.layers.0.self_attn.o_proj.weight", &[HIDDEN, 32]),
            ("model.layers.0.post_attention_layernorm.weight", &[HIDDEN]),
            ("model.layers.0.mlp.gate_proj.weight", &[INTERMEDIATE, HIDDEN]),
            ("model.layers.0.mlp.up_proj.weight", &[INTERMEDIATE, HIDDEN]),
            ("model.layers.0.mlp.down_proj.weight", &[HIDDEN, INTERMEDIATE]),
        ];
        let half = |shape: &[usize]| ramp(shape).to_dtype(DType::BF16).unwrap();
        let tensors = shapes.iter().map(|&(name, shape)| (name.to_owned(), half(shape))).collect();
        Self { config, tensors }
    }

    fn with(mut self, key: &str, value: Json) -> Self {
        self.config[key] = value;
        self
    }

    fn write(&self, folder: &Path) {
        fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        let tensors: std::collections::HashMap<String, Tensor> = self.tensors.clone().into_iter().collect();
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
    }

    fn open(&self) -> Result<ModelSource> {
        let folder = tempfile::tempdir().unwrap();
        self.write(folder.path());
        ModelSource::open(folder.path())
    }

    fn frequencies(&self) -> Vec<f32> {
        self.open().unwrap().config().unwrap().attention_kinds[0].rotary.inverse_frequencies.clone()
    }
}

#[test]
fn a_folder_tells_its_config_and_gives_canonical_weights() {
    let folder = tempfile::tempdir().unwrap();
    HuggingFace::tiny().write(folder.path());
    let source = ModelSource::open(folder.path()).unwrap();
    let config = source.config().unwrap();
    assert_eq!(
        (config.family.name, config.attention_kinds[0].rotary.layout),
        ("llama", RotaryLayout::Halves)
    );
    assert_eq!((config.head_size(), config.kv_heads(), config.tied_embeddings), (8, 2, true));
    let weights = source.weights(&Device::Cpu).unwrap();
    let keys = weights.matrix("blk.0.attn_k.weight").unwrap();
    assert_eq!((keys.dtype(), keys.shape().dims()), (GgmlDType::BF16, [16, 32].as_slice()));
    let found: Vec<f32> = weights.vector("blk.0.ffn_norm.weight").unwrap().to_vec1().unwrap();
    assert_eq!((found[0], found[16]), (-1.0, 0.0));
}

#[test]
fn tied_embeddings_are_found_under_either_name() {
    let mut model = HuggingFace::tiny();
    let embedding = model.tensors.remove("model.embed_tokens.weight").unwrap();
    model.tensors.insert("lm_head.weight".into(), embedding.clone());
    let alone = model.open().unwrap();
    model.tensors.insert("model.embed_tokens.weight".into(), embedding);
    for source in [alone, model.open().unwrap()] {
        let weights = source.weights(&Device::Cpu).unwrap();
        assert!(weights.contains("token_embd.weight") && !weights.contains("output.weight"));
    }
    let untied = model.with("tie_word_embeddings", json!(false)).open().unwrap();
    assert!(untied.weights(&Device::Cpu).unwrap().contains("output.weight"));
}

#[test]
fn tensors_that_lie_unaligned_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    HuggingFace::tiny().write(folder.path());
    let path = folder.path().join("model.safetensors");
    let read = || -> Vec<f32> {
        let source = ModelSource::open(folder.path()).unwrap();
        source.weights(&Device::Cpu).unwrap().vector("output_norm.weight").unwrap().to_vec1().unwrap()
    };
    let expected = read();
    // One more space at the end of the header shifts every tensor by a byte.
    let file = fs::read(&path).unwrap();
    let length = u64::from_le_bytes(file[..8].try_into().unwrap());
    let header_end = 8 + length as usize;
    let moved = [&(length + 1).to_le_bytes(), &file[8..header_end], b" ", &file[header_end..]].concat();
    fs::write(&path, moved).unwrap();
    assert_eq!(read(), expected);
}

#[test]
fn shards_are_put_together_by_their_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = HuggingFace::tiny();
    let mut other = HuggingFace::tiny();
    other.tensors.retain(|name, _| name.contains("mlp"));
    model.tensors.retain(|name, _| !name.contains("mlp"));
    other.write(folder.path());
    fs::rename(folder.path().join("model.safetensors"), folder.path().join("b.safetensors")).unwrap();
    model.write(folder.path());
    fs::rename(folder.path().join("model.safetensors"), folder.path().join("a.safetensors")).unwrap();
    let index = folder.path().join("model.safetensors.index.json");
    fs::write(&index, json!({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}).to_string())
        .unwrap();
    let source = ModelSource::open(folder.path()).unwrap();
    assert!(source.weights(&Device::Cpu).unwrap().contains("blk.0.ffn_down.weight"));
    for wrong in ["c.safetensors", "../a.safetensors", "/etc/passwd"] {
        fs::write(&index, json!({"weight_map": {"x": wrong}}).to_string()).unwrap();
        let message = message(ModelSource::open(folder.path()));
        assert!(message.contains(&format!("no {wrong}")), "{message}");
    }
}

#[test]
fn hugging_face_scaling_slows_the_rotation() {
    let plain = HuggingFace::tiny().frequencies();
    let scaling = |folder: &HuggingFace| folder.open().unwrap().config().unwrap().rope_scaling();
    assert_eq!(scaling(&HuggingFace::tiny()), None);
    let linear = HuggingFace::tiny().with("rope_scaling", json!({"type": "linear", "factor": 2.0}));
    assert_eq!(scaling(&linear), Some(RopeScaling::Linear { factor: 2.0 }));
    assert_eq!(linear.frequencies(), plain.iter().map(|f| f / 2.0).collect::<Vec<_>>());
    // Wavelengths are 2 pi times 1, 10, 100 and 1000 tokens: 159, 15.9155, 1.59155 and 0.159
    // rotations in 1000 tokens. More than 20 rotations keep the frequency, fewer than 1 divide it
    // by 8; between, (15.9155 - 1) / 19 = 0.78503 and (1.59155 - 1) / 19 = 0.03113 of it stays.
    let llama3 = HuggingFace::tiny().with(
        "rope_scaling",
        json!({
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 20.0,
            "original_max_position_embeddings": 1000,
        }),
    );
    assert_eq!(scaling(&llama3), Some(RopeScaling::PerFrequency));
    let found = llama3.frequencies();
    let expected = [1.0, 0.1 * (0.785_03 + 0.214_97 / 8.0), 0.01 * (0.031_13 + 0.968_87 / 8.0), 0.001 / 8.0];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
    }
    let newer =
        HuggingFace::tiny().with("rope_parameters", json!({"rope_type": "default", "rope_theta": 16.0}));
    assert_eq!((newer.frequencies(), scaling(&newer)), (vec![1.0, 0.5, 0.25, 0.125], None));
}

#[test]
fn a_window_is_mistrals_and_not_llamas() {
    for (class, window) in [("MistralForCausalLM", Some(4)), ("LlamaForCausalLM", None)] {
        let folder =
            HuggingFace::tiny().with("architectures", json!([class])).with("sliding_window", json!(4));
        let source = folder.open().unwrap();
        assert_eq!(source.config().unwrap().attention_kinds[0].window, window, "{class}");
    }
}

#[test]
fn folders_that_cannot_be_run_are_refused() {
    let cases = [
        ("architectures", json!(["GPT2LMHeadModel"]), "'GPT2LMHeadModel'"),
        ("rope_scaling", json!({"rope_type": "ntk", "factor": 2.0}), "found 'ntk'"),
        ("rope_scaling", json!({"rope_type": "linear"}), "a number for factor"),
        ("attention_bias", json!(true), "no biases in attention"),
        ("sliding_window", json!("wide"), "a whole number for sliding_window"),
        ("layer_types", json!(["chunked_attention"]), "layer_types for every layer"),
        ("layer_types", json!([]), "layer_types for every layer"),
        ("final_logit_softcapping", json!(30.0), "logits without soft-capping"),
        ("use_bidirectional_attention", json!(true), "causal attention"),
        ("partial_rotary_factor", json!(0.2), "an even rotary size"),
        ("rope_scaling", json!({"rope_type": "longrope"}), "original_max_position_embeddings"),
        ("hidden_act", json!("gelu"), "found hidden_act gelu"),
        ("hidden_size", json!("big"), "a whole number for hidden_size"),
        ("num_hidden_layers", json!(2), "the tensor blk.1.attn_norm.weight"),
    ];
    for (key, value, expected) in cases {
        let message = message(HuggingFace::tiny().with(key, value).open());
        assert!(message.contains(expected), "{key}: {message}");
    }
    let mut biased = HuggingFace::tiny();
    biased.tensors.insert("model.layers.0.self_attn.q_proj.bias".into(), ramp(&[32]));
    assert!(message(biased.open()).contains("attn_q.bias as well"));
}

#[test]
fn weights_in_eight_bit_floats_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = HuggingFace::tiny();
    let name = "model.layers.0.mlp.up_proj.weight";
    model.tensors.remove(name);
    model.write(folder.path());
    let path = folder.path().join("model.safetensors");
    let file = fs::read(&path).unwrap();
    let (length, rest) = file.split_at(8);
    let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
    let mut header: Json = serde_json::from_slice(&rest[..length]).unwrap();
    let (end, bytes) = (rest.len() - length, INTERMEDIATE * HIDDEN);
    for dtype in ["F8_E4M3", "I8", "U8"] {
        header[name] =
            json!({"dtype": dtype, "shape": [INTERMEDIATE, HIDDEN], "data_offsets": [end, end + bytes]});
        let header = header.to_string();
        let length = (header.len() as u64).to_le_bytes();
        let whole = [&length, header.as_bytes(), &rest[file.len() - 8 - end..], &vec![0; bytes]].concat();
        fs::write(&path, whole).unwrap();
        let message = message(ModelSource::open(folder.path()));
        assert!(message.contains(&format!("{name} in F32, F16 or BF16, found {dtype}")), "{message}");
    }
}

#[test]
fn a_folder_without_its_files_says_which() {
    let folder = tempfile::tempdir().unwrap();
    assert!(message(ModelSource::open(folder.path())).contains("no config.json"));
    HuggingFace::tiny().write(folder.path());
    let source = ModelSource::open(folder.path()).unwrap();
    assert!(source.tokenizer().err().unwrap().to_string().contains("tokenizer.json"));
    let weights = folder.path().join("model.safetensors");
    let file = fs::read(&weights).unwrap();
    fs::write(&weights, &file[..file.len() - 1]).unwrap();
    assert!(message(ModelSource::open(folder.path())).contains("is incomplete ("));
    // Windows may list a removed file as long as it is open.
    drop(source);
    fs::remove_file(&weights).unwrap();
    assert!(message(ModelSource::open(folder.path())).contains("found neither"));
    fs::write(folder.path().join("config.json"), "{").unwrap();
    assert!(message(ModelSource::open(folder.path())).contains("a JSON document"));
}

#[test]
fn a_folders_template_is_found_in_each_of_its_places() {
    let folder = tempfile::tempdir().unwrap();
    HuggingFace::tiny().write(folder.path());
    fs::write(folder.path().join("tokenizer.json"), r#"{"added_tokens": []}"#).unwrap();
    let render = || {
        let template = ModelSource::open(folder.path()).unwrap().template(&Renderer::in_this_process())?;
        template.render(&[], false)
    };
    assert!(matches!(render(), Err(Error::NoTemplate { .. })));
    let config = folder.path().join("tokenizer_config.json");
    fs::write(&config, json!({"chat_template": "plain"}).to_string()).unwrap();
    assert_eq!(render().unwrap(), "plain");
    let named = json!([{"name": "tool_use", "template": "no"}, {"name": "default", "template": "named"}]);
    fs::write(&config, json!({"chat_template": named}).to_string()).unwrap();
    assert_eq!(render().unwrap(), "named");
    fs::write(folder.path().join("chat_template.json"), json!({"chat_template": "own document"}).to_string())
        .unwrap();
    assert_eq!(render().unwrap(), "own document");
    fs::write(folder.path().join("chat_template.jinja"), "own file").unwrap();
    assert_eq!(render().unwrap(), "own file");
}

#[test]
fn the_starter_pair_opens_and_speaks_chatml() {
    for (name, parameters, layers) in [("target", 8_131_328, 9), ("draft", 1_115_008, 3)] {
        let starter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../starter");
        let source = ModelSource::open(&starter.join(format!("starter-{name}-Q8_0.gguf"))).unwrap();
        let description = source.describe();
        assert_eq!((description.parameters, source.config().unwrap().depth()), (parameters, layers));
        assert_eq!(description.quantisation.as_deref(), Some("Q8_0"));
        let tokenizer = source.tokenizer().unwrap();
        assert_eq!((tokenizer.ends(), tokenizer.adds_bos()), ([2, 0].as_slice(), false));
        let messages = [ChatMessage::new(Role::User, "Hi")];
        let prompt = source.template(&Renderer::in_this_process()).unwrap().render(&messages, true).unwrap();
        assert_eq!(prompt, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
        let tokens = tokenizer.encode(&prompt, Special::Parse).unwrap();
        assert_eq!(tokens.iter().filter(|&&token| tokenizer.is_control(token)).count(), 3);
    }
}

#[test]
fn an_unusable_tokenizer_is_described_by_its_reason() {
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.ggml.pre", text("klingon"));
    let description = open(&gguf).unwrap().describe();
    assert!(description.tokenizer.is_none());
    assert!(description.tokenizer_problem.unwrap().contains("'klingon'"));
}

#[test]
fn a_gguf_recommends_what_can_be_set_of_what_it_says() {
    let mut gguf = Gguf::tiny();
    assert_eq!(open(&gguf).unwrap().recommended(), None);
    gguf.set("general.sampling.temp", Value::F32(0.6));
    gguf.set("general.sampling.top_k", Value::I32(20));
    gguf.set("general.sampling.penalty_repeat", Value::F32(1.1));
    let recommended = |gguf: &Gguf| open(gguf).unwrap().recommended();
    let expected = Recommended {
        temperature: Some(0.6),
        top_k: Some(20),
        repetition_penalty: Some(1.1),
        ..Recommended::default()
    };
    assert_eq!(recommended(&gguf), Some(expected));
    for (key, bad) in [("temp", Value::F32(-1.0)), ("temp", text("hot")), ("temp", Value::F32(f32::NAN))] {
        gguf.set(&format!("general.sampling.{key}"), bad);
        assert_eq!(recommended(&gguf), Some(Recommended { temperature: None, ..expected }));
    }
    gguf.set("general.sampling.top_k", Value::I32(-1));
    assert_eq!(
        recommended(&gguf),
        Some(Recommended { repetition_penalty: Some(1.1), ..Recommended::default() })
    );
}

#[test]
fn a_folder_recommends_what_its_generation_config_says_within_range() {
    let recommended = |config: Json| {
        let folder = tempfile::tempdir().unwrap();
        HuggingFace::tiny().write(folder.path());
        fs::write(folder.path().join("generation_config.json"), config.to_string()).unwrap();
        ModelSource::open(folder.path()).unwrap().recommended()
    };
    let said = json!({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0});
    let expected = Recommended {
        temperature: Some(0.6),
        top_k: Some(20),
        top_p: Some(0.95),
        min_p: Some(0.0),
        repetition_penalty: None,
        repeat_last_n: None,
    };
    assert_eq!(recommended(said), Some(expected));
    let wild =
        json!({"temperature": 1e9, "top_k": 2.5, "top_p": 0, "min_p": "much", "repetition_penalty": 1e300});
    assert_eq!(recommended(wild), None);
    assert_eq!(recommended(json!({"do_sample": true, "eos_token_id": 2})), None);
    assert_eq!(recommended(json!([1, 2])), None);
    let greedy = Recommended { temperature: Some(0.0), ..Recommended::default() };
    assert_eq!(recommended(json!({"do_sample": false, "temperature": 0.9})), Some(greedy));
}

#[test]
fn building_a_tokenizer_stops_when_loading_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let source = ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap();
    let watched = |go_on: bool| {
        let flow =
            move |_: u64, _: u64| if go_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        source.clone().watched_by(Arc::new(flow)).tokenizer()
    };
    assert!(matches!(watched(false).err(), Some(Error::Cancelled)));
    assert_eq!(watched(true).unwrap().vocabulary(), source.tokenizer().unwrap().vocabulary());
}
