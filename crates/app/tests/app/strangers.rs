//! Models that cannot be read or are missing: each is listed with its problem, and the others work.

use std::path::Path;

use foretoken_app::ipc::Settings;
use foretoken_library::Folders;
use foretoken_model::{ProblemKind, Renderer};
use foretoken_store::Store;
use tempfile::TempDir;

use super::{Fixture, detail};

/// Creates a data folder with these added models, the first one chosen.
fn added(paths: &[&Path]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let settings = serde_json::json!({"target": paths[0], "added_models": paths});
    let store = Store::open(&Folders::at(folder.path()).database()).unwrap();
    store.save_settings(&settings.to_string()).unwrap();
    folder
}

#[test]
fn missing_models_are_listed_with_the_problem_until_they_are_removed() {
    let outside = tempfile::tempdir().unwrap();
    let [file, folder] = ["gone.gguf", "unplugged/model"].map(|name| outside.path().join(name));
    let fixture = Fixture::at(added(&[&file, &folder]));
    let status = fixture.status();
    assert_eq!(status.target.unwrap().problem, None, "another replies");
    for path in [&file, &folder] {
        let id = path.display().to_string();
        let entry = status.targets.iter().find(|entry| entry.id == id).unwrap();
        assert_eq!(entry.problem.as_ref().unwrap().kind, ProblemKind::NotFound);
        fixture.app.remove_model(&id).unwrap();
        fixture.wait_for(|status| status.targets.iter().all(|entry| entry.id != id));
    }
    assert!(fixture.app.settings().added_models.is_empty());
    fixture.send(None, "Hello!");
}

/// Uses a pipe that nobody writes to: reading it blocks forever.
#[cfg(unix)]
#[test]
fn a_model_that_hangs_while_it_is_listed_affects_no_other() {
    let outside = tempfile::tempdir().unwrap();
    let pipe = outside.path().join("pipe.gguf");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let starter = foretoken_tests::repository().join("starter/starter-target-Q8_0.gguf");
    let fixture = Fixture::at(added(&[&pipe, &starter]));
    let status = fixture.status();
    assert_eq!(status.target.unwrap().problem, None, "another replies");
    let problem = |path: &Path| {
        let id = path.display().to_string();
        status.targets.iter().find(|entry| entry.id == id).unwrap().problem.clone()
    };
    assert!(problem(&pipe).is_some());
    assert_eq!(problem(&starter), None);
    let drafts = |id: &str| status.drafts.iter().find(|option| option.id == id).unwrap();
    assert!(drafts(&pipe.display().to_string()).problem.is_some());
    fixture.send(None, "Hello!");
}

#[cfg(unix)]
#[test]
fn a_model_whose_inspection_takes_too_long_is_listed_with_the_problem_and_not_loaded() {
    let outside = tempfile::tempdir().unwrap();
    let starter = foretoken_tests::repository().join("starter/starter-target-Q8_0.gguf");
    let [slow, good] = ["slow.gguf", "good.gguf"].map(|name| outside.path().join(name));
    for path in [&slow, &good] {
        std::fs::copy(&starter, path).unwrap();
    }
    let child = foretoken_tests::SlowChild::new(outside.path(), &foretoken_tests::cli());
    let fixture = Fixture::with_child(added(&[&good, &slow]), Renderer::program(child.path.clone()));
    let status = fixture.status();
    assert_eq!(status.target.unwrap().id, good.display().to_string());
    let id = slow.display().to_string();
    let entry = status.targets.iter().find(|entry| entry.id == id).unwrap();
    assert_eq!(entry.problem.as_ref().unwrap().kind, ProblemKind::TooLong);
    let draft = status.drafts.iter().find(|option| option.id == id).unwrap();
    assert_eq!(draft.problem, entry.problem);
    let refused = fixture.app.add_model(&id).unwrap_err();
    assert!(refused.message.contains("took longer than 5 s"), "{}", refused.message);

    let settings = Settings { target: id, ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    fixture.wait_for(|status| detail(status).contains("took longer than 5 s"));
    fixture.send(None, "Hello!");
}
