//! Result of probing a GPU, measured by `probe.rs` when it is opened.

use std::fmt;

/// Guarantees of a device. On every device a row's bits are independent of the rest of the pass: if
/// tiles of different sizes differ, each row is multiplied alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guarantees {
    /// Results are approximately right.
    pub computes: bool,
    /// Tiles of all sizes give a row the same bits.
    pub any_tile: bool,
    /// Results have the CPU engine's bits.
    pub cpu_bits: bool,
}

impl Default for Guarantees {
    /// Assumes all guarantees until they are measured.
    fn default() -> Self {
        Self { computes: true, any_tile: true, cpu_bits: true }
    }
}

impl fmt::Display for Guarantees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.cpu_bits { "bit-identical to the CPU" } else { "rounds in its own way" })?;
        let also = "one tile for all rows";
        if self.any_tile { Ok(()) } else { write!(f, ", {also}") }
    }
}
