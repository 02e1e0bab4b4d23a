//! Whether a model fits in memory. Of one that is here the engine says what it takes; of others a rule of
//! thumb.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Tokens of a conversation that there shall be room for.
pub const TOKENS: usize = 8192;

/// What running a model of `size_bytes` on disk takes: its weights and an eighth of them for the
/// context and what is computed on the way.
pub fn needed(size_bytes: u64) -> u64 {
    size_bytes + size_bytes / 8
}

/// Whether `bytes` are free now: not used, or used by the system for what it can drop.
pub fn holds(bytes: u64) -> bool {
    bytes <= available()
}

fn available() -> u64 {
    let memory = MemoryRefreshKind::nothing().with_ram();
    System::new_with_specifics(RefreshKind::nothing().with_memory(memory)).available_memory()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_fits_and_more_than_there_is_does_not() {
        assert!(holds(needed(1_000_000)));
        assert!(!holds(needed(1 << 60)));
    }

    #[test]
    fn more_is_needed_than_the_file_holds() {
        assert_eq!(needed(8_000), 9_000);
    }
}
