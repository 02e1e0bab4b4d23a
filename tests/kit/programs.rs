//! Programs that tests start: those that this test was built beside, or the ones named by
//! variables.

use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;

/// The application that FORETOKEN_APPLICATION names, else the one beside this test.
pub fn application() -> PathBuf {
    if let Some(path) = std::env::var_os("FORETOKEN_APPLICATION") {
        return path.into();
    }
    let test = std::env::current_exe().unwrap();
    let binary = test.ancestors().nth(2).unwrap().join(format!("foretoken{EXE_SUFFIX}"));
    assert!(binary.exists(), "{} is missing: build it with `cargo build --workspace`", binary.display());
    binary
}

/// The terminal program, which is beside the application.
pub fn cli() -> PathBuf {
    application().with_file_name(format!("foretoken-cli{EXE_SUFFIX}"))
}
