//! Tensors of a vision model with their shapes, and their names: ours are those of llama.cpp's
//! files.

use super::config::{Projector, VisionConfig};

/// Names and shapes of the tensors that a vision model needs, outermost dimension first.
pub(super) fn tensors(config: &VisionConfig) -> Vec<(String, Vec<usize>)> {
    let &VisionConfig { width, intermediate, patch, grid, merge, output, layers, .. } = config;
    let merged = merge * merge * width;
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: &[usize]| tensors.push((name, shape.to_vec()));
    let mut linear = |name: &str, outputs: usize, inputs: usize| {
        add(format!("{name}.weight"), &[outputs, inputs]);
        add(format!("{name}.bias"), &[outputs]);
    };
    for layer in 0..layers {
        let name = |part: &str| format!("v.blk.{layer}.{part}");
        match config.projector {
            Projector::Idefics3 { .. } => {
                ["attn_q", "attn_k", "attn_v"].iter().for_each(|part| linear(&name(part), width, width));
            }
            Projector::Qwen3Vl { .. } => linear(&name("attn_qkv"), 3 * width, width),
        }
        linear(&name("attn_out"), width, width);
        linear(&name("ffn_up"), intermediate, width);
        linear(&name("ffn_down"), width, intermediate);
    }
    if let Projector::Qwen3Vl { .. } = config.projector {
        linear("mm.0", merged, merged);
        linear("mm.2", output, merged);
    }
    let norms = (0..layers).flat_map(|layer| [format!("v.blk.{layer}.ln1"), format!("v.blk.{layer}.ln2")]);
    for norm in norms.chain(["v.post_ln".to_owned()]) {
        add(format!("{norm}.weight"), &[width]);
        add(format!("{norm}.bias"), &[width]);
    }
    add("v.patch_embd.bias".to_owned(), &[width]);
    add("v.position_embd.weight".to_owned(), &[grid * grid, width]);
    if let Projector::Idefics3 { .. } = config.projector {
        add("v.patch_embd.weight".to_owned(), &[width, 3, patch, patch]);
        add("mm.model.fc.weight".to_owned(), &[output, merged]);
    }
    tensors
}

/// Names of parts, ours first. `N` stands for the number of a layer.
type Names = &'static [(&'static str, &'static str)];

const IDEFICS3: Names = &[
    ("v.patch_embd", "vision_model.embeddings.patch_embedding"),
    ("v.position_embd", "vision_model.embeddings.position_embedding"),
    ("v.blk.N.ln1", "vision_model.encoder.layers.N.layer_norm1"),
    ("v.blk.N.ln2", "vision_model.encoder.layers.N.layer_norm2"),
    ("v.blk.N.attn_q", "vision_model.encoder.layers.N.self_attn.q_proj"),
    ("v.blk.N.attn_k", "vision_model.encoder.layers.N.self_attn.k_proj"),
    ("v.blk.N.attn_v", "vision_model.encoder.layers.N.self_attn.v_proj"),
    ("v.blk.N.attn_out", "vision_model.encoder.layers.N.self_attn.out_proj"),
    ("v.blk.N.ffn_up", "vision_model.encoder.layers.N.mlp.fc1"),
    ("v.blk.N.ffn_down", "vision_model.encoder.layers.N.mlp.fc2"),
    ("v.post_ln", "vision_model.post_layernorm"),
    ("mm.model.fc", "connector.modality_projection.proj"),
];

const QWEN3VL: Names = &[
    ("v.patch_embd", "visual.patch_embed.proj"),
    ("v.position_embd", "visual.pos_embed"),
    ("v.blk.N.ln1", "visual.blocks.N.norm1"),
    ("v.blk.N.ln2", "visual.blocks.N.norm2"),
    ("v.blk.N.attn_qkv", "visual.blocks.N.attn.qkv"),
    ("v.blk.N.attn_out", "visual.blocks.N.attn.proj"),
    ("v.blk.N.ffn_up", "visual.blocks.N.mlp.linear_fc1"),
    ("v.blk.N.ffn_down", "visual.blocks.N.mlp.linear_fc2"),
    ("v.post_ln", "visual.merger.norm"),
    ("mm.0", "visual.merger.linear_fc1"),
    ("mm.2", "visual.merger.linear_fc2"),
];

/// Our name of a tensor in a Hugging Face folder; `None` for one of the language model.
pub(super) fn canonical(name: &str, projector: Projector) -> Option<String> {
    let names = match projector {
        Projector::Idefics3 { .. } => IDEFICS3,
        Projector::Qwen3Vl { .. } => QWEN3VL,
    };
    let name = name.strip_prefix("model.").unwrap_or(name);
    let (part, kind) = name.rsplit_once('.')?;
    let number = part.split('.').find(|piece| piece.bytes().all(|byte| byte.is_ascii_digit()));
    let pattern = match number {
        Some(number) => part.replacen(&format!(".{number}."), ".N.", 1),
        None => part.to_owned(),
    };
    let (ours, _) = names.iter().find(|(_, theirs)| *theirs == pattern)?;
    Some(format!("{}.{kind}", ours.replace('N', number.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_formats_are_translated() {
        let qwen = Projector::Qwen3Vl { least: 1, most: 1 };
        let idefics = Projector::Idefics3 { tile: 1, longest: 1 };
        for (name, projector, expected) in [
            ("model.visual.blocks.11.mlp.linear_fc1.bias", qwen, "v.blk.11.ffn_up.bias"),
            ("model.visual.merger.linear_fc2.weight", qwen, "mm.2.weight"),
            ("model.vision_model.encoder.layers.0.self_attn.k_proj.weight", idefics, "v.blk.0.attn_k.weight"),
            ("model.vision_model.post_layernorm.bias", idefics, "v.post_ln.bias"),
        ] {
            assert_eq!(canonical(name, projector).as_deref(), Some(expected));
        }
        assert_eq!(canonical("model.text_model.layers.0.mlp.up_proj.weight", idefics), None);
    }
}
