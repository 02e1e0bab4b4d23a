//! Memory: what is in use, and whether a model fits. Of one that is here the engine says what it takes; of
//! others a rule of thumb.

use foretoken_engine::device::{GpuMemory, free_memory};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, get_current_pid};

use crate::ipc::MemoryUse;

/// Tokens of a conversation that there shall be room for.
pub const TOKENS: usize = 8192;

/// What running a model of `size_bytes` on disk takes: its weights and an eighth of them for the
/// context and what is computed on the way.
pub fn needed(size_bytes: u64) -> u64 {
    size_bytes + size_bytes / 8
}

/// Whether `bytes` are free now.
pub fn holds(bytes: u64) -> bool {
    bytes <= free_memory()
}

/// With models loaded that take so many bytes of this computer's memory, and what a GPU that computes has.
pub fn in_use(target_bytes: u64, draft_bytes: u64, gpu: Option<GpuMemory>) -> MemoryUse {
    MemoryUse {
        target_bytes,
        draft_bytes,
        process_bytes: of_process(),
        free_bytes: free_memory(),
        gpu_bytes: gpu.map_or(0, |gpu| gpu.total_bytes),
        gpu_free_bytes: gpu.map_or(0, |gpu| gpu.free_bytes),
    }
}

/// What this program holds in memory; 0 where the system does not say.
fn of_process() -> u64 {
    let Ok(id) = get_current_pid() else { return 0 };
    let mut system = System::new();
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[id]), false, memory);
    system.process(id).map_or(0, sysinfo::Process::memory)
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
    fn this_program_takes_some_memory_and_leaves_some() {
        let MemoryUse { process_bytes, free_bytes, .. } = in_use(1, 2, None);
        assert!(process_bytes > 1_000_000 && free_bytes > 1_000_000, "{process_bytes}, {free_bytes}");
    }

    #[test]
    fn more_is_needed_than_the_file_holds() {
        assert_eq!(needed(8_000), 9_000);
    }
}
