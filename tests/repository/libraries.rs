//! Library search paths of programs: their own folder and the system, as checked by
//! `scripts/check-libraries.sh`.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use foretoken_tests::repository;

/// The script's objection to a program; `None` if it passes.
fn objection(program: &Path) -> Option<String> {
    let script = repository().join("scripts/check-libraries.sh");
    let output = Command::new(script).arg(program).output().unwrap();
    (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
}

#[test]
fn only_programs_that_search_libraries_outside_their_folder_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let program = folder.path().join("program");
    let linked = |arguments: &[&str]| {
        let linked =
            Command::new("cc").arg(&source).arg("-o").arg(&program).args(arguments).status().unwrap();
        assert!(linked.success());
        objection(&program)
    };
    assert_eq!(linked(&[]), None);
    assert_eq!(linked(&["-Wl,-rpath,$ORIGIN"]), None);
    assert_eq!(linked(&["-Wl,-rpath,$ORIGIN/lib:$ORIGIN"]), None);
    for search_path in
        ["/usr/local/lib", "$ORIGIN:/tmp", ".", "$ORIGIN::$ORIGIN", "$ORIGIN/../lib", "$ORIGINAL"]
    {
        for tags in ["--enable-new-dtags", "--disable-new-dtags"] {
            let said = linked(&[&format!("-Wl,{tags},-rpath,{search_path}")]);
            assert!(
                said.is_some_and(|said| said.contains("searches for libraries in")),
                "{search_path} {tags}"
            );
        }
    }
}

#[test]
fn a_program_that_cannot_be_read_is_rejected() {
    assert!(objection(Path::new("/nowhere/program")).is_some());
    assert!(objection(&repository().join("README.md")).is_some());
}

#[test]
fn binaries_search_no_other_folders_for_libraries() {
    assert_eq!(objection(&std::env::current_exe().unwrap()), None);
}
