//! Writes the folders from which `tests/goldens/mtp.py` makes goldens: `cargo run -p
//! foretoken-tests --example write_mtp -- FOLDER`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use candle_core::DType;
use foretoken_tests::family;

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    for label in ["qwen35", "glm"] {
        family(label).with_mtp().write_folder(Path::new(&folder), DType::F32);
    }
}
