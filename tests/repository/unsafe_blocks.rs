//! Every `unsafe` of the workspace has its argument in `docs/unsafe.md`: a file that is missing
//! there, or has more or fewer blocks than stated, fails here. Looks only at words in the sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use foretoken_tests::repository;

/// Folders with sources.
const FOLDERS: [&str; 4] = ["crates", "src-tauri", "tests", "fuzz"];

/// Number of unsafe blocks and implementations in a text; unsafe functions do not count.
fn count(text: &str) -> usize {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = code.collect::<Vec<_>>().join("\n");
    let after = code.split("unsafe").skip(1).map(str::trim_start);
    after.filter(|after| after.starts_with('{') || after.starts_with("impl")).count()
}

fn add(folder: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("gen") {
            add(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let count = count(&fs::read_to_string(&path).unwrap());
            if count > 0 {
                let name = path.strip_prefix(repository()).unwrap().to_string_lossy().replace('\\', "/");
                found.insert(name, count);
            }
        }
    }
}

/// Rows of the page: `| file | count | argument |`.
fn documented() -> BTreeMap<String, usize> {
    let page = fs::read_to_string(repository().join("docs/unsafe.md")).unwrap();
    let row = |line: &str| {
        let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        let (_, file, count, argument) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
        (file.ends_with(".rs") && !argument.is_empty()).then_some((file, count.parse().ok()?))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn every_unsafe_block_has_its_argument_in_the_documentation() {
    let mut found = BTreeMap::new();
    for folder in FOLDERS {
        add(&repository().join(folder), &mut found);
    }
    assert!(found.len() > 20, "{found:?}");
    assert_eq!(documented(), found, "docs/unsafe.md (left) is not what the sources have (right)");
}

#[test]
fn blocks_and_implementations_are_counted_and_comments_are_not() {
    let text = "! { a() }; // ! { b() }\n! impl Send for A {}\n! fn f() {\n  !\n  { g() }\n}";
    assert_eq!(count(&text.replace('!', "unsafe")), 3);
    assert_eq!(count("fn f() { \"safe\" }"), 0);
}
