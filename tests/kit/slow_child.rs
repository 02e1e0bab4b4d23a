//! A child process for untrusted input that takes a minute for some files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A script that starts `foretoken-cli` as the child process and delays requests about files with
/// `slow` in their names.
pub struct SlowChild {
    pub path: PathBuf,
    starts: PathBuf,
}

impl SlowChild {
    /// Writes the script into `folder`.
    pub fn new(folder: &Path, program: &Path) -> Self {
        let (path, starts) = (folder.join("slow-child"), folder.join("slow-child-starts"));
        // Paths are lists of bytes in requests.
        let slow = "slow".bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(",");
        let script = format!(
            "#!/bin/sh\necho started >> '{}'\nwhile IFS= read -r line; do\n  case \"$line\" in *{slow}*) sleep 15 ;; \
             esac\n  printf '%s\\n' \"$line\"\ndone | '{}' \"$@\"\n",
            starts.display(),
            program.display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self { path, starts }
    }

    /// Number of processes started so far.
    pub fn starts(&self) -> usize {
        fs::read_to_string(&self.starts).map_or(0, |starts| starts.lines().count())
    }
}
