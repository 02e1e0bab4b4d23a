//! Tensors of a vision model with their shapes, and their names: ours are those of llama.cpp's
//! files.

use super::config::{Projector, VisionConfig};
use super::options::LearnedPositions;

/// Names and shapes of the tensors that a vision model needs, outermost dimension first.
/// `is_folder`: shapes are those of a Hugging Face folder.
pub(super) fn tensors(config: &VisionConfig, is_folder: bool) -> Vec<(String, Vec<usize>)> {
    let mut needed = Needed { config, is_folder, tensors: Vec::new() };
    needed.outer();
    (0..config.layers).for_each(|layer| needed.layer(layer));
    needed.projector();
    needed.tensors
}

/// Bounds of the numbers that enter and leave a matrix.
const BOUNDS: [&str; 4] = ["input_min", "input_max", "output_min", "output_max"];

/// Tensors that are needed.
struct Needed<'a> {
    config: &'a VisionConfig,
    is_folder: bool,
    tensors: Vec<(String, Vec<usize>)>,
}

impl Needed<'_> {
    fn add(&mut self, name: &str, shape: &[usize]) {
        self.tensors.push((name.to_owned(), shape.to_vec()));
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize, has_bias: bool) {
        self.add(&format!("{name}.weight"), &[outputs, inputs]);
        if has_bias {
            self.add(&format!("{name}.bias"), &[outputs]);
        }
    }

    fn norm(&mut self, name: &str, width: usize) {
        self.add(&format!("{name}.weight"), &[width]);
        if self.config.projector.options().layer_norms {
            self.add(&format!("{name}.bias"), &[width]);
        }
    }

    /// Tensors around the layers.
    fn outer(&mut self) {
        let &VisionConfig { width, patch, grid, projector, .. } = self.config;
        let options = projector.options();
        let square = [width, 3, patch, patch];
        match projector {
            // Kernels of two frames.
            Projector::Qwen3Vl { .. } if self.is_folder => {
                self.add("v.patch_embd.weight", &[width, 3, 2, patch, patch]);
            }
            Projector::Qwen3Vl { .. } => {
                self.add("v.patch_embd.weight", &square);
                self.add("v.patch_embd.weight.1", &square);
            }
            // Channels are innermost.
            Projector::Gemma4 { .. } if self.is_folder => {
                self.add("v.patch_embd.weight", &[width, 3 * patch * patch]);
            }
            _ => self.add("v.patch_embd.weight", &square),
        }
        if options.biases {
            self.add("v.patch_embd.bias", &[width]);
        }
        match options.positions {
            LearnedPositions::None => {}
            LearnedPositions::Grid => self.add("v.position_embd.weight", &[grid * grid, width]),
            LearnedPositions::Tables => self.add("v.position_embd.weight", &[2, grid, width]),
        }
        if options.first_norm {
            self.norm("v.pre_ln", width);
        }
        if options.last_norm {
            self.norm("v.post_ln", width);
        }
    }

    fn layer(&mut self, layer: usize) {
        let &VisionConfig { width, intermediate, clamps, heads, projector, .. } = self.config;
        let options = projector.options();
        let queries: &[_] =
            if options.fused { &[("attn_qkv", 3)] } else { &[("attn_q", 1), ("attn_k", 1), ("attn_v", 1)] };
        let mut matrices: Vec<_> =
            queries.iter().map(|&(part, times)| (part, times * width, width)).collect();
        matrices.push(("attn_out", width, width));
        if options.gate {
            matrices.push(("ffn_gate", intermediate, width));
        }
        matrices.extend([("ffn_up", intermediate, width), ("ffn_down", width, intermediate)]);
        let name = |part: &str| format!("v.blk.{layer}.{part}");
        for (part, outputs, inputs) in matrices {
            self.linear(&name(part), outputs, inputs, options.biases);
            if clamps {
                BOUNDS.iter().for_each(|bound| self.add(&format!("{}.{bound}", name(part)), &[1]));
            }
        }
        let mut norms = vec![("ln1", width), ("ln2", width)];
        if options.post_norms {
            norms.extend([("attn_post_norm", width), ("ffn_post_norm", width)]);
        }
        if options.head_norms {
            norms.extend([("attn_q_norm", width / heads), ("attn_k_norm", width / heads)]);
        }
        norms.iter().for_each(|&(part, width)| self.norm(&name(part), width));
    }

    fn projector(&mut self) {
        let &VisionConfig { width, merge, output, projector_biases, standardised, .. } = self.config;
        let merged = merge * merge * width;
        match self.config.projector {
            Projector::Idefics3 { .. } => self.linear("mm.model.fc", output, merged, false),
            Projector::Qwen3Vl { .. } => {
                self.norm("v.post_ln", width);
                self.linear("mm.0", merged, merged, true);
                self.linear("mm.2", output, merged, true);
                for layer in &self.config.deepstack {
                    self.norm(&format!("v.deepstack.{layer}.norm"), merged);
                    self.linear(&format!("v.deepstack.{layer}.fc1"), merged, merged, true);
                    self.linear(&format!("v.deepstack.{layer}.fc2"), output, merged, true);
                }
            }
            Projector::Gemma4 { .. } => {
                self.linear("mm.input_projection", output, width, false);
                if standardised {
                    self.add("v.std_bias", &[width]);
                    self.add("v.std_scale", &[width]);
                }
            }
            Projector::Pixtral { .. } => {
                self.norm("mm.input_norm", width);
                self.linear("mm.patch_merger", width, merged, false);
                self.linear("mm.1", output, width, projector_biases);
                self.linear("mm.2", output, output, projector_biases);
            }
        }
    }
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
    ("v.deepstack.N.norm", "visual.deepstack_merger_list.N.norm"),
    ("v.deepstack.N.fc1", "visual.deepstack_merger_list.N.linear_fc1"),
    ("v.deepstack.N.fc2", "visual.deepstack_merger_list.N.linear_fc2"),
];

const GEMMA4: Names = &[
    ("v.patch_embd", "vision_tower.patch_embedder.input_proj"),
    ("v.blk.N.ln1", "vision_tower.encoder.layers.N.input_layernorm"),
    ("v.blk.N.ln2", "vision_tower.encoder.layers.N.pre_feedforward_layernorm"),
    ("v.blk.N.attn_post_norm", "vision_tower.encoder.layers.N.post_attention_layernorm"),
    ("v.blk.N.ffn_post_norm", "vision_tower.encoder.layers.N.post_feedforward_layernorm"),
    ("v.blk.N.attn_q", "vision_tower.encoder.layers.N.self_attn.q_proj"),
    ("v.blk.N.attn_k", "vision_tower.encoder.layers.N.self_attn.k_proj"),
    ("v.blk.N.attn_v", "vision_tower.encoder.layers.N.self_attn.v_proj"),
    ("v.blk.N.attn_out", "vision_tower.encoder.layers.N.self_attn.o_proj"),
    ("v.blk.N.attn_q_norm", "vision_tower.encoder.layers.N.self_attn.q_norm"),
    ("v.blk.N.attn_k_norm", "vision_tower.encoder.layers.N.self_attn.k_norm"),
    ("v.blk.N.ffn_gate", "vision_tower.encoder.layers.N.mlp.gate_proj"),
    ("v.blk.N.ffn_up", "vision_tower.encoder.layers.N.mlp.up_proj"),
    ("v.blk.N.ffn_down", "vision_tower.encoder.layers.N.mlp.down_proj"),
    ("mm.input_projection", "embed_vision.embedding_projection"),
];

const PIXTRAL: Names = &[
    ("v.patch_embd", "vision_tower.patch_conv"),
    ("v.pre_ln", "vision_tower.ln_pre"),
    ("v.blk.N.ln1", "vision_tower.transformer.layers.N.attention_norm"),
    ("v.blk.N.ln2", "vision_tower.transformer.layers.N.ffn_norm"),
    ("v.blk.N.attn_q", "vision_tower.transformer.layers.N.attention.q_proj"),
    ("v.blk.N.attn_k", "vision_tower.transformer.layers.N.attention.k_proj"),
    ("v.blk.N.attn_v", "vision_tower.transformer.layers.N.attention.v_proj"),
    ("v.blk.N.attn_out", "vision_tower.transformer.layers.N.attention.o_proj"),
    ("v.blk.N.ffn_gate", "vision_tower.transformer.layers.N.feed_forward.gate_proj"),
    ("v.blk.N.ffn_up", "vision_tower.transformer.layers.N.feed_forward.up_proj"),
    ("v.blk.N.ffn_down", "vision_tower.transformer.layers.N.feed_forward.down_proj"),
    ("mm.input_norm", "multi_modal_projector.norm"),
    ("mm.patch_merger", "multi_modal_projector.patch_merger.merging_layer"),
    ("mm.1", "multi_modal_projector.linear_1"),
    ("mm.2", "multi_modal_projector.linear_2"),
];

/// Tensors of Gemma 4 whose names have no ending, ours first.
const WHOLE: Names = &[
    ("v.position_embd.weight", "vision_tower.patch_embedder.position_embedding_table"),
    ("v.std_bias", "vision_tower.std_bias"),
    ("v.std_scale", "vision_tower.std_scale"),
];

/// Our name of a tensor in a Hugging Face folder; `None` for one of the language model.
pub(super) fn canonical(name: &str, config: &VisionConfig) -> Option<String> {
    let names = match config.projector {
        Projector::Idefics3 { .. } => IDEFICS3,
        Projector::Qwen3Vl { .. } => QWEN3VL,
        Projector::Gemma4 { .. } => GEMMA4,
        Projector::Pixtral { .. } => PIXTRAL,
    };
    let name = name.strip_prefix("model.").unwrap_or(name);
    if let Some((ours, _)) = WHOLE.iter().find(|(_, theirs)| *theirs == name) {
        return Some((*ours).to_owned());
    }
    let (part, kind) = name.rsplit_once('.')?;
    // Matrices with bounds are within modules of their own.
    let part = part.strip_suffix(".linear").unwrap_or(part);
    let number = part.split('.').find(|piece| piece.bytes().all(|byte| byte.is_ascii_digit()));
    let pattern = match number {
        Some(number) => part.replacen(&format!(".{number}."), ".N.", 1),
        None => part.to_owned(),
    };
    let (ours, _) = names.iter().find(|(_, theirs)| *theirs == pattern)?;
    let number = match number {
        // Numbered by their order in the folder, and by their layers here.
        Some(number) if ours.starts_with("v.deepstack.") => {
            config.deepstack.get(number.parse::<usize>().ok()?)?.to_string()
        }
        number => number.unwrap_or_default().to_owned(),
    };
    Some(format!("{}.{kind}", ours.replace('N', &number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vision::options::VisionActivation;

    fn config(projector: Projector) -> VisionConfig {
        VisionConfig {
            projector,
            width: 1,
            intermediate: 1,
            layers: 9,
            heads: 1,
            activation: VisionActivation::GeluTanh,
            epsilon: 1e-6,
            patch: 1,
            grid: 1,
            merge: 1,
            output: 1,
            deepstack: vec![2, 5],
            clamps: false,
            standardised: false,
            projector_biases: false,
            mean: [0.5; 3],
            deviation: [0.5; 3],
        }
    }

    #[test]
    fn names_of_both_formats_are_translated() {
        let qwen = &config(Projector::Qwen3Vl { least: 1, most: 1 });
        let idefics = &config(Projector::Idefics3 { tile: 1, longest: 1 });
        let gemma = &config(Projector::Gemma4 { embeddings: 280 });
        let pixtral = &config(Projector::Pixtral { longest: 1540, epsilon: 1e-5 });
        for (name, config, expected) in [
            ("model.visual.blocks.11.mlp.linear_fc1.bias", qwen, "v.blk.11.ffn_up.bias"),
            ("model.visual.merger.linear_fc2.weight", qwen, "mm.2.weight"),
            ("model.visual.deepstack_merger_list.1.norm.bias", qwen, "v.deepstack.5.norm.bias"),
            ("model.vision_model.encoder.layers.0.self_attn.k_proj.weight", idefics, "v.blk.0.attn_k.weight"),
            ("model.vision_model.post_layernorm.bias", idefics, "v.post_ln.bias"),
            (
                "model.vision_tower.encoder.layers.3.self_attn.q_proj.linear.weight",
                gemma,
                "v.blk.3.attn_q.weight",
            ),
            (
                "model.vision_tower.encoder.layers.3.mlp.down_proj.output_max",
                gemma,
                "v.blk.3.ffn_down.output_max",
            ),
            ("model.vision_tower.std_scale", gemma, "v.std_scale"),
            ("model.vision_tower.patch_embedder.position_embedding_table", gemma, "v.position_embd.weight"),
            (
                "vision_tower.transformer.layers.7.feed_forward.gate_proj.weight",
                pixtral,
                "v.blk.7.ffn_gate.weight",
            ),
            ("multi_modal_projector.linear_1.weight", pixtral, "mm.1.weight"),
        ] {
            assert_eq!(canonical(name, config).as_deref(), Some(expected));
        }
        for name in
            ["model.text_model.layers.0.mlp.up_proj.weight", "model.visual.deepstack_merger_list.2.norm.bias"]
        {
            assert_eq!(canonical(name, qwen), None, "{name}");
        }
    }
}
