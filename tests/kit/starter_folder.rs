//! A starter model as a Hugging Face folder of safetensors, written from its GGUF file without the
//! engine's code.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{Device, Tensor};
use serde_json::{Value as Json, json};

use crate::repository;

/// Writes `starter-target` or `starter-draft` into the folder `to`, made if missing, in f32.
pub fn write_starter_folder(name: &str, to: &Path) {
    let path = repository().join(format!("starter/{name}-Q8_0.gguf"));
    let mut file = File::open(path).unwrap();
    let content = Content::read(&mut file).unwrap();
    fs::create_dir_all(to).unwrap();
    let tensors: HashMap<String, Tensor> = content
        .tensor_infos
        .keys()
        .map(|name| {
            let tensor =
                content.tensor(&mut file, name, &Device::Cpu).unwrap().dequantize(&Device::Cpu).unwrap();
            (hugging_face_name(name), unpermuted(name, &tensor, &content))
        })
        .collect();
    candle_core::safetensors::save(&tensors, to.join("model.safetensors")).unwrap();
    let documents = [
        ("config.json", config(&content)),
        ("tokenizer.json", tokenizer(&content)),
        ("tokenizer_config.json", json!({"chat_template": text(&content, "tokenizer.chat_template")})),
        ("generation_config.json", json!({"eos_token_id": number(&content, "tokenizer.ggml.eos_token_id")})),
    ];
    for (name, document) in documents {
        fs::write(to.join(name), document.to_string()).unwrap();
    }
}

/// Writes a model whose tokenizer.json has 60 MB of numbers, which take 1 GB when they are parsed.
pub fn write_greedy_folder(to: &Path) {
    write_starter_folder("starter-draft", to);
    let numbers = "0,".repeat(30_000_000);
    fs::write(to.join("tokenizer.json"), format!(r#"{{"normalizer":[{numbers}0]}}"#)).unwrap();
}

fn number(content: &Content, key: &str) -> u32 {
    content.metadata[key].to_u32().unwrap()
}

fn float(content: &Content, key: &str) -> f32 {
    content.metadata[key].to_f32().unwrap()
}

fn text<'a>(content: &'a Content, key: &str) -> &'a str {
    content.metadata[key].to_string().unwrap()
}

fn list<'a>(content: &'a Content, key: &str) -> &'a [Value] {
    content.metadata[key].to_vec().unwrap()
}

fn hugging_face_name(name: &str) -> String {
    let parts = [
        ("token_embd", "model.embed_tokens"),
        ("output_norm", "model.norm"),
        ("blk.", "model.layers."),
        ("attn_norm", "input_layernorm"),
        ("ffn_norm", "post_attention_layernorm"),
        ("attn_q.", "self_attn.q_proj."),
        ("attn_k.", "self_attn.k_proj."),
        ("attn_v.", "self_attn.v_proj."),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ];
    parts.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// A head's rows in two halves, which GGUF files interleave.
fn unpermuted(name: &str, tensor: &Tensor, content: &Content) -> Tensor {
    let heads = match name {
        _ if name.contains("attn_q.") => number(content, "llama.attention.head_count"),
        _ if name.contains("attn_k.") => number(content, "llama.attention.head_count_kv"),
        _ => return tensor.clone(),
    } as usize;
    let (rows, columns) = tensor.dims2().unwrap();
    let turns = tensor.reshape((heads, rows / heads / 2, 2, columns)).unwrap();
    turns.transpose(1, 2).unwrap().contiguous().unwrap().reshape((rows, columns)).unwrap()
}

fn config(content: &Content) -> Json {
    let number = |key: &str| number(content, key);
    json!({
        "architectures": ["LlamaForCausalLM"],
        "hidden_act": "silu",
        "hidden_size": number("llama.embedding_length"),
        "intermediate_size": number("llama.feed_forward_length"),
        "num_hidden_layers": number("llama.block_count"),
        "num_attention_heads": number("llama.attention.head_count"),
        "num_key_value_heads": number("llama.attention.head_count_kv"),
        "max_position_embeddings": number("llama.context_length"),
        "rms_norm_eps": float(content, "llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": float(content, "llama.rope.freq_base"),
        "vocab_size": list(content, "tokenizer.ggml.tokens").len(),
        "tie_word_embeddings": !content.tensor_infos.contains_key("output.weight"),
        "eos_token_id": number("tokenizer.ggml.eos_token_id"),
    })
}

/// Byte-level BPE with special tokens.
fn tokenizer(content: &Content) -> Json {
    const CONTROL: i32 = 3;
    let strings = |key| list(content, key).iter().map(|text| text.to_string().unwrap().clone());
    let kinds = list(content, "tokenizer.ggml.token_type").iter().map(|kind| kind.to_i32().unwrap());
    let tokens: Vec<(usize, String, bool)> = strings("tokenizer.ggml.tokens")
        .zip(kinds)
        .enumerate()
        .map(|(id, (token, kind))| (id, token, kind == CONTROL))
        .collect();
    let vocabulary: BTreeMap<&str, usize> =
        tokens.iter().map(|(id, token, _)| (token.as_str(), *id)).collect();
    let special = tokens.iter().filter(|(_, _, control)| *control).map(|(id, content, _)| {
        json!({"id": id, "content": content, "special": true, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false})
    });
    let byte_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    json!({
        "version": "1.0",
        "added_tokens": special.collect::<Vec<_>>(),
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": vocabulary,
            "merges": strings("tokenizer.ggml.merges").collect::<Vec<_>>(),
        },
    })
}
