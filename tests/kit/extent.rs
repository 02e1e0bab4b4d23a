//! Extent of a test run: `make test` runs a matrix for one case of each kind, and `make nightly`,
//! which sets FORETOKEN_NIGHTLY, for all of them.

use std::env;

use foretoken_model::format::Format;

use crate::random_family::{RandomFamily, families};

/// Families that together have every kind of layer: attention with windows and norms, experts,
/// sinks, shared caches with inputs per layer, latents, convolutions, both kinds of recurrence.
const FAMILIES: [&str; 9] =
    ["llama", "gemma3", "qwen3moe", "gpt-oss", "gemma4", "glm", "lfm2moe", "qwen35", "granitehybrid"];

/// Formats that together have every kind of block: floats, blocks with and without a minimum, super
/// blocks, codebooks, ternary blocks, and blocks that share an exponent.
const FORMATS: [Format; 9] = [
    Format::F32,
    Format::Bf16,
    Format::Q4_1,
    Format::Q8_0,
    Format::Q4K,
    Format::Q6K,
    Format::Iq2S,
    Format::Tq1_0,
    Format::Mxfp4,
];

/// Returns whether `make nightly` runs the tests.
pub fn is_nightly() -> bool {
    env::var_os("FORETOKEN_NIGHTLY").is_some_and(|value| !value.is_empty())
}

/// Returns `all` in `make nightly`, otherwise `few`.
pub fn nightly_or<T>(all: T, few: T) -> T {
    if is_nightly() { all } else { few }
}

/// Every family in `make nightly`, otherwise one for each kind of layer.
pub fn tested_families() -> Vec<RandomFamily> {
    let mut tested = families();
    tested.retain(|family| is_nightly() || FAMILIES.contains(&family.label));
    tested
}

/// Every format in `make nightly`, otherwise one for each kind of block.
pub fn tested_formats() -> &'static [Format] {
    nightly_or(&Format::ALL, &FORMATS)
}
