//! Where programs look for libraries: next to themselves and in the system, which `scripts/check-libraries.sh` sees to.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use foretoken_tests::repository;

/// What the script says against a program; `None` when it lets it pass.
fn objection(program: &Path) -> Option<String> {
    let script = repository().join("scripts/check-libraries.sh");
    let output = Command::new(script).arg(program).output().unwrap();
    (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_program_that_looks_for_libraries_elsewhere_is_refused_and_one_that_looks_beside_itself_is_not() {
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
    for elsewhere in
        ["/usr/local/lib", "$ORIGIN:/tmp", ".", "$ORIGIN::$ORIGIN", "$ORIGIN/../lib", "$ORIGINAL"]
    {
        for tags in ["--enable-new-dtags", "--disable-new-dtags"] {
            let said = linked(&[&format!("-Wl,{tags},-rpath,{elsewhere}")]);
            assert!(
                said.is_some_and(|said| said.contains("searches for libraries in")),
                "{elsewhere} {tags}"
            );
        }
    }
}

#[test]
fn a_program_that_cannot_be_read_is_refused() {
    assert!(objection(Path::new("/nowhere/program")).is_some());
    assert!(objection(&repository().join("README.md")).is_some());
}

#[test]
fn what_cargo_links_looks_nowhere_else() {
    assert_eq!(objection(&std::env::current_exe().unwrap()), None);
}
