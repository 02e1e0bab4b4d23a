//! The real window with a models folder full of hostile files: it starts as usual, stays small, and
//! lists each file with its problem.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use foretoken_tests::window::Window;
use foretoken_tests::{processes, repository, write_greedy_folder, write_starter_folder};

use crate::e2e::always_drafting;

/// More memory than without the files; reading them in the application would take gigabytes.
const MORE_MEMORY: u64 = 150_000_000;

/// Writes files and folders that are no healthy models.
fn write_hostile_models(to: &Path) {
    fs::create_dir_all(to).unwrap();
    write_greedy_folder(&to.join("greedy-1"));
    write_greedy_folder(&to.join("greedy-2"));
    let starter = fs::read(repository().join("starter/starter-target-Q8_0.gguf")).unwrap();
    fs::write(to.join("cut-short.gguf"), &starter[..starter.len() / 3]).unwrap();
    let counts = [b"GGUF".as_slice(), &[3, 0, 0, 0], &[255; 16], &[0; 64]].concat();
    fs::write(to.join("endless-lists.gguf"), counts).unwrap();
    let failure = repository().join("fuzz/failures/gguf/heads-of-millions.gguf");
    fs::copy(failure, to.join("heads-of-millions.gguf")).unwrap();
    fs::write(to.join("noise.gguf"), [b"GGUF".as_slice(), &starter[9..100_000]].concat()).unwrap();
    assert!(Command::new("mkfifo").arg(to.join("pipe.gguf")).status().unwrap().success());
    // Folders whose documents lie or have many parts.
    let folder = |name: &str, document: &str, text: String| {
        write_starter_folder("starter-draft", &to.join(name));
        fs::write(to.join(name).join(document), text).unwrap();
    };
    folder("deep-config", "config.json", format!("{}{}", "[".repeat(400_000), "]".repeat(400_000)));
    folder(
        "many-ends",
        "generation_config.json",
        format!(r#"{{"eos_token_id":[{}1]}}"#, "7,".repeat(500_000)),
    );
    folder("large-template", "chat_template.jinja", "{% if x %}".repeat(400_000));
    folder("missing-files", "model.safetensors", String::new());
    let mut header = Vec::from((30_000_000_u64).to_le_bytes());
    header.extend(format!(r#"{{"a":[{}0]}}"#, "0,".repeat(15_000_000)).as_bytes()[..30_000_000].iter());
    fs::write(to.join("missing-files/model.safetensors"), header).unwrap();
}

/// Peak memory of the application's own process, in bytes.
fn peak_memory(window: &Window) -> u64 {
    let id = processes::below(window.driver())[0];
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[allow(clippy::print_stderr, reason = "the measurement is shown")]
#[tokio::test]
async fn a_window_with_hostile_models_starts_as_usual_and_lists_each_with_its_problem() {
    let measure = async |hostile: bool| {
        let folder = tempfile::tempdir().unwrap();
        always_drafting(folder.path());
        if hostile {
            write_hostile_models(&folder.path().join("models"));
        }
        let window = Window::open(folder.path()).await;
        let age = window.age();
        (peak_memory(&window), age, window, folder)
    };
    let (idle, usual, window, _folder) = measure(false).await;
    window.close().await;
    let (peak, age, window, _folder) = measure(true).await;
    eprintln!("ready after {usual:?}, with hostile models after {age:?}; {idle} bytes, {peak} bytes");
    assert!(peak < idle + MORE_MEMORY, "{peak} bytes, {idle} without hostile models");
    // Generous, for a busy computer.
    assert!(age < usual * 2 + Duration::from_secs(20), "{age:?}, {usual:?} without hostile models");

    window.click("library-open").await;
    let panel = async || window.text("library-panel").await;
    window.wait("the models are listed", async || panel().await.contains("512 MB")).await;
    window.photograph("hostile-library").await;
    window.click("library-close").await;
    window.close().await;
}
