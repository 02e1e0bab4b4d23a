//! Hashes of logits, which are the same on every system and processor.

use candle_core::quantized::GgmlDType;
use foretoken_forward::cpu::Isa;
use foretoken_tests::{families, loaded_with, logits_in_chunks};
use sha2::{Digest, Sha256};

use super::families::{long_text, with_long_context};

/// Hashes of the order of sums [`foretoken_forward::ORDER_OF_SUMS`].
const HASHES: &str = include_str!("../goldens/hashes.txt");

#[test]
fn logits_of_every_family_have_the_same_hashes_on_every_system() {
    let folder = tempfile::tempdir().unwrap();
    let mut found = String::new();
    for family in families().into_iter().map(with_long_context) {
        let source = family.gguf(folder.path(), GgmlDType::Q8_0);
        let mut model = loaded_with(&source, Isa::choose().unwrap(), 2);
        let rows = logits_in_chunks(model.as_mut(), &long_text(270), &[45]);
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|logit| logit.to_le_bytes()).collect();
        let hash: String = Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        found += &format!("{hash} {}\n", family.label);
    }
    assert!(found == HASHES, "A change of bits needs another ORDER_OF_SUMS. Found:\n{found}");
}
