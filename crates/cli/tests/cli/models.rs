//! `models`: a download from a local hub, interrupted in every way, and the files it leaves.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use candle_core::quantized::GgmlDType;
use foretoken_tests::hub::{Faults, Hub, sha256};
use foretoken_tests::{Flags, RandomHead, family, starter_target};
use tempfile::TempDir;

use crate::program::{Run, finished, program, run};

const NAME: &str = "owner/name-GGUF:name-Q4_K_M.gguf";

/// A hub with one model, and the folders of a user who downloads it.
struct Shelf {
    folder: TempDir,
    hub: Hub,
    bytes: u64,
}

impl Shelf {
    fn new(bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("repositories/owner/name-GGUF/name-Q4_K_M.gguf");
        fs::create_dir_all(original.parent().unwrap()).unwrap();
        let mut file = BufWriter::new(File::create(&original).unwrap());
        let mut state = 1_u64;
        for _ in 0..bytes / 8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            file.write_all(&state.to_le_bytes()).unwrap();
        }
        file.flush().unwrap();
        let hub = Hub::start(&folder.path().join("repositories"));
        Self { folder, hub, bytes: bytes / 8 * 8 }
    }

    fn original(&self) -> PathBuf {
        self.folder.path().join("repositories/owner/name-GGUF/name-Q4_K_M.gguf")
    }

    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = program(arguments);
        command.env("HF_ENDPOINT", &self.hub.url).env("HF_HUB_CACHE", self.folder.path().join("cache"));
        command.env("FORETOKEN_DATA_DIR", self.folder.path().join("data"));
        command.env("HF_HOME", self.folder.path().join("home")).env_remove("HF_TOKEN");
        // Not the keyring of the person who runs the tests.
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        finished(self.program(arguments), "")
    }

    /// Starts a download and returns it running once the hub has sent `bytes`.
    fn pull_until(&self, bytes: u64) -> Child {
        let mut command = self.program(&["models", "pull", NAME]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while self.hub.sent() < bytes {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
            thread::sleep(Duration::from_millis(2));
        }
        child
    }

    #[track_caller]
    fn assert_arrived(&self) {
        let [line] = &self.run(&["models", "list", "--json"]).json()[2..] else { panic!("not listed") };
        assert_eq!((&line["name"], &line["bytes"]), (&NAME.into(), &self.bytes.into()));
        let path = Path::new(line["path"].as_str().unwrap());
        assert_eq!(sha256(path), sha256(&self.original()));
    }
}

/// FORETOKEN_TEST_DOWNLOAD_MB=2000 repeats the published measurement.
#[test]
fn a_download_killed_three_times_completes_without_fetching_bytes_twice() {
    let megabytes = std::env::var("FORETOKEN_TEST_DOWNLOAD_MB").map_or(64, |text| text.parse().unwrap());
    let shelf = Shelf::new(megabytes * 1_000_000);
    // As slow as the client reads, or bytes waiting between the two would count as fetched.
    let speed = Some((shelf.bytes / 3).min(100_000_000));
    shelf.hub.set(Faults { bytes_per_second: speed, ..Faults::default() });
    for quarter in 1..=3 {
        let mut child = shelf.pull_until(shelf.bytes / 4 * quarter);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let last = shelf.run(&["models", "pull", NAME]);
    assert_eq!(last.code, 0, "{}", last.err);
    let (sent, bytes) = (shelf.hub.sent(), shelf.bytes);
    eprintln!("killed three times: fetched {sent} of {bytes} bytes, {:.4} times", sent as f64 / bytes as f64);
    assert!(sent < bytes / 100 * 105, "fetched {sent} of {bytes} bytes");
    shelf.assert_arrived();
}

#[cfg(unix)]
#[test]
fn ctrl_c_pauses_and_the_same_command_resumes() {
    let shelf = Shelf::new(6_000_000);
    shelf.hub.set(Faults { bytes_per_second: Some(2_000_000), ..Faults::default() });
    let child = shelf.pull_until(1_000_000);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let message = String::from_utf8(ended.stderr).unwrap();
    assert!(message.contains("of 6.0 MB; the same command resumes it"), "{message}");
    shelf.hub.set(Faults::default());
    let resumed = shelf.run(&["models", "pull", NAME]);
    assert_eq!((resumed.code, resumed.out), (0, format!("downloaded {NAME}, 6.0 MB\n")));
    assert!(shelf.hub.sent() < 6_300_000);
    shelf.assert_arrived();
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_question_to_a_hub_that_does_not_answer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let shelf = Shelf::new(8);
    let mut command = shelf.program(&["models", "pull", NAME]);
    command.env("HF_ENDPOINT", format!("http://{}", silent.local_addr().unwrap()));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _connection = silent.accept().unwrap();
    assert!(child.try_wait().unwrap().is_none());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let begun = std::time::Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn progress_is_json_if_requested() {
    let shelf = Shelf::new(2_000_000);
    shelf.hub.set(Faults { bytes_per_second: Some(2_000_000), ..Faults::default() });
    let lines = shelf.run(&["models", "pull", "owner/name-GGUF", "--json"]).json();
    let last = lines.last().unwrap();
    assert_eq!((&last["state"], &last["done_bytes"]), (&"done".into(), &2_000_000.into()));
    let running: Vec<_> = lines.iter().filter(|line| line["state"] == "running").collect();
    assert!(running.len() > 3 && running.iter().any(|line| line["bytes_per_second"].as_f64() > Some(0.0)));
    assert!(lines.iter().all(|line| line["id"] == NAME));
}

#[test]
fn a_model_is_removed_only_after_confirmation() {
    let shelf = Shelf::new(80_000);
    assert_eq!(shelf.run(&["models", "pull", NAME]).code, 0);
    let unasked = shelf.run(&["models", "rm", NAME]);
    assert!(unasked.code == 2 && unasked.err.contains("or add --yes"), "{unasked:?}");
    shelf.assert_arrived();
    let removed = shelf.run(&["models", "rm", "owner/name-GGUF", "--yes"]);
    assert_eq!((removed.code, removed.out), (0, format!("deleted {NAME}, 80.0 kB\n")));
    assert_eq!(shelf.run(&["models", "list", "--json"]).json().len(), 2);
    assert!(!shelf.folder.path().join("cache/models--owner--name-GGUF").exists());
    let again = shelf.run(&["models", "rm", NAME, "--yes"]);
    assert!(again.code == 1 && again.err.contains("no model called"), "{again:?}");
    let starter = shelf.run(&["models", "rm", "starter", "--yes"]);
    assert!(starter.code == 1 && starter.err.contains("cannot be removed"), "{starter:?}");
    let own = shelf.run(&["models", "rm", shelf.original().to_str().unwrap(), "--yes"]);
    assert!(own.code == 2 && own.err.contains("your own file"), "{own:?}");
    assert!(shelf.original().exists());
}

#[test]
fn an_error_is_one_sentence_and_an_exit_code() {
    let shelf = Shelf::new(80_000);
    shelf.hub.gate("owner/name-GGUF", "hf_right");
    let gated = shelf.run(&["models", "pull", NAME]);
    assert!(gated.code == 1 && gated.err.contains("is gated: accept its licence at http"), "{gated:?}");
    let mut with_token = shelf.program(&["models", "pull", NAME]);
    with_token.env("HF_TOKEN", "hf_right");
    assert_eq!(finished(with_token, "").code, 0);
    let slip = shelf.run(&["models", "pull", "owner/name-GGUF:name-Q4_K_S"]);
    assert!(slip.code == 1 && slip.err.contains("Did you mean 'name-Q4_K_M'?"), "{slip:?}");
    let nobody = shelf.run(&["models", "pull", "Qwen/Qwen3-8B-GUFF"]);
    assert!(nobody.code == 1 && nobody.err.contains("Did you mean 'Qwen/Qwen3-8B-GGUF'?"), "{nobody:?}");
    assert_eq!(nobody.err.lines().count(), 1, "{}", nobody.err);
    let mut offline = shelf.program(&["models", "pull", "owner/other"]);
    offline.env("HF_ENDPOINT", "http://127.0.0.1:9");
    let offline = finished(offline, "");
    assert!(offline.code == 1 && offline.err.contains("could not be reached"), "{offline:?}");
    assert_eq!(offline.err.lines().count(), 1, "{}", offline.err);
    for address in ["nonsense", "ftp://elsewhere", "mailto:somebody"] {
        let mut wrong = shelf.program(&["models", "pull", "owner/other"]);
        wrong.env("HF_ENDPOINT", address);
        let wrong = finished(wrong, "");
        let message = format!("expected a web address in HF_ENDPOINT, found '{address}'");
        assert!(wrong.code == 1 && wrong.err.contains(&message), "{wrong:?}");
    }
}

#[test]
fn the_token_in_the_hugging_face_cache_opens_a_gated_repository() {
    let shelf = Shelf::new(80_000);
    shelf.hub.gate("owner/name-GGUF", "hf_right");
    let home = shelf.folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("token"), "hf_right\n").unwrap();
    let mut nobody = shelf.program(&["models", "pull", NAME]);
    nobody.env("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1");
    let nobody = finished(nobody, "");
    assert!(nobody.code == 1 && nobody.err.contains("and set a token"), "{nobody:?}");
    let mut other = shelf.program(&["models", "pull", NAME]);
    other.env("HF_TOKEN", "hf_other");
    let other = finished(other, "");
    assert!(
        other.code == 1 && other.err.contains("with the account that your token belongs to"),
        "{other:?}"
    );
    assert_eq!(shelf.run(&["models", "pull", NAME]).code, 0);
    shelf.assert_arrived();
}

#[test]
fn the_catalogue_names_pairs_that_pull_understands() {
    let known = run(&["models", "catalogue", "--json"]).json();
    assert!(known.len() >= 12);
    for model in known {
        let name = model["name"].as_str().unwrap();
        let files = usize::from(model["role"] != "head");
        assert!(name.matches('/').count() == 1 && name.matches(':').count() == files, "{name}");
        assert_eq!((&model["installed"], &model["gated"]), (&false.into(), &false.into()));
    }
    assert!(run(&["models", "catalogue"]).out.contains("Qwen3 8B · Q4_K_M"));
}

#[test]
fn a_pulled_head_drafts_only_for_its_own_target() {
    let shelf = Shelf::new(8);
    let mut head = RandomHead::new(starter_target().config().unwrap(), Flags::default());
    head.entering = vec![2, 4, 6];
    head.eagle(shelf.folder.path()).unwrap();
    let written = shelf.folder.path().join(format!("eagle {}", head.flags.name()));
    fs::rename(written, shelf.folder.path().join("repositories/owner/head")).unwrap();
    let pulled = shelf.run(&["models", "pull", "owner/head"]);
    assert_eq!(pulled.code, 0, "{}", pulled.err);
    let ask = ["--prompt", "Count from one to twelve.", "--temperature", "0", "--draft-length", "3"];
    let with_head = |command, target| {
        shelf.run(&[&[command, "--target", target, "--draft", "owner/head"], &ask[..]].concat())
    };
    let same = with_head("check", "starter");
    assert!(same.code == 0 && same.out.contains("identical"), "{}{}", same.out, same.err);
    let other = with_head("check", "starter-draft");
    assert!(other.code != 0 && other.err.contains("it was made for another model"), "{}", other.err);
    let rounds = ["generate", "--target", "starter", "--draft", "owner/head", "--json"];
    let rounds = shelf.run(&[&rounds[..], &ask[..]].concat());
    assert!(rounds.out.contains(r#""drafter":"head""#), "{}{}", rounds.out, rounds.err);
    let alone = shelf.run(&["generate", "--target", "owner/head", "--prompt", "Hello"]);
    assert!(alone.code != 0 && alone.err.contains("draft head"), "{}", alone.err);
}

#[test]
fn the_mtp_block_in_a_targets_file_drafts_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let target = family("qwen35").with_mtp().gguf(folder.path(), GgmlDType::Q8_0);
    let target = target.path().to_str().unwrap();
    let ask =
        ["--raw", "--prompt", "Once upon", "--temperature", "0", "--max-tokens", "20", "--draft-length", "3"];
    let with_block =
        |command, target| run(&[&[command, "--target", target, "--draft", "mtp"], &ask[..]].concat());
    let same = with_block("check", target);
    assert!(same.code == 0 && same.out.contains("identical"), "{}{}", same.out, same.err);
    let none = with_block("generate", "starter");
    assert!(none.code != 0 && none.err.contains("contains no MTP head"), "{}", none.err);
    let beside = family("qwen35").with_mtp().mtp_gguf(folder.path(), GgmlDType::Q8_0);
    let beside = beside.to_str().unwrap();
    for draft in ["mtp", beside] {
        let rounds = ["generate", "--target", target, "--draft", draft, "--json"];
        let rounds = run(&[&rounds[..], &ask[..]].concat());
        assert!(rounds.out.contains(r#""drafter":"head""#), "{}{}", rounds.out, rounds.err);
    }
    let alone = run(&["generate", "--target", beside, "--raw", "--prompt", "Once"]);
    let why = "is a draft head: it drafts for the model it was made for";
    assert!(alone.code != 0 && alone.err.contains(why), "{}", alone.err);
}

/// A disk of its own needs a mount namespace.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_pauses_the_download_without_losing_bytes() {
    let shelf = Shelf::new(6_000_000);
    shelf.hub.set(Faults { bytes_per_second: Some(3_000_000), ..Faults::default() });
    let disk = shelf.folder.path().join("cache");
    fs::create_dir(&disk).unwrap();
    // The disk has room at the beginning, and none once the other file is written.
    let script = r#"
        mount -t tmpfs -o size=8m none "$0" || exit 99
        "$@" & pull=$!
        while ! ls "$0"/*/blobs/*.incomplete >/dev/null 2>&1; do sleep 0.05; done
        head -c 6m /dev/zero > "$0/other"
        wait $pull; echo "first $?"
        rm "$0/other"
        "$@"; echo "second $?"
        sha256sum "$0"/*/snapshots/*/*.gguf"#;
    let pull = shelf.program(&["models", "pull", NAME]);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(&disk);
    command.arg(pull.get_program()).args(pull.get_args());
    for (name, value) in pull.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let ended = match command.output() {
        Ok(ended) if ended.status.code() != Some(99) && !ended.stdout.is_empty() => ended,
        other => return eprintln!("skipped: no disk of its own to be had: {other:?}"),
    };
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(out.contains("first 1\n") && out.contains("second 0\n"), "{out}{err}");
    assert!(err.contains("the disk is full") && err.contains("the same command resumes it"), "{err}");
    assert!(out.contains(&sha256(&shelf.original())), "{out}");
    assert!(shelf.hub.sent() < 6_300_000 * 2, "{}", shelf.hub.sent());
}
