//! Model files that nobody chose yet, inspected by the built program in child processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use foretoken_engine::inspection::{CHILDREN, FileProblem, Inspector};
use foretoken_model::{ProblemKind, Renderer};
use foretoken_tests::{repository, write_greedy_folder, write_starter_folder};

use crate::program::{Run, program};

const TOO_MUCH: &str = "inspecting it took more than 512 MB";

fn inspector() -> Inspector {
    Inspector::beside(&Renderer::program(env!("CARGO_BIN_EXE_foretoken-cli").into()))
}

fn starter(name: &str) -> PathBuf {
    repository().join(format!("starter/starter-{name}-Q8_0.gguf"))
}

#[test]
fn a_model_that_takes_all_memory_is_a_line_in_the_list_and_the_program_stays_small() {
    let data = tempfile::tempdir().unwrap();
    let models = data.path().join("models");
    write_greedy_folder(&models.join("a-greedy"));
    fs::copy(starter("target"), models.join("b-good.gguf")).unwrap();
    let list = |arguments: &[&str]| {
        let mut command = program(&[&["models", "list"], arguments].concat());
        command.env("FORETOKEN_DATA_DIR", data.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let peak = std::thread::spawn({
            let id = child.id();
            move || peak_memory(id)
        });
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let run =
            Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) };
        (run, peak.join().unwrap())
    };
    let (run, peak) = list(&["--json"]);
    let lines = run.json();
    let line = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
    assert_eq!(
        (line("a-greedy")["problem"].as_str(), &line("a-greedy")["label"]),
        (Some(TOO_MUCH), &().into())
    );
    assert_eq!(line("b-good.gguf")["label"], line("starter")["label"]);
    assert!(line("b-good.gguf").get("problem").is_none());
    eprintln!("peak memory while a hostile file is inspected: {} MB", peak / 1_000_000);
    assert!(peak < 150_000_000, "{peak} bytes");

    let (run, _) = list(&[]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(
        run.out.lines().any(|line| line.starts_with("a-greedy ") && line.contains(TOO_MUCH)),
        "{}",
        run.out
    );
}

/// Peak memory of a process in bytes; 0 where the system does not report it.
fn peak_memory(id: u32) -> u64 {
    let mut peak = 0;
    while let Ok(status) = fs::read_to_string(format!("/proc/{id}/status")) {
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let Some(line) = line else { break };
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        peak = peak.max(kilobytes * 1024);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    peak
}

#[test]
fn an_inspection_in_a_child_process_returns_what_one_in_this_process_does() {
    let folder = tempfile::tempdir().unwrap();
    let (broken, path) = (folder.path().join("broken.gguf"), folder.path().join("starter-draft"));
    fs::write(&broken, "GGUF\u{3}").unwrap();
    write_starter_folder("starter-draft", &path);
    let (child, here) = (inspector(), Inspector::beside(&Renderer::in_this_process()));
    let [target, draft] = ["target", "draft"].map(starter);
    let gone = folder.path().join("gone.gguf");
    for path in [&target, &draft, &broken, &path, &gone] {
        assert_eq!(child.inspect(path), here.inspect(path), "{}", path.display());
    }
    for (target, draft) in [(&target, &draft), (&target, &path), (&target, &broken), (&gone, &draft)] {
        assert_eq!(child.compare(target, draft), here.compare(target, draft), "{}", draft.display());
    }
    assert!(child.inspect(&target).unwrap().problem.is_none());
    assert!(child.compare(&target, &draft).unwrap().compatible);
}

#[test]
fn a_child_process_that_was_ended_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    write_greedy_folder(folder.path());
    let inspector = inspector();
    for _ in 0..2 {
        let FileProblem { kind, reason, was_ended } = inspector.inspect(folder.path()).unwrap_err();
        assert_eq!((kind, was_ended), (ProblemKind::TooMuchMemory, true));
        assert!(reason.starts_with("it could not be used"), "{reason}");
        assert!(inspector.inspect(&starter("target")).is_ok());
    }
    inspector.rest();
    assert!(inspector.inspect(&starter("target")).is_ok());
}

#[cfg(unix)]
#[test]
fn an_inspection_that_takes_too_long_is_ended_and_many_files_start_few_processes() {
    let folder = tempfile::tempdir().unwrap();
    let child =
        foretoken_tests::SlowChild::new(folder.path(), Path::new(env!("CARGO_BIN_EXE_foretoken-cli")));
    let inspector = Inspector::beside(&Renderer::program(child.path.clone()));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert!(inspector.inspect(&starter("target")).is_ok()));
        }
    });
    assert!((1..=CHILDREN).contains(&child.starts()), "{} processes", child.starts());
    let begun = std::time::Instant::now();
    let problem = inspector.inspect(&folder.path().join("slow.gguf")).unwrap_err();
    assert_eq!((problem.kind, problem.was_ended), (ProblemKind::TooLong, true));
    assert!((5..20).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert!(inspector.inspect(&starter("target")).is_ok());
}

#[test]
fn twenty_files_are_inspected_about_as_fast_as_in_this_process() {
    let time = |inspector: &Inspector| {
        let begun = std::time::Instant::now();
        for at in 0..20 {
            inspector.inspect(&starter(if at % 2 == 0 { "target" } else { "draft" })).unwrap();
        }
        begun.elapsed()
    };
    let (here, child) = (time(&Inspector::beside(&Renderer::in_this_process())), time(&inspector()));
    eprintln!("20 files: {here:?} in this process, {child:?} in a child process with its start");
    // Generous, for a busy computer: a process for each file would take much longer.
    assert!(child < here * 3 + std::time::Duration::from_secs(2), "{here:?}, {child:?}");
}
