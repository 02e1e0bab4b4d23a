//! A small hub on this computer: a folder of repositories behind the part of the real hub's
//! protocol that downloads use, with faults on demand. It is not a web server: it serves one
//! request per connection.
//!
//! A repository is a folder `owner/name`; its revision is a checksum of its content. As on the real
//! hub, large files are redirected to a storage on another host, and only that supports ranges.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Entries on a page of a listing; few, so that listings have several.
const PAGE: usize = 3;
/// Bytes written at a time.
const CHUNK: usize = 64 * 1024;

/// Faults, from the time they are set.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Number of further storage responses that end early, and the bytes after which they end.
    pub cuts: u32,
    pub cut_after: u64,
    /// Speed limit of the storage.
    pub bytes_per_second: Option<u64>,
    /// Index of a byte of each file that the storage changes.
    pub wrong_byte: Option<u64>,
    /// The storage ignores ranges and starts at the first byte.
    pub ignore_range: bool,
    /// The storage sends more bytes than the file has.
    pub too_long: bool,
    /// Number of further connections that the storage accepts without responding.
    pub unavailable: u32,
}

/// A running hub. It runs until the process ends.
#[derive(Debug, Clone)]
pub struct Hub {
    /// Value of HF_ENDPOINT.
    pub url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    root: PathBuf,
    port: u16,
    faults: Faults,
    /// Repositories with their required token. An empty token means that the licence is not
    /// accepted yet.
    gated: HashMap<String, String>,
    refused_token: Option<String>,
    /// Facts of GGUF headers by repository, which searches report.
    headers: HashMap<String, Value>,
    /// SHA-256 by path, length and time of change.
    checksums: HashMap<(PathBuf, u64, Option<SystemTime>), String>,
    /// Bytes of files that the storage sent.
    sent: u64,
    requests: Vec<String>,
}

impl Hub {
    /// Serves `root/owner/name/...` on a free port.
    pub fn start(root: &Path) -> Self {
        Self::start_at(root, 0)
    }

    pub fn start_at(root: &Path, port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State {
            root: root.to_owned(),
            port,
            faults: Faults::default(),
            gated: HashMap::new(),
            refused_token: None,
            headers: HashMap::new(),
            checksums: HashMap::new(),
            sent: 0,
            requests: Vec::new(),
        };
        let hub = Self { url: format!("http://127.0.0.1:{port}"), state: Arc::new(Mutex::new(state)) };
        let serving = hub.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let hub = serving.clone();
                // A client that disconnects is not an error.
                thread::spawn(move || drop(hub.serve(connection)));
            }
        });
        hub
    }

    pub fn set(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Makes a repository require this token; with an empty one, every request is rejected.
    pub fn gate(&self, repository: &str, token: &str) {
        self.lock().gated.insert(repository.into(), token.into());
    }

    /// Rejects every request with this token.
    pub fn refuse_token(&self, token: &str) {
        self.lock().refused_token = Some(token.into());
    }

    /// Sets the facts of a GGUF header that searches report: `total` parameters and `architecture`.
    pub fn describe(&self, repository: &str, header: Value) {
        self.lock().headers.insert(repository.to_owned(), header);
    }

    /// Declares the checksum of a file without computing it.
    pub fn declare(&self, file: &Path, sha256: &str) {
        let metadata = file.metadata().unwrap();
        let key = (file.to_owned(), metadata.len(), metadata.modified().ok());
        self.lock().checksums.insert(key, sha256.to_owned());
    }

    /// Bytes of files sent so far.
    pub fn sent(&self) -> u64 {
        self.lock().sent
    }

    /// First line of every request so far.
    pub fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    /// Revision of a repository.
    pub fn revision(&self, repository: &str) -> String {
        let files = self.files(repository).unwrap();
        let mut hash = Sha256::new();
        for file in files {
            hash.update(format!("{} {}\n", file.path, file.checksum));
        }
        hex(&hash.finalize())[..40].to_owned()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn serve(&self, connection: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(connection.try_clone()?);
        let Some(request) = Request::read(&mut reader)? else {
            return Ok(());
        };
        self.lock().requests.push(format!("{} {}", request.method, request.target));
        self.answer(&request, connection)
    }

    fn answer(&self, request: &Request, mut connection: TcpStream) -> io::Result<()> {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let path = percent_decoded(path);
        let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
        if request.token.is_some() && request.token == self.lock().refused_token {
            return respond(&mut connection, 401, &[], br#"{"error":"Invalid credentials"}"#);
        }
        match parts[..] {
            ["storage", owner, name, ref file @ ..] => {
                self.storage(request, &format!("{owner}/{name}"), &file.join("/"), connection)
            }
            ["api", "models"] => {
                let found = self.search(query);
                respond(&mut connection, 200, &[], json!(found).to_string().as_bytes())
            }
            ["api", "models", owner, name, ref rest @ ..] => {
                let repository = format!("{owner}/{name}");
                let Some(files) = self.files(&repository) else {
                    return not_found(&mut connection, "RepoNotFound");
                };
                match rest[..] {
                    [] | ["revision", _] => {
                        let info = self.info(&repository, &files);
                        respond(&mut connection, 200, &[], info.to_string().as_bytes())
                    }
                    ["tree", revision] => {
                        if revision != "main" && revision != self.revision(&repository) {
                            return not_found(&mut connection, "RevisionNotFound");
                        }
                        self.tree(path.as_str(), query, &files, &mut connection)
                    }
                    _ => not_found(&mut connection, "EntryNotFound"),
                }
            }
            [owner, name, "resolve", revision, ref file @ ..] => {
                self.resolve(request, &format!("{owner}/{name}"), revision, &file.join("/"), connection)
            }
            _ => not_found(&mut connection, "RepoNotFound"),
        }
    }

    /// Repositories whose names contain the query, ignoring case; the longest name has the most
    /// downloads.
    fn search(&self, query: &str) -> Vec<Value> {
        let parameters: HashMap<_, _> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let words = percent_decoded(&parameters["search"].replace('+', " ")).to_lowercase();
        let root = self.lock().root.clone();
        let folders = |path: &Path| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
        };
        let names = folders(&root).into_iter().flat_map(|owner| folders(&owner));
        let mut names: Vec<_> = names
            .filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_str()?.replace('\\', "/")))
            .filter(|name| name.to_lowercase().contains(&words))
            .collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let limit = parameters["limit"].parse().unwrap();
        let found = names.into_iter().take(limit).map(|name| {
            let mut info = self.info(&name, &self.files(&name).unwrap());
            info["downloads"] = json!(name.len());
            if query.contains("expand%5B%5D=gguf") {
                info["gguf"] = json!(self.lock().headers.get(&name));
            }
            info
        });
        found.collect()
    }

    fn info(&self, repository: &str, files: &[Listed]) -> Value {
        let gated = self.lock().gated.contains_key(repository);
        let siblings: Vec<_> = files.iter().map(|file| json!({ "rfilename": file.path })).collect();
        json!({
            "_id": "0", "id": repository, "sha": self.revision(repository), "private": false,
            "gated": if gated { json!("manual") } else { json!(false) },
            "tags": ["gguf", "license:apache-2.0"], "siblings": siblings,
        })
    }

    fn tree(&self, path: &str, query: &str, files: &[Listed], to: &mut TcpStream) -> io::Result<()> {
        let cursor = query.split('&').find_map(|pair| pair.strip_prefix("cursor=")?.parse().ok());
        let start: usize = cursor.unwrap_or(0);
        let entries: Vec<_> = files.iter().skip(start).take(PAGE).map(Listed::entry).collect();
        let next = start + PAGE;
        let link = format!("<{}{path}?recursive=true&cursor={next}>; rel=\"next\"", self.url);
        let headers: &[_] = if next < files.len() { &[("Link", link)] } else { &[] };
        respond(to, 200, headers, json!(entries).to_string().as_bytes())
    }

    fn resolve(
        &self,
        request: &Request,
        repository: &str,
        revision: &str,
        path: &str,
        mut to: TcpStream,
    ) -> io::Result<()> {
        let Some(files) = self.files(repository) else {
            return not_found(&mut to, "RepoNotFound");
        };
        if let Some(token) = self.lock().gated.get(repository) {
            let code = [("X-Error-Code", "GatedRepo".to_owned())];
            match &request.token {
                None => return respond(&mut to, 401, &code, b"{\"error\":\"gated\"}"),
                Some(given) if given != token => {
                    return respond(&mut to, 403, &code, b"{\"error\":\"gated\"}");
                }
                Some(_) => {}
            }
        }
        if revision != "main" && revision != self.revision(repository) {
            return not_found(&mut to, "RevisionNotFound");
        }
        let Some(file) = files.iter().find(|file| file.path == path) else {
            return not_found(&mut to, "EntryNotFound");
        };
        let mut headers = vec![("X-Repo-Commit", self.revision(repository))];
        if is_large(&file.path) {
            // A host other than the requested one, as far as a client can tell.
            let storage = format!("http://localhost:{}/storage/{repository}/{path}", self.lock().port);
            headers.push(("X-Linked-Etag", format!("\"{}\"", file.checksum)));
            headers.push(("X-Linked-Size", file.bytes.to_string()));
            headers.push(("Location", storage));
            return respond(&mut to, 302, &headers, b"");
        }
        // Redirects by path and then again, as the real hub does.
        if !request.target.contains("sent-on") {
            headers.push(("Location", format!("{}?sent-on", request.target)));
            return respond(&mut to, 307, &headers, b"elsewhere");
        }
        headers.push(("ETag", format!("\"{}\"", &file.checksum[..40])));
        if request.method == "HEAD" {
            headers.push(("Content-Length", file.bytes.to_string()));
            return head(&mut to, 200, &headers);
        }
        respond(&mut to, 200, &headers, &std::fs::read(&file.on_disk)?)
    }

    /// Serves the bytes of large files, with ranges and faults.
    fn storage(&self, request: &Request, repository: &str, path: &str, mut to: TcpStream) -> io::Result<()> {
        if request.token.is_some() {
            return respond(&mut to, 400, &[], b"a token was sent to another host");
        }
        let Some(file) = self.files(repository).into_iter().flatten().find(|file| file.path == path) else {
            return not_found(&mut to, "EntryNotFound");
        };
        let faults = self.lock().take_fault();
        if faults.unavailable > 0 {
            return respond(&mut to, 503, &[], b"busy");
        }
        let start = request.range_start.filter(|_| !faults.ignore_range);
        if start.is_some_and(|start| start >= file.bytes) {
            return head(&mut to, 416, &[("Content-Range", format!("bytes */{}", file.bytes))]);
        }
        let from = start.unwrap_or(0);
        let end =
            request.range_end.filter(|_| start.is_some()).map_or(file.bytes, |last| file.bytes.min(last + 1));
        let extra = if faults.too_long { 1000 } else { 0 };
        let mut headers = vec![("ETag", "\"of-the-storage\"".to_owned())];
        headers.push(("Content-Length", (end - from + extra).to_string()));
        if start.is_some() {
            let range = format!("bytes {from}-{}/{}", end - 1, file.bytes);
            headers.push(("Content-Range", range));
        }
        head(&mut to, if start.is_some() { 206 } else { 200 }, &headers)?;
        if request.method == "GET" {
            self.send(&file, from..end, &faults, &mut to)?;
            to.write_all(&vec![0; extra as usize])?;
        }
        Ok(())
    }

    fn send(&self, file: &Listed, part: Range<u64>, faults: &Faults, to: &mut TcpStream) -> io::Result<()> {
        let from = part.start;
        let end = if faults.cuts > 0 { part.end.min(from + faults.cut_after) } else { part.end };
        let mut source = File::open(&file.on_disk)?;
        source.seek(SeekFrom::Start(from))?;
        let begun = Instant::now();
        let mut at = from;
        let mut buffer = vec![0; CHUNK];
        while at < end {
            let wanted = (end - at).min(CHUNK as u64) as usize;
            source.read_exact(&mut buffer[..wanted])?;
            if let Some(wrong) = faults.wrong_byte.filter(|wrong| (at..at + wanted as u64).contains(wrong)) {
                buffer[(wrong - at) as usize] ^= 1;
            }
            to.write_all(&buffer[..wanted])?;
            at += wanted as u64;
            self.lock().sent += wanted as u64;
            // Read again in every chunk, because the speed may change meanwhile.
            let speed = self.lock().faults.bytes_per_second;
            if let Some(speed) = speed {
                let due = Duration::from_secs_f64((at - from) as f64 / speed as f64);
                thread::sleep(due.saturating_sub(begun.elapsed()));
            }
        }
        Ok(())
    }

    /// All files of a repository in order of their paths.
    fn files(&self, repository: &str) -> Option<Vec<Listed>> {
        let root = self.lock().root.join(repository);
        let mut paths = Vec::new();
        collect(&root, &mut paths);
        paths.sort();
        let listed = paths.into_iter().map(|on_disk| {
            let path = on_disk.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            let metadata = on_disk.metadata().unwrap();
            let key = (on_disk.clone(), metadata.len(), metadata.modified().ok());
            let known = self.lock().checksums.get(&key).cloned();
            let checksum = known.unwrap_or_else(|| {
                let checksum = if is_large(&path) { sha256(&on_disk) } else { git_checksum(&on_disk) };
                self.lock().checksums.insert(key, checksum.clone());
                checksum
            });
            Listed { path, bytes: metadata.len(), checksum, on_disk }
        });
        root.is_dir().then(|| listed.collect())
    }
}

impl State {
    /// Faults of this response.
    fn take_fault(&mut self) -> Faults {
        let faults = self.faults.clone();
        self.faults.cuts = self.faults.cuts.saturating_sub(1);
        self.faults.unavailable = self.faults.unavailable.saturating_sub(1);
        faults
    }
}

/// A file of a repository.
struct Listed {
    path: String,
    bytes: u64,
    /// SHA-256 of a large file, git's hash of others.
    checksum: String,
    on_disk: PathBuf,
}

impl Listed {
    fn entry(&self) -> Value {
        let mut entry = json!({
            "type": "file", "oid": self.checksum[..40], "size": self.bytes, "path": self.path,
        });
        if is_large(&self.path) {
            entry["lfs"] = json!({ "oid": self.checksum, "size": self.bytes, "pointerSize": 135 });
        }
        entry
    }
}

struct Request {
    method: String,
    target: String,
    token: Option<String>,
    range_start: Option<u64>,
    /// The last byte, if one is named.
    range_end: Option<u64>,
}

impl Request {
    fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let mut request = Self {
            method: method.into(),
            target: target.into(),
            token: None,
            range_start: None,
            range_end: None,
        };
        loop {
            let mut header = String::new();
            from.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(": ") else {
                return Ok(Some(request));
            };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => request.token = value.strip_prefix("Bearer ").map(str::to_owned),
                "range" => {
                    let range = value.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
                    request.range_start = range.and_then(|(start, _)| start.parse().ok());
                    request.range_end = range.and_then(|(_, end)| end.parse().ok());
                }
                _ => {}
            }
        }
    }
}

fn not_found(to: &mut TcpStream, code: &str) -> io::Result<()> {
    respond(to, 404, &[("X-Error-Code", code.to_owned())], b"{\"error\":\"not found\"}")
}

fn respond(to: &mut TcpStream, status: u16, headers: &[(&str, String)], body: &[u8]) -> io::Result<()> {
    let mut headers = headers.to_vec();
    headers.push(("Content-Length", body.len().to_string()));
    head(to, status, &headers)?;
    // After a HEAD request nobody reads it, which is harmless.
    to.write_all(body)
}

fn head(to: &mut TcpStream, status: u16, headers: &[(&str, String)]) -> io::Result<()> {
    let mut text = format!("HTTP/1.1 {status} -\r\nConnection: close\r\n");
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    to.write_all(format!("{text}\r\n").as_bytes())
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.filter(|_| first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, paths) } else { paths.push(path) }
    }
}

/// Returns whether the real hub would treat the file as large, by `.gitattributes`.
fn is_large(path: &str) -> bool {
    path.ends_with(".gguf") || path.ends_with(".safetensors")
}

/// Git's hash of a file's content.
pub fn git_checksum(path: &Path) -> String {
    let content = std::fs::read(path).unwrap();
    hex(&Sha1::new_with_prefix(format!("blob {}\0", content.len())).chain_update(content).finalize())
}

/// SHA-256 of a file in lower-case hex.
pub fn sha256(path: &Path) -> String {
    let mut hash = Sha256::new();
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).unwrap() {
            0 => return hex(&hash.finalize()),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
