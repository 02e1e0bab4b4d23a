//! Result of probing a GPU, measured by `probe.rs` when it is opened.

use crate::device::DeviceFact;

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

impl Guarantees {
    /// Facts about the device for its label.
    pub fn facts(self) -> impl Iterator<Item = DeviceFact> {
        let bits = if self.cpu_bits { DeviceFact::BitIdentical } else { DeviceFact::OwnRounding };
        let tile = (!self.any_tile).then_some(DeviceFact::OneTile);
        [bits].into_iter().chain(tile)
    }
}
