//! Resident memory of this program.

use std::fs;

/// Bytes in memory now, including mapped files that were read; `None` without `/proc`.
pub fn bytes() -> Option<u64> {
    resident(&fs::read_to_string("/proc/self/status").ok()?)
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_memory_is_read_from_the_status() {
        let status = "Name:\tbench\nVmHWM:\t  900 kB\nVmRSS:\t   812 kB\nThreads:\t2\n";
        assert_eq!(resident(status), Some(812 * 1024));
        assert_eq!(resident("Name:\tbench\n"), None);
    }
}
