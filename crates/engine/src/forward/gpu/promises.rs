//! What a GPU promises, as it was measured when it was opened. Measuring is for `probe.rs`.

use std::fmt;

/// What was found to hold on a device. That a row's bits do not depend on what else is in a pass holds on all of them:
/// where products of different tiles differ, each row is multiplied by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises {
    /// Results are about right.
    pub computes: bool,
    /// A row has the same bits in a tile of any size.
    pub any_tile: bool,
    /// Numbers have the bits of the CPU engine.
    pub cpu_bits: bool,
}

impl Default for Promises {
    /// Everything, as long as nothing is measured.
    fn default() -> Self {
        Self { computes: true, any_tile: true, cpu_bits: true }
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.cpu_bits { "bit-identical to the CPU" } else { "rounds in its own way" })?;
        let also = "one tile for all rows";
        if self.any_tile { Ok(()) } else { write!(f, ", {also}") }
    }
}
