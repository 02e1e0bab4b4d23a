//! Resident memory of this program.

use std::fs;

/// Bytes in memory now, including mapped files that were read; `None` without `/proc`.
pub fn bytes() -> Option<u64> {
    figure("VmRSS:", &fs::read_to_string("/proc/self/status").ok()?)
}

/// Most bytes in memory since the program started or [`forget_peak`] was called.
pub fn peak() -> Option<u64> {
    figure("VmHWM:", &fs::read_to_string("/proc/self/status").ok()?)
}

/// Starts a new measurement of the peak; does nothing where the system has none.
pub fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn figure(name: &str, status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_memory_and_its_peak_are_read_from_the_status() {
        let status = "Name:\tbench\nVmHWM:\t  900 kB\nVmRSS:\t   812 kB\nThreads:\t2\n";
        assert_eq!(figure("VmRSS:", status), Some(812 * 1024));
        assert_eq!(figure("VmHWM:", status), Some(900 * 1024));
        assert_eq!(figure("VmRSS:", "Name:\tbench\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_forgotten_peak_is_measured_again() {
        let large = vec![1u8; 64 << 20];
        assert!(large.iter().all(|&byte| byte == 1));
        let before = peak().unwrap();
        drop(large);
        forget_peak();
        assert!(peak().unwrap() + (32 << 20) < before);
    }
}
