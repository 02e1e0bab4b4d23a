//! A start that fails, and what is done about it.

use std::cell::{Cell, RefCell};
use std::path::Path;

use foretoken_app::App;
use foretoken_app::start::{Remedy, StartProblem, insist};
use foretoken_library::Folders;
use foretoken_store::Store;

fn start(folder: &Path) -> Result<App, StartProblem> {
    App::start(Folders::at(folder), None)
}

fn problem(folder: &Path) -> StartProblem {
    start(folder).err().expect("the start does not fail")
}

/// What is in the files of a folder whose names begin with `foretoken`, by their names.
fn databases(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = folder.read_dir().unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.is_file());
    let mut files: Vec<_> = files
        .map(|file| (file.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&file).unwrap()))
        .filter(|(name, _)| name.starts_with("foretoken"))
        .collect();
    files.sort();
    files
}

/// A database of three conversations, the second half of which is overwritten.
fn damaged_inside(path: &Path) {
    let mut store = Store::open(path).unwrap();
    for _ in 0..3 {
        store.ask(None, &"a question ".repeat(2000), "starter", None).unwrap();
    }
    drop(store);
    let mut bytes = std::fs::read(path).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_database_that_cannot_be_read_is_left_as_it_is_when_the_person_quits() {
    for damage in ["rubbish", "cut off", "another program's"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foretoken.db");
        match damage {
            "rubbish" => std::fs::write(&path, "rubbish ".repeat(1000)).unwrap(),
            "cut off" => damaged_inside(&path),
            _ => {
                // As a database of ours says it, but nothing is in it.
                let version = {
                    let other = folder.path().join("other.db");
                    drop(Store::open(&other).unwrap());
                    std::fs::read(other).unwrap()[60..64].to_vec()
                };
                let mut bytes = std::fs::read(empty_database(folder.path())).unwrap();
                bytes[60..64].copy_from_slice(&version);
                std::fs::write(&path, bytes).unwrap();
            }
        }
        let before = std::fs::read(&path).unwrap();
        let asked = RefCell::new(Vec::new());
        let started = insist(
            || start(folder.path()),
            |problem| {
                asked.borrow_mut().push(problem.clone());
                false
            },
        );
        assert!(started.is_none(), "{damage}");
        let [problem] = &asked.into_inner()[..] else { panic!("asked once, {damage}") };
        assert_eq!(problem.remedy, Some(Remedy::SetAside(path.clone())), "{damage}: {}", problem.text);
        assert!(problem.text.contains(path.to_str().unwrap()) && problem.text.contains("not deleted"));
        assert_eq!(std::fs::read(&path).unwrap(), before, "{damage}");
    }
}
