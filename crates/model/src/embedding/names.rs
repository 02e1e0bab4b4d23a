//! Names of an embedding model's tensors: ours are those that candle-transformers reads.

use super::config::Encoder;

/// Prefixes of whole models in folders.
const MODELS: [&str; 4] = ["bert.", "roberta.", "nomic_bert.", "model."];

/// Roots of the names of tensors in use; heads for training have others.
const ROOTS: [&str; 6] =
    ["embeddings.", "encoder.layer.", "encoder.layers.", "emb_ln.", "layers.", "final_norm."];

/// Name of a tensor in a folder; `None` for one that no embedding needs.
pub(super) fn of_folder(name: &str, encoder: Encoder) -> Option<String> {
    let name = MODELS.iter().find_map(|model| name.strip_prefix(model)).unwrap_or(name);
    let is_used = ROOTS.iter().any(|root| name.starts_with(root)) && !name.ends_with("position_ids");
    // Folders that were written from TensorFlow.
    let name =
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias");
    is_used.then(|| match encoder {
        Encoder::ModernBert { .. } => format!("model.{name}"),
        _ => name,
    })
}

/// Names of parts in GGUF files, with ours. `#` stands for the number of a layer.
type Names = &'static [(&'static str, &'static str)];

const OUTER: Names = &[
    ("token_embd", "embeddings.word_embeddings"),
    ("position_embd", "embeddings.position_embeddings"),
    ("token_types", "embeddings.token_type_embeddings"),
];

const BERT: Names = &[
    ("token_embd_norm", "embeddings.LayerNorm"),
    ("blk.#.attn_q", "encoder.layer.#.attention.self.query"),
    ("blk.#.attn_k", "encoder.layer.#.attention.self.key"),
    ("blk.#.attn_v", "encoder.layer.#.attention.self.value"),
    ("blk.#.attn_output", "encoder.layer.#.attention.output.dense"),
    ("blk.#.attn_output_norm", "encoder.layer.#.attention.output.LayerNorm"),
    ("blk.#.ffn_up", "encoder.layer.#.intermediate.dense"),
    ("blk.#.ffn_down", "encoder.layer.#.output.dense"),
    ("blk.#.layer_output_norm", "encoder.layer.#.output.LayerNorm"),
];

const NOMIC_BERT: Names = &[
    ("token_embd_norm", "emb_ln"),
    ("blk.#.attn_qkv", "encoder.layers.#.attn.Wqkv"),
    ("blk.#.attn_output", "encoder.layers.#.attn.out_proj"),
    ("blk.#.attn_output_norm", "encoder.layers.#.norm1"),
    ("blk.#.ffn_up", "encoder.layers.#.mlp.fc11"),
    ("blk.#.ffn_gate", "encoder.layers.#.mlp.fc12"),
    ("blk.#.ffn_down", "encoder.layers.#.mlp.fc2"),
    ("blk.#.layer_output_norm", "encoder.layers.#.norm2"),
];

/// Name of a tensor in a GGUF file; `None` for one that no embedding needs.
pub(super) fn of_gguf(name: &str, encoder: Encoder) -> Option<String> {
    let layers = if encoder == Encoder::Bert { BERT } else { NOMIC_BERT };
    let (part, kind) = name.rsplit_once('.')?;
    let number = part.strip_prefix("blk.").and_then(|rest| rest.split('.').next()).unwrap_or_default();
    let ours = OUTER.iter().chain(layers).find(|(theirs, _)| theirs.replace('#', number) == part)?.1;
    Some(format!("{}.{kind}", ours.replace('#', number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_lose_their_model_and_heads_for_training_are_skipped() {
        let of = |name| of_folder(name, Encoder::Bert);
        for name in ["embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma"] {
            assert_eq!(of(name).as_deref(), Some("embeddings.LayerNorm.weight"), "{name}");
        }
        let skipped =
            ["pooler.dense.weight", "embeddings.position_ids", "cls.predictions.bias", "lm_head.bias"];
        assert!(skipped.into_iter().all(|name| of(name).is_none()));
        let modern =
            Encoder::ModernBert { full_every: 3, window: 128, full_theta: 160_000.0, window_theta: 10_000.0 };
        for name in ["layers.1.attn.Wo.weight", "model.layers.1.attn.Wo.weight"] {
            assert_eq!(of_folder(name, modern).as_deref(), Some("model.layers.1.attn.Wo.weight"));
        }
    }

    #[test]
    fn names_of_files_become_those_of_folders() {
        let bert = |name| of_gguf(name, Encoder::Bert);
        assert_eq!(bert("token_embd.weight").as_deref(), Some("embeddings.word_embeddings.weight"));
        assert_eq!(
            bert("blk.11.attn_output_norm.bias").as_deref(),
            Some("encoder.layer.11.attention.output.LayerNorm.bias")
        );
        assert_eq!(bert("cls.weight"), None);
        let nomic = of_gguf("blk.0.ffn_gate.weight", Encoder::NomicBert { theta: 1000.0 });
        assert_eq!(nomic.as_deref(), Some("encoder.layers.0.mlp.fc12.weight"));
    }
}
