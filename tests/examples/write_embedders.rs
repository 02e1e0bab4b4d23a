//! Writes the folders from which `tests/goldens/embedding.py` makes goldens: `cargo run -p
//! foretoken-tests --example write_embedders -- FOLDER`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use foretoken_tests::RandomEmbedder;

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    for embedder in RandomEmbedder::all() {
        embedder.write_folder(Path::new(&folder));
    }
}
