//! Writes the folders from which `tests/goldens/families.py` makes goldens: `cargo run -p
//! foretoken-tests --example write_families -- FOLDER`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use candle_core::DType;
use foretoken_tests::recent;

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    for family in recent() {
        family.write_folder(Path::new(&folder), DType::F32);
    }
}
