//! Free memory of this computer.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Available memory in bytes: unused, or used by the system for caches that it can drop.
pub fn free_memory() -> u64 {
    let memory = MemoryRefreshKind::nothing().with_ram();
    System::new_with_specifics(RefreshKind::nothing().with_memory(memory)).available_memory()
}
