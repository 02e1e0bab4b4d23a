//! Settings of random vision models in both formats.

use candle_core::quantized::gguf_file::Value;
use serde_json::{Value as Json, json};

use super::{DEEPSTACK, GRID, HEADS, INTERMEDIATE, LONGEST, PATCH, RandomVision, TABLE, TILE, WIDTH};

/// Pixels of the smallest and the largest picture of Qwen3.5 and of Qwen3-VL.
const PIXELS: (usize, usize) = (64 * 64, 100 * 64);
const FEWER_PIXELS: (usize, usize) = (16 * 64, 40 * 64);

impl RandomVision {
    /// `model_type` of the language model in config.json.
    fn text_type(&self) -> &'static str {
        match self.label {
            "qwen3_5" => "qwen3_5_text",
            "qwen3_vl" => "qwen3_vl_text",
            "gemma4" => "gemma4_text",
            "mistral3" => "ministral3",
            _ => "llama",
        }
    }

    fn class(&self) -> &'static str {
        match self.label {
            "qwen3_5" => "Qwen3_5ForConditionalGeneration",
            "qwen3_vl" => "Qwen3VLForConditionalGeneration",
            "gemma4" => "Gemma4ForConditionalGeneration",
            "mistral3" => "Mistral3ForConditionalGeneration",
            _ => "SmolVLMForConditionalGeneration",
        }
    }

    /// Name of a tensor of the language model beside a vision model.
    pub(super) fn text_name(&self, name: &str) -> String {
        match (self.label, name.strip_prefix("model.")) {
            ("mistral3", _) => format!("language_model.{name}"),
            ("smolvlm", Some(rest)) => format!("model.text_model.{rest}"),
            (_, Some(rest)) => format!("model.language_model.{rest}"),
            (_, None) => name.to_owned(),
        }
    }

    /// config.json
    pub(super) fn config(&self) -> Json {
        let mut language = self.text.config.clone();
        let keys = language.as_object_mut().unwrap();
        keys.remove("architectures");
        keys.remove("special_tokens");
        keys.remove("chat_template");
        language["model_type"] = json!(self.text_type());
        json!({
            "architectures": [self.class()], "model_type": self.label, "text_config": language,
            "vision_config": self.vision_config(), "scale_factor": self.merge(),
            "spatial_merge_size": self.merge(), "tie_word_embeddings": self.text.ties_embeddings(),
            "image_token_id": self.special_token(self.special_tokens()[0]),
            "image_token_index": self.special_token(self.special_tokens()[0]),
            "vision_feature_layer": -1, "multimodal_projector_bias": false, "projector_hidden_act": "gelu",
        })
    }

    /// Settings of the picture processor.
    pub(super) fn processor(&self) -> Json {
        let halves = [0.5; 3];
        match self.label {
            "qwen3_5" | "qwen3_vl" => {
                let (least, most) = if self.label == "qwen3_5" { PIXELS } else { FEWER_PIXELS };
                json!({
                    "size": {"shortest_edge": least, "longest_edge": most}, "patch_size": PATCH,
                    "merge_size": self.merge(), "temporal_patch_size": 2, "image_mean": halves,
                    "image_std": halves,
                })
            }
            "gemma4" => json!({"patch_size": PATCH, "pooling_kernel_size": 3, "max_soft_tokens": 280}),
            "mistral3" => json!({
                "size": {"longest_edge": LONGEST * 2 / 3}, "patch_size": PATCH,
                "image_mean": [0.5, 0.25, 0.125], "image_std": [0.3, 0.2, 0.1],
            }),
            _ => json!({
                "size": {"longest_edge": LONGEST}, "max_image_size": {"longest_edge": TILE},
                "image_mean": halves, "image_std": halves,
            }),
        }
    }

    fn vision_config(&self) -> Json {
        let mut config = match self.label {
            "qwen3_5" | "qwen3_vl" => json!({
                "model_type": format!("{}_vision", self.label), "depth": self.layers(), "num_heads": HEADS,
                "spatial_merge_size": self.merge(), "temporal_patch_size": 2,
                "out_hidden_size": self.text.size("hidden_size"), "num_position_embeddings": GRID * GRID,
                "hidden_act": "gelu_pytorch_tanh", "in_channels": 3,
            }),
            "gemma4" => json!({
                "model_type": "gemma4_vision", "num_hidden_layers": self.layers(), "num_attention_heads": HEADS,
                "num_key_value_heads": HEADS, "head_dim": WIDTH / HEADS, "pooling_kernel_size": 3,
                "position_embedding_size": TABLE, "use_clipped_linears": true, "standardize": true,
                "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-3,
            }),
            "mistral3" => json!({
                "model_type": "pixtral", "num_hidden_layers": self.layers(), "num_attention_heads": HEADS,
                "image_size": LONGEST * 2 / 3, "hidden_act": "silu", "head_dim": WIDTH / HEADS,
                "rope_theta": 1e4,
            }),
            _ => json!({
                "model_type": "smolvlm_vision", "num_hidden_layers": self.layers(),
                "num_attention_heads": HEADS, "image_size": TILE, "hidden_act": "gelu_pytorch_tanh",
                "layer_norm_eps": 1e-6,
            }),
        };
        config["hidden_size"] = json!(WIDTH);
        config["intermediate_size"] = json!(INTERMEDIATE);
        config["patch_size"] = json!(PATCH);
        if self.label == "qwen3_vl" {
            config["deepstack_visual_indexes"] = json!(DEEPSTACK);
        }
        config
    }

    /// Keys of an mmproj file.
    pub(super) fn mmproj_keys(&self) -> Vec<(String, Value)> {
        let text = |text: &str| Value::String(text.into());
        let size = |size: usize| Value::U32(size as u32);
        let numbers = |numbers: [f32; 3]| Value::Array(numbers.map(Value::F32).to_vec());
        let (kind, image, mean, deviation) = match self.label {
            "qwen3_5" | "qwen3_vl" => ("qwen3vl_merger", TILE, [0.5; 3], [0.5; 3]),
            // The size means nothing.
            "gemma4" => ("gemma4v", 224, [0.0; 3], [1.0; 3]),
            "mistral3" => ("pixtral", LONGEST * 2 / 3, [0.5, 0.25, 0.125], [0.3, 0.2, 0.1]),
            _ => ("idefics3", TILE, [0.5; 3], [0.5; 3]),
        };
        let epsilon = match self.label {
            "gemma4" => 1e-3,
            "mistral3" => self.text.config["rms_norm_eps"].as_f64().unwrap() as f32,
            _ => 1e-6,
        };
        let mut own = vec![
            ("image_size", size(image)),
            ("patch_size", size(PATCH)),
            ("embedding_length", size(WIDTH)),
            ("feed_forward_length", size(INTERMEDIATE)),
            ("block_count", size(self.layers())),
            ("projection_dim", size(self.text.size("hidden_size"))),
            ("attention.head_count", size(HEADS)),
            ("attention.layer_norm_epsilon", Value::F32(epsilon)),
            ("image_mean", numbers(mean)),
            ("image_std", numbers(deviation)),
        ];
        if self.label == "smolvlm" {
            own.push(("preproc_image_size", size(LONGEST)));
            own.push(("projector.scale_factor", size(self.merge())));
        }
        if matches!(self.label, "qwen3_5" | "qwen3_vl" | "mistral3") {
            own.push(("spatial_merge_size", size(self.merge())));
        }
        if self.label == "qwen3_vl" {
            let stacked = (0..self.layers()).map(|layer| Value::Bool(DEEPSTACK.contains(&layer)));
            own.push(("is_deepstack_layers", Value::Array(stacked.collect())));
            own.push(("image_min_pixels", size(FEWER_PIXELS.0)));
            own.push(("image_max_pixels", size(FEWER_PIXELS.1)));
        }
        let own = own.into_iter().map(|(key, value)| (format!("clip.vision.{key}"), value));
        // Files with sound name the projector of pictures apart.
        let projector =
            if self.label == "gemma4" { "clip.vision.projector_type" } else { "clip.projector_type" };
        let activation = if self.label == "mistral3" { "clip.use_silu" } else { "clip.use_gelu" };
        let general = [
            ("general.architecture", text("clip")),
            ("general.type", text("mmproj")),
            (projector, text(kind)),
            ("clip.has_vision_encoder", Value::Bool(true)),
            (activation, Value::Bool(true)),
        ];
        general.map(|(key, value)| (key.to_owned(), value)).into_iter().chain(own).collect()
    }
}
