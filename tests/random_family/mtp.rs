//! The block for MTP that a Qwen3.5 may have after its layers: its weights, and what the converter makes of these.

use std::path::{Path, PathBuf};

use candle_core::Tensor;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use serde_json::json;

use super::{HIDDEN, RandomFamily};

/// What is around the layer of a block, and what GGUF files call it.
const AROUND: [(&str, &str); 4] = [
    ("fc.weight", "eh_proj.weight"),
    ("pre_fc_norm_embedding.weight", "enorm.weight"),
    ("pre_fc_norm_hidden.weight", "hnorm.weight"),
    ("norm.weight", "shared_head_norm.weight"),
];

impl RandomFamily {
    /// The same with a block for MTP, to draft for itself with.
    pub fn with_mtp(&self) -> Self {
        if self.is_latent() {
            return self.with_numbered_mtp();
        }
        let mut family = self.clone();
        family.config["mtp_num_hidden_layers"] = json!(1);
        family.matrix("mtp.fc", HIDDEN, 2 * HIDDEN);
        for norm in ["pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"] {
            family.norm(&format!("mtp.{norm}"), HIDDEN);
        }
        let name = |part: &str| format!("mtp.layers.0.{part}");
        family.draw_attention(&name);
        family.draw_norms(&name);
        family.draw_feed_forward(&name);
        family
    }

    /// The block alone as a GGUF file, with copies of what it shares with its model; returns where it is.
    pub fn mtp_gguf(&self, folder: &Path, quantisation: GgmlDType) -> PathBuf {
        let path = folder.join(format!("mtp-{} {quantisation:?}.gguf", self.label));
        let block = format!("blk.{}.", self.size("num_hidden_layers"));
        self.write_gguf(&path, quantisation, |name| name.starts_with(&block) || !name.starts_with("blk."));
        path
    }

    /// Keys of GGUF that others do not have: the block is counted among the layers.
    pub(super) fn mtp_keys(&self) -> Vec<(&'static str, Value)> {
        if self.config["mtp_num_hidden_layers"].is_null() {
            return Vec::new();
        }
        let blocks = Value::U32(self.size("num_hidden_layers") as u32 + 1);
        vec![("block_count", blocks), ("nextn_predict_layers", Value::U32(1))]
    }

    /// What the converter makes of a tensor; `None` for those of layers.
    pub(super) fn mtp_tensor(&self, name: &str, tensor: &Tensor) -> Option<(String, Tensor)> {
        let rest = name.strip_prefix("mtp.")?;
        let layers = self.size("num_hidden_layers");
        if let Some(part) = rest.strip_prefix("layers.0.") {
            return self.recurrent_tensor(&format!("model.layers.{layers}.{part}"), tensor);
        }
        let (_, gguf) = AROUND.iter().find(|(around, _)| *around == rest).unwrap();
        let norm = if tensor.rank() == 1 { 1.0 } else { 0.0 };
        Some((format!("blk.{layers}.nextn.{gguf}"), (tensor + norm).unwrap()))
    }
}
