//! Rules for what the scripts and the public CI download: actions by commit, wheels by hash, one
//! version of Rust.

use std::fs;

use foretoken_tests::repository;

/// Texts of the files in a folder of the repository whose names end with `ending`.
fn texts(folder: &str, ending: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(repository().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let wanted = paths.filter(|path| path.extension().is_some_and(|found| found == ending));
    wanted.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn actions_are_named_by_commit_and_rust_by_version() {
    let workflows = texts(".github/workflows", "yml");
    assert!(!workflows.is_empty());
    for (path, text) in workflows {
        for line in text.lines().filter(|line| line.contains("uses:")) {
            let (_, version) = line.split_once('@').unwrap_or_default();
            let commit = version.split(' ').next().unwrap_or_default();
            let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
            assert!(is_commit, "{path}: {line}: expected a commit behind '@'");
        }
        for line in text.lines().filter(|line| line.contains("rustup")) {
            assert!(!line.contains("update") && !line.contains("stable"), "{path}: {line}");
        }
    }
}

#[test]
fn wheels_are_installed_by_hash() {
    for (path, text) in texts("scripts", "sh") {
        for line in text.lines().filter(|line| line.contains("pip install")) {
            assert!(line.contains("--require-hashes"), "{path}: {line}");
        }
    }
    let lists = texts("scripts/wheels", "txt");
    assert!(!lists.is_empty());
    for (path, text) in lists {
        let wheels = text.lines().filter(|line| line.contains("==")).count();
        let hashes = text.lines().filter(|line| line.trim().starts_with("--hash=sha256:")).count();
        assert!(wheels > 0 && hashes >= 2 * wheels, "{path}");
    }
    // Messages and checks of the script name the versions of the wheels.
    let setup = fs::read_to_string(repository().join("scripts/setup.sh")).unwrap();
    for (list, variable) in [("node", "NODE"), ("deny", "DENY"), ("zig", "ZIG")] {
        let text = fs::read_to_string(repository().join(format!("scripts/wheels/{list}.txt"))).unwrap();
        let version = text.split_once("==").unwrap().1.split_whitespace().next().unwrap();
        assert!(setup.contains(&format!("\n{variable}={version}")), "{variable} is not {version}");
    }
}
