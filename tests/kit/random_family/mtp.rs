//! MTP block after the layers of a Qwen3.5: its weights, and their conversion to GGUF.

use std::path::{Path, PathBuf};

use candle_core::Tensor;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use serde_json::json;

use super::{HIDDEN, RandomFamily};

/// Tensors around the block's layer, with their names in GGUF.
const AROUND: [(&str, &str); 4] = [
    ("fc.weight", "eh_proj.weight"),
    ("pre_fc_norm_embedding.weight", "enorm.weight"),
    ("pre_fc_norm_hidden.weight", "hnorm.weight"),
    ("norm.weight", "shared_head_norm.weight"),
];

impl RandomFamily {
    /// Returns the family with an MTP block to draft with.
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

    /// Writes only the block as a GGUF file, with copies of the tensors that it shares with its
    /// model. Returns the file's path.
    pub fn mtp_gguf(&self, folder: &Path, quantisation: GgmlDType) -> PathBuf {
        let path = folder.join(format!("mtp-{} {quantisation:?}.gguf", self.label));
        let block = format!("blk.{}.", self.size("num_hidden_layers"));
        self.write_gguf(&path, quantisation, |name| name.starts_with(&block) || !name.starts_with("blk."));
        path
    }

    /// GGUF keys for the block, which is counted as a layer.
    pub(super) fn mtp_keys(&self) -> Vec<(&'static str, Value)> {
        if self.config["mtp_num_hidden_layers"].is_null() {
            return Vec::new();
        }
        let blocks = Value::U32(self.size("num_hidden_layers") as u32 + 1);
        vec![("block_count", blocks), ("nextn_predict_layers", Value::U32(1))]
    }

    /// Converted name and tensor; `None` for tensors of layers.
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
