//! Vision files (mmproj) with damaged headers.

use std::fs;

use foretoken_model::VisionSource;
use foretoken_testkit::{Gguf, VisionSizes};

use super::{Memory, Target, folder};

const WORDS: &[&str] = &[
    "clip",
    "general.architecture",
    "clip.projector_type",
    "clip.vision.projector_type",
    "idefics3",
    "qwen3vl_merger",
    "gemma4v",
    "pixtral",
    "clip.vision.image_size",
    "clip.vision.patch_size",
    "clip.vision.block_count",
    "clip.vision.projection_dim",
    "clip.vision.spatial_merge_size",
    "clip.vision.is_deepstack_layers",
    "v.blk.0.attn_qkv.weight",
    "v.patch_embd.weight.1",
    "mm.model.fc.weight",
];

const SIZES: VisionSizes =
    VisionSizes { width: 8, intermediate: 8, layers: 1, heads: 2, patch: 2, grid: 2, merge: 2, output: 8 };

pub fn target() -> Target {
    let folder = folder();
    let seeds = ["idefics3", "qwen3vl_merger"]
        .map(|kind| fs::read(Gguf::vision(kind, SIZES).write(folder.path())).unwrap());
    let path = folder.path().join("model.gguf");
    Target {
        name: "mmproj",
        longest: 2 * seeds.iter().map(Vec::len).max().unwrap(),
        seeds: seeds.into(),
        words: WORDS,
        head: 4096,
        memory: Memory { each: 16, beside: 1 << 20 },
        run: Box::new(move |input| {
            // The folder stays as long as the target.
            fs::write(folder.path().join("model.gguf"), input).unwrap();
            let read = VisionSource::open(&path).and_then(|source| source.tensor("v.position_embd.weight"));
            read.err().map(|error| error.to_string())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vision_files_are_read_completely() {
        for kind in ["idefics3", "qwen3vl_merger"] {
            let folder = folder();
            VisionSource::open(&Gguf::vision(kind, SIZES).write(folder.path())).unwrap();
        }
    }
}
