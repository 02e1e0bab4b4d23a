//! Writes the folders from which `tests/goldens/vision.py` makes goldens: `cargo run -p
//! foretoken-tests --example write_vision -- FOLDER`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use foretoken_tests::RandomVision;

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    for vision in RandomVision::all() {
        vision.write_folder(Path::new(&folder));
    }
}
