//! How much of this computer's memory is free.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes that are free now: not used, or used by the system for what it can drop.
pub fn free_memory() -> u64 {
    let memory = MemoryRefreshKind::nothing().with_ram();
    System::new_with_specifics(RefreshKind::nothing().with_memory(memory)).available_memory()
}
