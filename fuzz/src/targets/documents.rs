//! JSON files of a model in Hugging Face format: config.json, header and index of its weights,
//! tokenizer.json, and the two files that name special tokens.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use foretoken_model::{Error, ModelSource};
use serde_json::{Map, Value, json};

use super::gguf::look;
use super::{Memory, Target, corpus, folder};

const SHAPES: [(&str, &[usize]); 11] = [
    ("model.embed_tokens.weight", &[261, 32]),
    ("model.norm.weight", &[32]),
    ("model.layers.0.input_layernorm.weight", &[32]),
    ("model.layers.0.self_attn.q_proj.weight", &[32, 32]),
    ("model.layers.0.self_attn.k_proj.weight", &[16, 32]),
    ("model.layers.0.self_attn.v_proj.weight", &[16, 32]),
    ("model.layers.0.self_attn.o_proj.weight", &[32, 32]),
    ("model.layers.0.post_attention_layernorm.weight", &[32]),
    ("model.layers.0.mlp.gate_proj.weight", &[64, 32]),
    ("model.layers.0.mlp.up_proj.weight", &[64, 32]),
    ("model.layers.0.mlp.down_proj.weight", &[32, 64]),
];

/// Writes a Llama of one layer and 261 tokens, with weights in two files.
fn write(folder: &Path) {
    let config = json!({
        "architectures": ["LlamaForCausalLM"], "vocab_size": 261, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true,
    });
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let vocabulary: Map<String, Value> = (0..261).map(|id| (letters(id), json!(id))).collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true});
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [{"id": 256, "content": "</s>", "special": true, "single_word": false,
                          "lstrip": false, "rstrip": false, "normalized": false}],
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    });
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({"eos_token": "</s>", "chat_template": "{{ messages }}"});
    fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::BF16, &Device::Cpu).unwrap();
    let tensors = SHAPES.map(|(name, shape)| (name.to_owned(), zeros(shape)));
    let parts: [HashMap<String, Tensor>; 2] =
        [tensors[..1].iter().cloned().collect(), tensors[1..].iter().cloned().collect()];
    let mut places = Map::new();
    for (part, number) in parts.iter().zip(1..) {
        let file = format!("model-0000{number}-of-00002.safetensors");
        candle_core::safetensors::save(part, folder.join(&file)).unwrap();
        places.extend(part.keys().map(|name| (name.clone(), json!(file))));
    }
    let index = json!({"metadata": {"total_size": 40_000}, "weight_map": places});
    fs::write(folder.join("model.safetensors.index.json"), index.to_string()).unwrap();
}

/// Returns characters of GPT-2's byte alphabet in any order, and more.
fn letters(id: u32) -> String {
    let printable = (33..=126).chain(161..=172).chain(174..=255).chain(256..=328);
    printable.into_iter().filter_map(char::from_u32).nth(id as usize).unwrap().to_string()
}

/// Creates a target that damages the file `file` of the folder.
fn damaging(
    name: &'static str,
    file: &'static str,
    words: &'static [&'static str],
    more: Vec<Vec<u8>>,
    read: fn(&Path) -> Result<(), Error>,
) -> Target {
    let folder = folder();
    write(folder.path());
    let path = folder.path().join(file);
    let seeds: Vec<_> = fs::read(&path).into_iter().chain(more).collect();
    Target {
        name,
        longest: 2 * seeds.iter().map(Vec::len).max().unwrap(),
        seeds,
        words,
        head: usize::MAX,
        memory: Memory { each: 16, beside: 2 << 20 },
        run: Box::new(move |input| {
            fs::write(&path, input).unwrap();
            read(folder.path()).err().map(|error| error.to_string())
        }),
    }
}

fn describe(folder: &Path) -> Result<(), Error> {
    ModelSource::open(folder).map(|source| drop(source.describe()))
}

pub fn config() -> Target {
    const WORDS: &[&str] = &[
        "LlamaForCausalLM",
        "Qwen3ForCausalLM",
        "Gemma2ForCausalLM",
        "Phi3ForCausalLM",
        "Ministral3ForCausalLM",
        "SmolLM3ForCausalLM",
        "GraniteForCausalLM",
        "GraniteMoeHybridForCausalLM",
        "Olmo3ForCausalLM",
        "MuseGlimmerForConditionalGeneration",
        "Lfm2ForCausalLM",
        "Qwen3_5ForCausalLM",
        "Qwen3_5MoeForCausalLM",
        "\"mtp_num_hidden_layers\":2,",
        "Lfm2MoeForCausalLM",
        "Gemma4AssistantForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "DeepseekV3ForCausalLM",
        "\"kv_lora_rank\":32,\"qk_rope_head_dim\":4,\"qk_nope_head_dim\":8,\"v_head_dim\":16,",
        "\"mlp_layer_types\":[\"dense\",\"sparse\"],",
        "scoring_func",
        "n_group",
        "\"num_centroids\":8,\"use_ordered_embeddings\":true,",
        "shared_expert_intermediate_size",
        "\"layer_types\":[\"linear_attention\",\"conv\",\"full_attention\"],",
        "\"linear_num_key_heads\":3,",
        "conv_L_cache",
        "GptOssForCausalLM",
        "Gemma4ForCausalLM",
        "\"num_local_experts\":4,\"num_experts_per_tok\":2,",
        "\"enable_moe_block\":true,\"top_k_experts\":2,",
        "\"num_kv_shared_layers\":1,\"use_double_wide_mlp\":true,",
        "\"hidden_size_per_layer_input\":8,",
        "\"per_layer_config\":{\"0\":{\"head_dim\":6}},",
        "rope_scaling",
        "rope_theta",
        "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0},",
        "\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":8,\"llama_4_scaling_beta\":0.1},",
        "\"residual_multiplier\":0.5,",
        "\"no_rope_layers\":[1,0],",
        "\"final_logit_softcapping\":3.0,",
        "num_attention_heads",
        "head_dim",
        "vocab_size",
        "sliding_window",
        "layer_types",
        "num_experts",
        "quantization_config",
        "text_config",
        "rms_norm_eps",
    ];
    damaging("config", "config.json", WORDS, corpus("config"), describe)
}

pub fn index() -> Target {
    const WORDS: &[&str] = &[
        "weight_map",
        "metadata",
        "total_size",
        "model-00001-of-00002.safetensors",
        "model-00003-of-00002.safetensors",
        "../config.json",
        "/dev/null",
        "config.json",
        "model.norm.weight",
    ];
    damaging("index", "model.safetensors.index.json", WORDS, Vec::new(), describe)
}

pub fn safetensors() -> Target {
    const WORDS: &[&str] =
        &["BF16", "F16", "F32", "F8_E4M3", "I64", "U8", "data_offsets", "shape", "dtype", "__metadata__"];
    let target = damaging("safetensors", "model-00002-of-00002.safetensors", WORDS, Vec::new(), describe);
    let header = u64::from_le_bytes(target.seeds[0][..8].try_into().unwrap());
    Target { head: 8 + header as usize, ..target }
}

pub fn tokenizer() -> Target {
    const WORDS: &[&str] = &[
        "BPE",
        "Unigram",
        "WordPiece",
        "WordLevel",
        "vocab",
        "merges",
        "added_tokens",
        "pre_tokenizer",
        "normalizer",
        "Sequence",
        "Split",
        "Regex",
        "ByteLevel",
        "Metaspace",
        "Replace",
        "Prepend",
        "NFKC",
        "Lowercase",
        "Digits",
        "\"Regex\":\"\\\\p{L}+|\\\\s\"",
        "\"Regex\":\"(a+)+[bc]\"",
        "\"Regex\":\"(?i:'s|'t)|[^\\\\r\\\\n]\"",
        "Isolated",
        "Removed",
        "byte_fallback",
        "ignore_merges",
        "unk_token",
        "dropout",
        "post_processor",
        "TemplateProcessing",
    ];
    let target = damaging("tokenizer", "tokenizer.json", WORDS, corpus("tokenizer"), look);
    // A compiled pattern may take 4 MB, and three times as much while it is compiled.
    Target { memory: Memory { each: 64, beside: 24 << 20 }, ..target }
}

pub fn added_tokens() -> Target {
    const WORDS: &[&str] = &[
        "added_tokens_decoder",
        "\"300\":{\"content\":\"<tool>\",\"special\":true,\"normalized\":true},",
        "content",
        "special",
        "normalized",
        "lstrip",
        "single_word",
        "bos_token",
        "eos_token",
        "eot_token",
        "additional_special_tokens",
        "add_bos_token",
        "chat_template",
        "<|im_end|>",
    ];
    let target = damaging("added_tokens", "tokenizer_config.json", WORDS, corpus("added_tokens"), look);
    Target { memory: Memory { each: 64, beside: 2 << 20 }, ..target }
}

pub fn generation() -> Target {
    const WORDS: &[&str] = &[
        "eos_token_id",
        "bos_token_id",
        "[256,1,2]",
        "temperature",
        "top_k",
        "top_p",
        "repetition_penalty",
        "do_sample",
    ];
    let target = damaging("generation", "generation_config.json", WORDS, corpus("generation"), look);
    // An element of an array takes two bytes in the file and 72 as a value, twice while it grows.
    Target { memory: Memory { each: 128, beside: 2 << 20 }, ..target }
}
