//! Tensors of random vision models, under their names in both formats.

use candle_core::Tensor;

use super::{DEEPSTACK, GRID, HEADS, INTERMEDIATE, PATCH, RandomVision, TABLE, WIDTH};
use crate::head_files::made_up_tensor;

/// A tensor.
#[derive(Clone)]
pub(super) struct Part {
    /// Name in mmproj files.
    pub ours: String,
    /// Name in Hugging Face folders.
    pub theirs: String,
    pub tensor: Tensor,
}

/// Tensors drawn so far.
struct Drawn(Vec<Part>);

impl Drawn {
    /// Adds a tensor of numbers that follow from `seed`.
    fn add(&mut self, [ours, theirs]: [&str; 2], seed: &str, shape: &[usize], [centre, most]: [f32; 2]) {
        let tensor = made_up_tensor(seed, shape, centre, most);
        self.0.push(Part { ours: ours.to_owned(), theirs: theirs.to_owned(), tensor });
    }

    fn linear(&mut self, [ours, theirs]: [&str; 2], outputs: usize, inputs: usize, has_bias: bool) {
        let of = |ending: &str| [format!("{ours}.{ending}"), format!("{theirs}.{ending}")];
        let [ours_weight, theirs_weight] = of("weight");
        self.add([&ours_weight, &theirs_weight], theirs, &[outputs, inputs], [0.0, 0.2]);
        if has_bias {
            let [ours, bias] = of("bias");
            self.add([&ours, &bias], &format!("{theirs} bias"), &[outputs], [0.0, 0.3]);
        }
    }

    fn norm(&mut self, [ours, theirs]: [&str; 2], width: usize, has_bias: bool) {
        for (ending, centre) in [("weight", 1.0), ("bias", 0.0)].into_iter().take(1 + usize::from(has_bias)) {
            let (ours, theirs) = (format!("{ours}.{ending}"), format!("{theirs}.{ending}"));
            self.add([&ours, &theirs], &theirs, &[width], [centre, 0.3]);
        }
    }

    /// Adds bounds of what enters and leaves a matrix, some of which cut numbers off.
    fn bounds(&mut self, [ours, theirs]: [&str; 2]) {
        for (bound, centre) in
            [("input_min", -1.5), ("input_max", 1.2), ("output_min", -1.1), ("output_max", 1.4)]
        {
            let (ours, theirs) = (format!("{ours}.{bound}"), format!("{theirs}.{bound}"));
            self.add([&ours, &theirs], &theirs, &[], [centre, 0.3]);
        }
    }
}

impl RandomVision {
    pub(super) fn drawn(&self) -> Vec<Part> {
        let mut drawn = Drawn(Vec::new());
        match self.label {
            "smolvlm" => self.draw_idefics3(&mut drawn),
            "gemma4" => self.draw_gemma4(&mut drawn),
            "mistral3" => self.draw_pixtral(&mut drawn),
            _ => self.draw_qwen(&mut drawn),
        }
        drawn.0
    }

    fn hidden(&self) -> usize {
        self.text.size("hidden_size")
    }

    fn merged(&self) -> usize {
        self.merge() * self.merge() * WIDTH
    }

    fn draw_idefics3(&self, drawn: &mut Drawn) {
        let patches = "model.vision_model.embeddings.patch_embedding";
        let positions = "model.vision_model.embeddings.position_embedding";
        patch_embedding(drawn, patches, &[WIDTH, 3, PATCH, PATCH]);
        let names = ["v.position_embd.weight", &format!("{positions}.weight")];
        drawn.add(names, positions, &[GRID * GRID, WIDTH], [0.0, 0.5]);
        for layer in 0..self.layers() {
            let name = |part: &str| format!("model.vision_model.encoder.layers.{layer}.{part}");
            for (ours, theirs) in [
                ("attn_q", "self_attn.q_proj"),
                ("attn_k", "self_attn.k_proj"),
                ("attn_v", "self_attn.v_proj"),
                ("attn_out", "self_attn.out_proj"),
            ] {
                drawn.linear([&block(layer, ours), &name(theirs)], WIDTH, WIDTH, true);
            }
            drawn.linear([&block(layer, "ffn_up"), &name("mlp.fc1")], INTERMEDIATE, WIDTH, true);
            drawn.linear([&block(layer, "ffn_down"), &name("mlp.fc2")], WIDTH, INTERMEDIATE, true);
            drawn.norm([&block(layer, "ln1"), &name("layer_norm1")], WIDTH, true);
            drawn.norm([&block(layer, "ln2"), &name("layer_norm2")], WIDTH, true);
        }
        drawn.norm(["v.post_ln", "model.vision_model.post_layernorm"], WIDTH, true);
        let projector = ["mm.model.fc", "model.connector.modality_projection.proj"];
        drawn.linear(projector, self.hidden(), self.merged(), false);
    }

    fn draw_qwen(&self, drawn: &mut Drawn) {
        patch_embedding(drawn, "model.visual.patch_embed.proj", &[WIDTH, 3, 2, PATCH, PATCH]);
        let positions = "model.visual.pos_embed";
        let names = ["v.position_embd.weight", &format!("{positions}.weight")];
        drawn.add(names, positions, &[GRID * GRID, WIDTH], [0.0, 0.5]);
        for layer in 0..self.layers() {
            let name = |part: &str| format!("model.visual.blocks.{layer}.{part}");
            for (ours, theirs, outputs, inputs) in [
                ("attn_qkv", "attn.qkv", 3 * WIDTH, WIDTH),
                ("attn_out", "attn.proj", WIDTH, WIDTH),
                ("ffn_up", "mlp.linear_fc1", INTERMEDIATE, WIDTH),
                ("ffn_down", "mlp.linear_fc2", WIDTH, INTERMEDIATE),
            ] {
                drawn.linear([&block(layer, ours), &name(theirs)], outputs, inputs, true);
            }
            drawn.norm([&block(layer, "ln1"), &name("norm1")], WIDTH, true);
            drawn.norm([&block(layer, "ln2"), &name("norm2")], WIDTH, true);
        }
        let merged = self.merged();
        drawn.linear(["mm.0", "model.visual.merger.linear_fc1"], merged, merged, true);
        drawn.linear(["mm.2", "model.visual.merger.linear_fc2"], self.hidden(), merged, true);
        drawn.norm(["v.post_ln", "model.visual.merger.norm"], WIDTH, true);
        if self.label == "qwen3_vl" {
            for (number, layer) in DEEPSTACK.into_iter().enumerate() {
                let names = |ours: &str, theirs: &str| {
                    [
                        format!("v.deepstack.{layer}.{ours}"),
                        format!("model.visual.deepstack_merger_list.{number}.{theirs}"),
                    ]
                };
                let [norm, first, second] = [("norm", "norm"), ("fc1", "linear_fc1"), ("fc2", "linear_fc2")]
                    .map(|(a, b)| names(a, b));
                drawn.norm([&norm[0], &norm[1]], merged, true);
                drawn.linear([&first[0], &first[1]], merged, merged, true);
                drawn.linear([&second[0], &second[1]], self.hidden(), merged, true);
            }
        }
    }

    fn draw_gemma4(&self, drawn: &mut Drawn) {
        let tower = |part: &str| format!("model.vision_tower.{part}");
        let patches = tower("patch_embedder.input_proj.weight");
        drawn.add(["v.patch_embd.weight", &patches], &patches, &[WIDTH, 3 * PATCH * PATCH], [0.0, 0.2]);
        let positions = tower("patch_embedder.position_embedding_table");
        drawn.add(["v.position_embd.weight", &positions], &positions, &[2, TABLE, WIDTH], [0.0, 0.5]);
        for part in ["std_bias", "std_scale"] {
            let (ours, theirs) = (format!("v.{part}"), tower(part));
            drawn.add([&ours, &theirs], &theirs, &[WIDTH], [0.5, 0.4]);
        }
        for layer in 0..self.layers() {
            let name = |part: &str| tower(&format!("encoder.layers.{layer}.{part}"));
            for (ours, theirs, outputs, inputs) in [
                ("attn_q", "self_attn.q_proj", WIDTH, WIDTH),
                ("attn_k", "self_attn.k_proj", WIDTH, WIDTH),
                ("attn_v", "self_attn.v_proj", WIDTH, WIDTH),
                ("attn_out", "self_attn.o_proj", WIDTH, WIDTH),
                ("ffn_gate", "mlp.gate_proj", INTERMEDIATE, WIDTH),
                ("ffn_up", "mlp.up_proj", INTERMEDIATE, WIDTH),
                ("ffn_down", "mlp.down_proj", WIDTH, INTERMEDIATE),
            ] {
                let (ours, theirs) = (block(layer, ours), name(theirs));
                drawn.linear([&ours, &format!("{theirs}.linear")], outputs, inputs, false);
                drawn.bounds([&ours, &theirs]);
            }
            for (ours, theirs) in [
                ("ln1", "input_layernorm"),
                ("ln2", "pre_feedforward_layernorm"),
                ("attn_post_norm", "post_attention_layernorm"),
                ("ffn_post_norm", "post_feedforward_layernorm"),
            ] {
                drawn.norm([&block(layer, ours), &name(theirs)], WIDTH, false);
            }
            for (ours, theirs) in [("attn_q_norm", "self_attn.q_norm"), ("attn_k_norm", "self_attn.k_norm")] {
                // Products of queries and keys have no scale.
                let (ours, theirs) =
                    (format!("{}.weight", block(layer, ours)), format!("{}.weight", name(theirs)));
                drawn.add([&ours, &theirs], &theirs, &[WIDTH / HEADS], [0.5, 0.2]);
            }
        }
        let projector = ["mm.input_projection", "model.embed_vision.embedding_projection"];
        drawn.linear(projector, self.hidden(), WIDTH, false);
    }

    fn draw_pixtral(&self, drawn: &mut Drawn) {
        let patches = "vision_tower.patch_conv.weight";
        drawn.add(["v.patch_embd.weight", patches], patches, &[WIDTH, 3, PATCH, PATCH], [0.0, 0.2]);
        drawn.norm(["v.pre_ln", "vision_tower.ln_pre"], WIDTH, false);
        for layer in 0..self.layers() {
            let name = |part: &str| format!("vision_tower.transformer.layers.{layer}.{part}");
            for (ours, theirs, outputs, inputs) in [
                ("attn_q", "attention.q_proj", WIDTH, WIDTH),
                ("attn_k", "attention.k_proj", WIDTH, WIDTH),
                ("attn_v", "attention.v_proj", WIDTH, WIDTH),
                ("attn_out", "attention.o_proj", WIDTH, WIDTH),
                ("ffn_gate", "feed_forward.gate_proj", INTERMEDIATE, WIDTH),
                ("ffn_up", "feed_forward.up_proj", INTERMEDIATE, WIDTH),
                ("ffn_down", "feed_forward.down_proj", WIDTH, INTERMEDIATE),
            ] {
                drawn.linear([&block(layer, ours), &name(theirs)], outputs, inputs, false);
            }
            drawn.norm([&block(layer, "ln1"), &name("attention_norm")], WIDTH, false);
            drawn.norm([&block(layer, "ln2"), &name("ffn_norm")], WIDTH, false);
        }
        let projector = |part: &str| format!("multi_modal_projector.{part}");
        let hidden = self.hidden();
        drawn.norm(["mm.input_norm", &projector("norm")], WIDTH, false);
        let merger = projector("patch_merger.merging_layer");
        drawn.linear(["mm.patch_merger", &merger], WIDTH, self.merged(), false);
        drawn.linear(["mm.1", &projector("linear_1")], hidden, WIDTH, false);
        drawn.linear(["mm.2", &projector("linear_2")], hidden, hidden, false);
    }

    /// Tensors as llama.cpp's converter writes them.
    pub(super) fn converted(&self) -> Vec<(String, Tensor)> {
        self.parts.iter().flat_map(|part| self.converted_part(part)).collect()
    }

    fn converted_part(&self, Part { ours, tensor, .. }: &Part) -> Vec<(String, Tensor)> {
        let one = |tensor: Tensor| vec![(ours.clone(), tensor.contiguous().unwrap())];
        match (self.label, ours.as_str()) {
            // The kernels of the two frames apart.
            ("qwen3_5" | "qwen3_vl", "v.patch_embd.weight") => {
                let frame = |frame| tensor.narrow(2, frame, 1).unwrap().squeeze(2).unwrap();
                let mut both = one(frame(0));
                both.push((format!("{ours}.1"), frame(1).contiguous().unwrap()));
                both
            }
            // The channels of a pixel together become channel after channel.
            ("gemma4", "v.patch_embd.weight") => {
                let pixels = tensor.reshape((WIDTH, PATCH, PATCH, 3)).unwrap();
                one(pixels.permute((0, 3, 1, 2)).unwrap())
            }
            ("mistral3", name) if name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight") => {
                let halves = tensor.reshape((HEADS, 2, WIDTH / HEADS / 2, WIDTH)).unwrap();
                one(halves.transpose(1, 2).unwrap().contiguous().unwrap().reshape((WIDTH, WIDTH)).unwrap())
            }
            _ if tensor.rank() == 0 => one(tensor.unsqueeze(0).unwrap()),
            _ => one(tensor.clone()),
        }
    }
}

/// Name of a part of a layer in mmproj files.
fn block(layer: usize, part: &str) -> String {
    format!("v.blk.{layer}.{part}")
}

/// Adds an embedding of patches with a bias.
fn patch_embedding(drawn: &mut Drawn, theirs: &str, shape: &[usize]) {
    let bias = format!("{theirs}.bias");
    drawn.add(["v.patch_embd.weight", &format!("{theirs}.weight")], theirs, shape, [0.0, 0.2]);
    drawn.add(["v.patch_embd.bias", &bias], &bias, &[WIDTH], [0.0, 0.3]);
}
