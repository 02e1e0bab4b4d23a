//! Memory: its use, and whether a model fits. The engine knows the needs of installed models;
//! others are estimated.

use foretoken_forward::device::{GpuMemory, free_memory};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, get_current_pid};

use crate::ipc::MemoryUse;

/// Returns the memory to run a model of `size_bytes` on disk: its weights and an eighth for the
/// context and activations.
pub fn needed(size_bytes: u64) -> u64 {
    size_bytes.saturating_add(size_bytes / 8)
}

/// Returns whether `bytes` are free now.
pub fn holds(bytes: u64) -> bool {
    bytes <= free_memory()
}

/// Returns the memory in use, with loaded models of these sizes in this computer's memory, and the
/// memory of a GPU in use.
pub fn in_use(target_bytes: u64, draft_bytes: u64, gpu: Option<GpuMemory>) -> MemoryUse {
    MemoryUse {
        target_bytes,
        draft_bytes,
        contexts_bytes: 0,
        process_bytes: of_process(),
        free_bytes: free_memory(),
        gpu_bytes: gpu.map_or(0, |gpu| gpu.total_bytes),
        gpu_free_bytes: gpu.map_or(0, |gpu| gpu.free_bytes),
    }
}

/// Returns this program's resident memory; 0 if the system does not report it.
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
    fn a_little_fits_and_more_than_the_total_does_not() {
        assert!(holds(needed(1_000_000)));
        assert!(!holds(needed(1 << 60)));
    }

    #[test]
    fn the_program_uses_memory_and_leaves_some_free() {
        let MemoryUse { process_bytes, free_bytes, .. } = in_use(1, 2, None);
        assert!(process_bytes > 1_000_000 && free_bytes > 1_000_000, "{process_bytes}, {free_bytes}");
    }

    #[test]
    fn a_model_needs_more_memory_than_its_file() {
        assert_eq!(needed(8_000), 9_000);
    }
}
