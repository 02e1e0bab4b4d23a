#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::config::SharedExpert;
use crate::config::rotary::AttnTemperature;
use crate::family::RecurrentKind;

fn read(class: &str, json: Json) -> Result<ModelConfig> {
    let path = Path::new("model");
    ModelConfig::from_json(path, &json, Family::of_class(class, path).unwrap(), None, false)
}

/// Reads `json`, completed with the sizes that every file gives.
fn with_sizes(class: &str, mut json: Json) -> Result<ModelConfig> {
    let sizes = json!({
        "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 4, "max_position_embeddings": 4096,
    });
    for (key, value) in sizes.as_object().unwrap() {
        json.as_object_mut().unwrap().entry(key).or_insert(value.clone());
    }
    json["architectures"] = json!([class]);
    read(class, json)
}

fn windows(config: &ModelConfig) -> Vec<Option<usize>> {
    config.kinds().map(|kind| config.attention_kinds[kind].window).collect()
}

/// Lowest rotary frequency of a layer.
fn slowest(config: &ModelConfig, layer: usize) -> f32 {
    *config.attention(layer).unwrap().rotary.inverse_frequencies.last().unwrap()
}

#[test]
fn what_the_published_gemma_4b_leaves_out_is_known() {
    let published = json!({
        "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
        "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    });
    let config = read("Gemma3ForConditionalGeneration", published).unwrap();
    assert_eq!((config.vocabulary, config.context), (262_208, 131_072));
    assert_eq!((config.heads, config.kv_heads(), config.head_size()), (8, 4, 256));
    assert_eq!((config.norm_epsilon, config.query_scale), (1e-6, 1.0 / 16.0));
    let windows = windows(&config);
    assert_eq!(windows[..6], [Some(1024), Some(1024), Some(1024), Some(1024), Some(1024), None]);
    assert_eq!(windows.iter().filter(|window| window.is_none()).count(), 5);
    // base^(-254/256); layers with full attention divide it by the factor.
    let (local, global) = (10_000f64.powf(-254.0 / 256.0), 1e6f64.powf(-254.0 / 256.0) / 8.0);
    assert!((f64::from(slowest(&config, 0)) / local - 1.0).abs() < 1e-6);
    assert!((f64::from(slowest(&config, 5)) / global - 1.0).abs() < 1e-6);
}

#[test]
fn newer_files_describe_each_kind_of_layer_by_itself() {
    let config = json!({
        "head_dim": 16, "num_key_value_heads": 4, "sliding_window": 512,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "rope_theta": 256.0, "factor": 2.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 16.0},
        },
    });
    let config = with_sizes("Gemma3ForCausalLM", config).unwrap();
    assert_eq!(windows(&config), [Some(512), None, Some(512)]);
    assert_eq!(slowest(&config, 0), 16f32.powf(-7.0 / 8.0));
    assert_eq!(slowest(&config, 1), 256f32.powf(-7.0 / 8.0) / 2.0);
}

#[test]
fn a_window_is_one_where_the_file_uses_it() {
    let windows = |class, json| windows(&with_sizes(class, json).unwrap());
    let all = [Some(512); 3];
    assert_eq!(windows("MistralForCausalLM", json!({"sliding_window": 512})), all);
    assert_eq!(windows("MistralForCausalLM", json!({"sliding_window": null})), [None; 3]);
    assert_eq!(windows("Phi3ForCausalLM", json!({"sliding_window": 512})), all);
    // The window is larger than the context.
    assert_eq!(windows("Phi3ForCausalLM", json!({"sliding_window": 262_144})), [None; 3]);
    let qwen = |used| json!({"sliding_window": 512, "use_sliding_window": used, "max_window_layers": 1});
    assert_eq!(windows("Qwen2ForCausalLM", qwen(false)), [None; 3]);
    assert_eq!(windows("Qwen2ForCausalLM", qwen(true)), [None, Some(512), Some(512)]);
    assert_eq!(windows("Qwen3ForCausalLM", qwen(true)), [None, Some(512), Some(512)]);
}

#[test]
fn longrope_divides_by_the_factors_for_the_length_of_the_text() {
    let rope = |context: u64| {
        let config = json!({
            "max_position_embeddings": context, "original_max_position_embeddings": 4096,
            "partial_rotary_factor": 0.25,
            "rope_scaling": {"type": "longrope", "short_factor": [1.0, 2.0], "long_factor": [4.0, 8.0]},
        });
        with_sizes("Phi3ForCausalLM", config).unwrap().attention_kinds[0].rotary.clone()
    };
    let (short, long) = (rope(4096), rope(131_072));
    assert_eq!((short.size(), short.scale, &short.long_frequencies), (4, 1.0, &None));
    assert_eq!(short.inverse_frequencies, [1.0, 0.01 / 2.0]);
    assert_eq!(long.inverse_frequencies, short.inverse_frequencies);
    let frequencies = long.long_frequencies.unwrap();
    assert_eq!(
        (frequencies.original_context, frequencies.inverse_frequencies),
        (4096, vec![1.0 / 4.0, 0.01 / 8.0])
    );
    // sqrt(1 + ln 32 / ln 4096), as in the published Phi-3-mini-128k.
    assert!((long.scale - 1.190_238).abs() < 1e-6, "{}", long.scale);
}

#[test]
fn factors_that_do_not_fit_the_head_are_refused() {
    for (factors, found) in [(json!([1.0]), "found 1"), (json!(["a"]), "found 0"), (Json::Null, "found 0")] {
        let config = json!({
            "original_max_position_embeddings": 64,
            "rope_scaling": {"rope_type": "su", "short_factor": vec![1.0; 8], "long_factor": factors},
        });
        let message = with_sizes("Phi3ForCausalLM", config).err().unwrap().to_string();
        assert!(message.contains("8 values in long_factor") && message.contains(found), "{message}");
    }
}

/// Number of rotated components of a head in each layer.
fn rotated_components(config: &ModelConfig) -> Vec<usize> {
    config.kinds().map(|kind| config.attention_kinds[kind].rotary.size()).collect()
}

#[test]
fn layers_without_positions_are_listed_or_every_nth() {
    let found = |class: &str, json: Json| rotated_components(&with_sizes(class, json).unwrap());
    let smollm = |json: Json| found("SmolLM3ForCausalLM", json);
    assert_eq!(smollm(json!({"num_hidden_layers": 8})), [16, 16, 16, 0, 16, 16, 16, 0]);
    assert_eq!(smollm(json!({"no_rope_layer_interval": 2})), [16, 0, 16]);
    assert_eq!(smollm(json!({"no_rope_layers": [0, 1, 1, 0]})), [0, 16, 16]);
    assert_eq!(found("GraniteForCausalLM", json!({})), [16; 3]);
    let granite = |json: Json| {
        let mut hybrid = json!({"layer_types": vec!["attention"; 3], "num_local_experts": 0});
        hybrid["shared_intermediate_size"] = json!(96);
        hybrid.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
        found("GraniteMoeHybridForCausalLM", hybrid)
    };
    assert_eq!(granite(json!({})), [0; 3]);
    assert_eq!(granite(json!({"position_embedding_type": "rope"})), [16; 3]);
    let muse = json!({"num_hidden_layers": 4, "head_dim": 16, "sliding_window": 8});
    assert_eq!(found("MuseGlimmerForConditionalGeneration", muse), [16, 16, 16, 0]);
}

#[test]
fn a_granite_4_is_dense_or_not_and_recurrent_or_not() {
    let read = |json: Json| with_sizes("GraniteMoeHybridForCausalLM", json).unwrap();
    let dense = read(json!({"layer_types": vec!["attention"; 3], "num_local_experts": 0}));
    assert!(dense.experts().is_none() && dense.recurrence().is_none());
    let mamba = json!({
        "layer_types": ["mamba", "attention", "mamba"], "num_local_experts": 8, "num_experts_per_tok": 2,
        "shared_intermediate_size": 96, "mamba_n_heads": 4, "mamba_d_head": "auto", "mamba_d_state": 32,
        "hidden_size": 64, "time_step_limit": [0.25, {"__float__": "Infinity"}],
    });
    let mamba = read(mamba);
    let recurrence = mamba.recurrence().unwrap();
    let heads = &recurrence.heads;
    assert_eq!((heads.keys, heads.values, heads.key_size, heads.value_size), (1, 4, 32, 32));
    assert_eq!((recurrence.channels, recurrence.taps, recurrence.biased), (128 + 64, 4, true));
    assert_eq!(recurrence.steps, [0.25, f32::INFINITY]);
    assert_eq!((recurrence.values(), recurrence.keys(), recurrence.queries()), (0, 128, 160));
    assert_eq!(recurrence.kind, RecurrentKind::Mamba);
    let shared = mamba.layers.iter().map(|layer| layer.feed_forward.shared());
    assert!(shared.eq([Some(SharedExpert { width: 96, gated: false }); 3]));
}

#[test]
fn olmos_stretch_positions_where_they_see_everything_alone() {
    let config = json!({
        "num_key_value_heads": 4, "rope_theta": 256.0, "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64},
    });
    let config = with_sizes("Olmo3ForCausalLM", config).unwrap();
    assert_eq!(windows(&config), [Some(8), None, Some(8)]);
    assert_eq!(slowest(&config, 0), 256f32.powf(-7.0 / 8.0));
    assert_eq!(slowest(&config, 1), 256f32.powf(-7.0 / 8.0) / 2.0);
    let scale = |layer: usize| config.attention(layer).unwrap().rotary.scale;
    assert!(scale(0) == 1.0 && (scale(1) - 1.069_314_7).abs() < 1e-6);
    assert_eq!(windows(&with_sizes("Olmo2ForCausalLM", json!({})).unwrap()), [None; 3]);
}

#[test]
fn what_ministral_does_to_positions_is_in_the_rotary_parameters() {
    let with = |key: &str, value: Json| {
        let mut config = json!({"head_dim": 16, "rope_parameters": {
            "type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 1024,
            "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.1,
        }});
        config["rope_parameters"][key] = value;
        with_sizes("Ministral3ForCausalLM", config)
    };
    let rotary = with("beta_slow", json!(1.0)).unwrap().attention_kinds[0].rotary.clone();
    assert_eq!(
        (rotary.scale, rotary.attn_temperature),
        (1.0, Some(AttnTemperature { beta: 0.1, period: 1024 }))
    );
    let scale = |key, value| with(key, value).unwrap().attention_kinds[0].rotary.scale;
    // 0.1 ln 16 + 1
    assert!((scale("mscale_all_dim", json!(0)) - 1.277_258_9).abs() < 1e-6);
    assert_eq!(scale("attention_factor", json!(1.5)), 1.5);
    for (key, value, expected) in [
        ("factor", json!(0.0), "a positive number for factor, found 0"),
        ("factor", Json::Null, "a number for factor in the rotary scaling"),
        ("beta_fast", json!(-32), "a positive number for beta_fast, found -32"),
        (
            "original_max_position_embeddings",
            json!(-1),
            "a whole number for original_max_position_embeddings",
        ),
        (
            "original_max_position_embeddings",
            json!(0.5),
            "a whole number for original_max_position_embeddings",
        ),
        ("llama_4_scaling_beta", json!(-0.1), "llama_4_scaling_beta, found -0.1"),
        ("attention_factor", json!(-1.0), "positive rotary frequencies"),
        ("rope_type", json!("ntk"), "'yarn' or 'longrope', found 'ntk'"),
    ] {
        let message = with(key, value).err().unwrap().to_string();
        assert!(message.contains(expected), "{key}: {message}");
    }
    let partly = json!({"head_dim": 16, "rope_parameters": {
        "rope_type": "default", "partial_rotary_factor": 0.5, "llama_4_scaling_beta": 0.1,
        "original_max_position_embeddings": 64,
    }});
    let message = with_sizes("Ministral3ForCausalLM", partly).err().unwrap().to_string();
    assert!(message.contains("rotary positions on whole heads"), "{message}");
}

#[test]
fn whole_numbers_may_be_written_as_fractions_and_caps_as_false() {
    let rope = |original: Json| {
        let config = json!({"head_dim": 16, "final_logit_softcapping": false, "rope_parameters": {
            "rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": original,
        }});
        with_sizes("Ministral3ForCausalLM", config).unwrap().attention_kinds[0].rotary.clone()
    };
    assert_eq!(rope(json!(1024.0)), rope(json!(1024)));
}

#[test]
fn numbers_that_are_none_are_refused_by_their_keys() {
    let refused = |class: &str, json: Json| with_sizes(class, json).err().unwrap().to_string();
    let muse = "MuseGlimmerForConditionalGeneration";
    for (class, json, expected) in [
        (
            "SmolLM3ForCausalLM",
            json!({"no_rope_layers": [1, 0]}),
            "a number for every layer in no_rope_layers",
        ),
        ("SmolLM3ForCausalLM", json!({"no_rope_layers": ["a", 0, 1]}), "for every layer in no_rope_layers"),
        ("SmolLM3ForCausalLM", json!({"no_rope_layer_interval": 0}), "a size in no_rope_layer_interval"),
        ("GraniteForCausalLM", json!({"residual_multiplier": 0.0}), "positive number for residual scale"),
        ("GraniteForCausalLM", json!({"residual_multiplier": "a"}), "a number for residual_multiplier"),
        ("GraniteForCausalLM", json!({"logits_scaling": -1}), "a positive number for logit scale"),
        ("GraniteForCausalLM", json!({"attention_multiplier": 1e60}), "a positive query scale"),
        ("GraniteForCausalLM", json!({"embedding_multiplier": 0}), "positive number for embedding scale"),
        (muse, json!({"head_dim": 16, "final_logit_softcapping": -20}), "a positive bound for logits"),
        (muse, json!({"head_dim": 16, "output_multiplier": 0}), "a positive logit scale"),
        (muse, json!({"head_dim": 16, "post_norm_eps": 0}), "an RMS norm epsilon between 0 and 1"),
        (muse, json!({"head_dim": 16, "qk_scale_factor": [1]}), "a number for qk_scale_factor"),
        (muse, json!({"head_dim": 16, "layer_rope_theta": [1, 2]}), "every layer in layer_rope_theta"),
    ] {
        let message = refused(class, json.clone());
        assert!(message.contains(expected), "{json}: {message}");
    }
}
