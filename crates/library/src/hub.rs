//! The hub: the contents of a repository, with a token if there is one. `listing.rs` sends the
//! requests.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hf_hub::repository::{ModelInfo, RepoTreeEntry};
use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::catalogue::quantisation_of;
use crate::listing::{LIMITS, Limits, Listing, wait, within};
use crate::model_path::{Part, belongs_to_folder_model, has_extension, is_vision_file};
use crate::nearest::nearest;
use crate::token::{self, Token};
use crate::{CatalogueFamily, Error, Folders, Result, TokenSource, cache, catalogue};

/// Time without any data after which a connection counts as lost.
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Address of the public hub.
const PUBLIC: &str = "https://huggingface.co";

/// Most files named in an error message, and the longest name in bytes.
const MAX_LISTED: usize = 10;
const MAX_LISTED_BYTES: usize = 80;

/// A GGUF file of a repository; for a split model the first part, with the size of all parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Path in the repository.
    pub path: String,
    /// Size of all parts together.
    pub bytes: u64,
}

/// A repository of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// `owner/name`
    pub id: String,
    /// Commit of `main`.
    pub revision: String,
    pub licence: Option<String>,
    pub gated: bool,
    /// GGUF files, ordered by path.
    pub files: Vec<RemoteFile>,
    /// Bytes of the whole folder model, if the repository is one: `config.json` and safetensors.
    pub safetensors: Option<u64>,
    /// Vision file (mmproj), which is downloaded with each GGUF model; `None` without one.
    pub vision: Option<RemoteFile>,
}

/// Client of the hub. Clones share the address and the token. Connects only when a request is made.
#[derive(Debug, Clone)]
pub struct Hub {
    endpoint: Arc<Mutex<String>>,
    cache: PathBuf,
    /// Read on first use, because a locked keyring prompts the user.
    token: Arc<Mutex<Option<Token>>>,
}

impl Hub {
    /// Uses the hub that HF_ENDPOINT names, or else the public one.
    pub fn new(_folders: &Folders) -> Result<Self> {
        let endpoint = Arc::new(Mutex::new(usual_endpoint()));
        Ok(Self { endpoint, cache: cache::cache_folder(), token: Arc::default() })
    }

    /// Uses this hub, cache and token, ignoring the environment.
    pub fn at(endpoint: &str, cache: impl Into<PathBuf>, token: Option<&str>) -> Self {
        let source = if token.is_some() { TokenSource::Environment } else { TokenSource::None };
        let token = Token { source, value: token.map(str::to_owned) };
        let endpoint = Arc::new(Mutex::new(endpoint.to_owned()));
        Self { endpoint, cache: cache.into(), token: Arc::new(Mutex::new(Some(token))) }
    }

    /// Uses the hub at `address` for later requests; an empty one is that of [`Self::new`].
    ///
    /// # Errors
    /// `Error::Address` if it is no web address.
    pub fn set_endpoint(&self, address: &str) -> Result<()> {
        let endpoint = if address.is_empty() { usual_endpoint() } else { checked_address(address)? };
        *self.endpoint.lock().unwrap_or_else(PoisonError::into_inner) = endpoint;
        Ok(())
    }

    /// Returns the models in `owner/name`.
    ///
    /// # Errors
    /// `Error::NoRepository`, with the nearest name in the catalogue; `Error::TokenRefused`;
    /// `Error::Unreachable`; `Error::Hub`.
    pub fn repository(&self, name: &str) -> Result<Repository> {
        self.repository_unless(name, &|| false)
    }

    /// Returns the models in `owner/name`, unless `stop` returns `true` meanwhile.
    ///
    /// # Errors
    /// Same as [`Self::repository`]; `Error::Stopped`.
    pub fn repository_unless(&self, name: &str, stop: &(dyn Fn() -> bool + Sync)) -> Result<Repository> {
        Ok(wait(stop, self.contents(name))?.repository)
    }

    /// Returns the models and every single file of `owner/name`.
    pub(crate) async fn contents(&self, name: &str) -> Result<Contents> {
        self.contents_within(name, LIMITS).await
    }

    pub(crate) async fn contents_within(&self, name: &str, limits: Limits) -> Result<Contents> {
        let name = name.trim().trim_end_matches('/');
        if !is_repository(name) {
            return Err(Error::RepositoryName(name.to_owned()));
        }
        let listed = async {
            let mut listing = Listing::new(self, name, limits)?;
            let info = listing.info(name).await?;
            // The revision becomes the name of a folder.
            let plain = |sha: &String| !sha.is_empty() && sha.chars().all(|c| c.is_ascii_alphanumeric());
            let revision = info.sha.clone().filter(plain);
            let revision = revision.ok_or_else(|| hub_error("a repository without a revision"))?;
            let entries = listing.tree(name, &revision).await?;
            Contents::new(name, revision, &info, entries)
        };
        within(self, limits.time, listed).await
    }

    /// Returns the origin of the token.
    pub fn token_source(&self) -> TokenSource {
        self.token().source
    }

    /// Stores a token in the system keyring, or removes it with `None`.
    pub fn set_token(&self, token: Option<&str>) -> Result<()> {
        token::keep(token)?;
        *self.locked_token() = None;
        Ok(())
    }

    pub(crate) fn token(&self) -> Token {
        self.locked_token().get_or_insert_with(Token::find).clone()
    }

    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    pub(crate) fn endpoint(&self) -> String {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the header with the token; `None` without one, or if it would be sent to another
    /// computer without encryption.
    pub(crate) fn permission(&self) -> Option<HeaderValue> {
        let private = Url::parse(&self.endpoint()).is_ok_and(|url| {
            let host = url.host_str().unwrap_or_default();
            let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
            let loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
            url.scheme() == "https" || loopback
        });
        let token = self.token().value.filter(|_| private)?;
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn locked_token(&self) -> MutexGuard<'_, Option<Token>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn unreachable(&self, error: impl std::error::Error) -> Error {
        // The last cause says what happened; the ones before it say what was tried.
        let mut reason: &dyn std::error::Error = &error;
        while let Some(cause) = reason.source() {
            reason = cause;
        }
        Error::Unreachable { endpoint: self.endpoint(), reason: reason.to_string() }
    }

    /// Returns the error that a status means. The hub does not reveal whether a repository exists
    /// that the token may not see.
    pub(crate) fn refused(&self, status: u16, repository: &str) -> Error {
        let token = self.token();
        match (status, token.source) {
            (404, _) | (401, TokenSource::None) => self.unknown(repository, token.source),
            (401, source) => Error::TokenRefused(source),
            _ => self.gated(repository),
        }
    }

    pub(crate) fn gated(&self, repository: &str) -> Error {
        let nobody = self.token().source == TokenSource::None;
        Error::Gated {
            repository: repository.into(),
            url: format!("{}/{repository}", self.endpoint()),
            and_token: if nobody {
                " and set a token"
            } else {
                " with the account that your token belongs to"
            },
        }
    }

    fn unknown(&self, repository: &str, source: TokenSource) -> Error {
        let known = catalogue().iter().flat_map(CatalogueFamily::models);
        let hint = match nearest(repository, known.map(|(_, model)| model.repository)) {
            Some(near) if near != repository => format!("Did you mean '{near}'?"),
            _ => "Check the name; private repositories need a token.".into(),
        };
        Error::NoRepository { name: repository.into(), with_token: source != TokenSource::None, hint }
    }
}

/// Creates a client that notices a silent server.
pub(crate) fn http_client(redirects: reqwest::redirect::Policy) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .user_agent(concat!("foretoken/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(SILENCE_TIMEOUT)
        .read_timeout(SILENCE_TIMEOUT)
        .redirect(redirects)
        .build()
}

/// Returns the address of the hub without a setting.
fn usual_endpoint() -> String {
    let named = std::env::var("HF_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
    let endpoint = named.unwrap_or_else(|| PUBLIC.into());
    endpoint.trim_end_matches('/').to_owned()
}

/// Returns a person's address of a hub without its last slash.
fn checked_address(address: &str) -> Result<String> {
    let wrong = || Error::Address(address.to_owned());
    let url = Url::parse(address).map_err(|_| wrong())?;
    let usable = matches!(url.scheme(), "https" | "http")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if usable { Ok(address.trim_end_matches('/').to_owned()) } else { Err(wrong()) }
}

/// Returns whether a path is that of a GGUF file with a model, and not of a vision file.
pub(crate) fn names_a_model(path: &str) -> bool {
    has_extension(Path::new(path), "gguf") && !names_a_vision_file(path)
}

fn names_a_vision_file(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(is_vision_file)
}

pub(crate) fn hub_error(found: &str) -> Error {
    Error::Hub { found: found.to_owned() }
}

/// Returns whether a name has two parts of letters, digits and `-_.`, as the hub allows.
pub(crate) fn is_repository(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let well_formed = |part: &str| {
        !part.is_empty() && part.chars().all(allowed) && !part.starts_with('.') && !part.contains("--")
    };
    name.split('/').count() == 2 && name.split('/').all(well_formed)
}

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

/// A repository with all its files.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) repository: Repository,
    entries: Vec<Entry>,
    /// Paths refused because of their names.
    refused: Vec<String>,
}

impl Contents {
    pub(crate) fn new(
        id: &str,
        revision: String,
        info: &ModelInfo,
        tree: Vec<RepoTreeEntry>,
    ) -> Result<Self> {
        let entries = tree.into_iter().filter_map(|entry| match entry {
            RepoTreeEntry::File { path, size, .. } => Some(Entry { path, bytes: size }),
            _ => None,
        });
        let (mut entries, refused): (Vec<Entry>, Vec<Entry>) =
            entries.partition(|entry| is_safe(&entry.path));
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let mut contents = Self {
            repository: Repository {
                id: id.into(),
                revision,
                licence: licence(info),
                gated: is_gated(info),
                files: Vec::new(),
                safetensors: None,
                vision: None,
            },
            entries,
            refused: refused.into_iter().map(|entry| entry.path).collect(),
        };
        contents.repository.files = contents.models()?;
        contents.repository.vision =
            contents.vision().map(|Entry { path, bytes }| RemoteFile { path: path.clone(), bytes: *bytes });
        contents.repository.safetensors = contents.folder_model().map(|files| sum(&files)).transpose()?;
        Ok(contents)
    }

    /// Returns the GGUF files that are models: no later parts, no incomplete splits, no image
    /// projectors.
    fn models(&self) -> Result<Vec<RemoteFile>> {
        let models = self.entries.iter().filter(|entry| names_a_model(&entry.path));
        models
            .filter_map(|entry| Some((entry, self.parts(entry)?)))
            .map(|(entry, parts)| Ok(RemoteFile { path: entry.path.clone(), bytes: sum(&parts)? }))
            .collect()
    }

    /// Returns all parts of the model that begins with `first`; `None` if it is not a first part or
    /// some are missing.
    fn parts(&self, first: &Entry) -> Option<Vec<Entry>> {
        let path = Path::new(&first.path);
        match Part::of(path) {
            None => Some(vec![first.clone()]),
            Some(part) if part.number == 1 => {
                (1..=part.count).map(|number| self.entry(part.sibling(path, number).to_str()?)).collect()
            }
            Some(_) => None,
        }
    }

    /// Returns the vision file of the models: the one in half precision, else the smallest.
    fn vision(&self) -> Option<&Entry> {
        let files = self.entries.iter().filter(|entry| names_a_vision_file(&entry.path));
        files.min_by_key(|entry| (quantisation_of(&entry.path).as_deref() != Some("F16"), entry.bytes))
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        self.entries.iter().find(|entry| entry.path == path.replace('\\', "/")).cloned()
    }

    fn folder_model(&self) -> Option<Vec<Entry>> {
        let files: Vec<_> =
            self.entries.iter().filter(|entry| belongs_to_folder_model(&entry.path)).cloned().collect();
        let has_weights = files.iter().any(|entry| has_extension(Path::new(&entry.path), "safetensors"));
        (has_weights && files.iter().any(|entry| entry.path == "config.json")).then_some(files)
    }

    /// Resolves `file`, which may lack `.gguf`, and returns its full name with the files to
    /// download, the vision file last. Without a name it is the folder model, or else the only GGUF
    /// file.
    pub(crate) fn wanted(&self, file: Option<&str>) -> Result<(Option<String>, Vec<Entry>)> {
        let models = &self.repository.files;
        self.refuse(file)?;
        if models.is_empty() && self.repository.safetensors.is_none() {
            return Err(Error::NoModels { repository: self.repository.id.clone() });
        }
        let chosen = match file {
            Some(file) => self.named(file)?,
            None => match (self.folder_model(), &models[..]) {
                (Some(files), _) => return Ok((None, files)),
                (None, [only]) => only,
                (None, several) => {
                    let choice = |model: &RemoteFile| format!("{}:{}", self.repository.id, model.path);
                    let choices = several.iter().map(choice).collect();
                    return Err(Error::Ambiguous { name: self.repository.id.clone(), choices });
                }
            },
        };
        let parts = self.entry(&chosen.path).and_then(|first| self.parts(&first)).unwrap_or_default();
        Ok((Some(chosen.path.clone()), parts.into_iter().chain(self.vision().cloned()).collect()))
    }

    /// # Errors
    /// `Error::FileName` if a wanted file has an unsafe name.
    fn refuse(&self, file: Option<&str>) -> Result<()> {
        let wanted = |path: &&String| match file {
            Some(file) => *path == file,
            None => belongs_to_folder_model(path) || has_extension(Path::new(path), "gguf"),
        };
        match self.refused.iter().find(wanted) {
            Some(path) => {
                // Escaped as in source code, so control characters are shown rather than executed.
                let file = path.chars().take(LONGEST_NAME).flat_map(escaped).collect();
                Err(Error::FileName { repository: self.repository.id.clone(), file })
            }
            None => Ok(()),
        }
    }

    fn named(&self, file: &str) -> Result<&RemoteFile> {
        let models = &self.repository.files;
        let same = |model: &&RemoteFile| {
            model.path.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest == ".gguf")
        };
        models.iter().find(same).ok_or_else(|| {
            let names = models.iter().map(|model| model.path.as_str());
            let short = names.clone().map(|name| name.trim_end_matches(".gguf"));
            let hint = match nearest(file, names.clone().chain(short)) {
                Some(near) => format!("Did you mean '{near}'?"),
                None => format!("It contains: {}.", listed(names)),
            };
            Error::NoFile { repository: self.repository.id.clone(), file: file.into(), hint }
        })
    }
}

/// # Errors
/// `Error::Hub` if the sum overflows.
fn sum(files: &[Entry]) -> Result<u64> {
    total(files.iter().map(|file| file.bytes)).ok_or_else(|| hub_error("files larger than any disk"))
}

/// Joins names for an error message, at most ten.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let short: Vec<&str> =
        names.iter().filter(|name| name.len() <= MAX_LISTED_BYTES).take(MAX_LISTED).copied().collect();
    match names.len() - short.len() {
        0 => short.join(", "),
        more => format!("{} and {more} more", short.join(", ")),
    }
}

/// Returns the sum; `None` if it overflows.
pub(crate) fn total(mut bytes: impl Iterator<Item = u64>) -> Option<u64> {
    bytes.try_fold(0u64, u64::checked_add)
}

/// Longest name and path in bytes that every file system accepts.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 1000;

/// Returns whether a path stays below its folder on every system and contains nothing that affects
/// a terminal. The hub chooses the path, a file is written there, and people read it.
fn is_safe(path: &str) -> bool {
    let harmful = |c: char| matches!(c, '\\' | ':') || c.is_control() || is_invisible(c);
    let plain = |part: &str| {
        // This also refuses "", "." and "..".
        !part.is_empty()
            && !part.ends_with(['.', ' '])
            && part.len() <= LONGEST_NAME
            && !part.contains(harmful)
            && !is_device(part)
    };
    path.len() <= LONGEST_PATH && path.split('/').all(plain)
}

/// Returns whether a character changes the direction of text or has no width, so that a name could
/// imitate another.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}

/// Returns whether Windows treats a name as a device, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |device: &str| {
        let mut number = stem.strip_prefix(device).unwrap_or_default().chars();
        let digit = |c: char| c.is_ascii_digit() || matches!(c, '¹' | '²' | '³');
        number.next().is_some_and(digit) && number.next().is_none()
    };
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&stem.as_str())
        || numbered("COM")
        || numbered("LPT")
}

fn escaped(c: char) -> impl Iterator<Item = char> {
    let (plain, escape) =
        if is_invisible(c) { (None, Some(c.escape_unicode())) } else { (Some(c.escape_debug()), None) };
    plain.into_iter().flatten().chain(escape.into_iter().flatten())
}

pub(crate) fn is_gated(info: &ModelInfo) -> bool {
    // The hub sends `false`, "auto" or "manual".
    info.gated.as_ref().is_some_and(|gated| gated.is_string() || gated == true)
}

pub(crate) fn licence(info: &ModelInfo) -> Option<String> {
    info.tags.iter().flatten().find_map(|tag| tag.strip_prefix("license:")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_safe_path_stays_below_its_folder_and_has_no_control_characters() {
        for path in ["m.gguf", "Q8_0/m.gguf", "größe 7/m..gguf"] {
            assert!(is_safe(path), "{path:?}");
        }
        for path in ["", "/m", "a//m", "../m", "a/./m", "a\\m", "C:m", "\0", "\u{1b}[2Jm", "a\nm", "a\u{9b}m"]
        {
            assert!(!is_safe(path), "{path:?}");
        }
    }

    #[test]
    fn names_of_devices_and_deceptive_or_too_long_names_are_refused() {
        for device in [
            "CON",
            "nul",
            "aux.gguf",
            "COM1.json",
            "lpt9",
            "COM¹",
            "CON .txt",
            "conin$",
            "conout$.gguf",
            "a/PRN/m.gguf",
        ] {
            assert!(!is_safe(device), "{device}");
        }
        for odd in ["m.gguf.", "m.gguf ", "a./m", "a /m", "..."] {
            assert!(!is_safe(odd), "{odd:?}");
        }
        for hidden in
            ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}', '\u{200e}', '\u{200f}', '\u{61c}', '\u{200b}']
                .into_iter()
                .chain([
                    '\u{ad}', '\u{2028}', '\u{2029}', '\u{2060}', '\u{2065}', '\u{206a}', '\u{206f}',
                    '\u{feff}',
                ])
        {
            assert!(!is_safe(&format!("m{hidden}fugg.exe")), "{hidden:?}");
        }
        assert!(!is_safe(&"m".repeat(256)) && !is_safe(&["m"; 600].join("/")));
        for plain in
            ["console.gguf", "COM10.gguf", "nullable.json", "aux/m".trim_start_matches("aux/"), "LPT.gguf"]
        {
            assert!(is_safe(plain), "{plain}");
        }
    }

    fn contents(files: &[(&str, u64)]) -> Result<Contents> {
        let file = |&(path, size): &(&str, u64)| serde_json::json!({ "type": "file", "path": path, "size": size, "oid": "0" });
        let tree = serde_json::Value::from(files.iter().map(file).collect::<Vec<_>>());
        let info = serde_json::json!({ "id": "owner/name" });
        Contents::new(
            "owner/name",
            "abc".to_owned(),
            &serde_json::from_value(info).unwrap(),
            serde_json::from_value(tree).unwrap(),
        )
    }

    #[test]
    fn a_harmful_file_name_is_refused_with_a_message_and_other_files_are_offered() {
        let repository = contents(&[("NUL.gguf", 3), ("m.gguf", 4), ("m\u{202e}x.gguf", 5)]).unwrap();
        let offered: Vec<_> = repository.repository.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(offered, ["m.gguf"]);
        repository.wanted(Some("m.gguf")).unwrap();
        let refused = repository.wanted(Some("m\u{202e}x.gguf")).unwrap_err().to_string();
        assert!(refused.contains(r"'m\u{202e}x.gguf'") && !refused.contains('\u{202e}'), "{refused}");
        let only = contents(&[("COM1.json", 3), ("config.json", 1), ("m.safetensors", 4)]).unwrap();
        assert!(matches!(only.wanted(None), Err(Error::FileName { .. })));
    }

    #[test]
    fn a_model_is_downloaded_with_the_vision_file_of_its_repository() {
        let files = [
            ("A.mmproj-Q8_0.gguf", 2),
            ("Q4/m-00001-of-00002.gguf", 3),
            ("Q4/m-00002-of-00002.gguf", 3),
            ("m.gguf", 4),
            ("mmproj-BF16.gguf", 1),
            ("mmproj-F16.gguf", 5),
        ];
        let found = contents(&files).unwrap();
        let models: Vec<_> = found.repository.files.iter().map(|file| &*file.path).collect();
        assert_eq!(models, ["Q4/m-00001-of-00002.gguf", "m.gguf"]);
        let vision = RemoteFile { path: "mmproj-F16.gguf".to_owned(), bytes: 5 };
        assert_eq!(found.repository.vision.as_ref(), Some(&vision));
        let wanted = |file| found.wanted(Some(file)).unwrap().1;
        let paths: Vec<_> = wanted("m").into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["m.gguf", "mmproj-F16.gguf"]);
        assert_eq!(wanted("Q4/m-00001-of-00002.gguf").len(), 3);
        let smallest = contents(&files[..5]).unwrap().repository.vision.unwrap();
        assert_eq!(smallest.path, "mmproj-BF16.gguf");
        assert_eq!(contents(&[("m.gguf", 4)]).unwrap().repository.vision, None);
    }

    #[test]
    fn sizes_that_overflow_are_refused_with_a_message() {
        let parts = [("m-00001-of-00002.gguf", u64::MAX), ("m-00002-of-00002.gguf", 1)];
        assert!(matches!(contents(&parts), Err(Error::Hub { .. })));
        let folder = [("config.json", u64::MAX), ("m.safetensors", u64::MAX)];
        assert!(matches!(contents(&folder), Err(Error::Hub { .. })));
    }

    #[test]
    fn only_plain_web_addresses_are_taken_for_a_hub() {
        let hub = Hub::at("https://huggingface.co", std::env::temp_dir(), Some("hf_secret"));
        for wrong in
            [" ", "mirror", "ftp://a/b", "http://", "https://me:key@a", "https://a/?b", "https://a#b"]
        {
            assert!(matches!(hub.set_endpoint(wrong), Err(Error::Address(_))), "{wrong:?}");
        }
        let same = hub.clone();
        hub.set_endpoint("https://mirror.example/hub/").unwrap();
        assert_eq!(same.endpoint(), "https://mirror.example/hub", "clones share the address");
    }

    #[test]
    fn the_token_is_not_sent_unencrypted_to_another_computer() {
        let sent =
            |endpoint| Hub::at(endpoint, std::env::temp_dir(), Some("hf_secret")).permission().is_some();
        for private in
            ["https://huggingface.co", "http://127.0.0.1:8080", "http://[::1]/hub", "http://localhost"]
        {
            assert!(sent(private), "{private}");
        }
        for open in ["http://huggingface.co", "http://192.168.1.5:8090", "http://localhost.example", "mirror"]
        {
            assert!(!sent(open), "{open}");
        }
    }

    #[test]
    fn a_repository_name_has_two_plain_parts() {
        assert!(is_repository("owner/Name-1.5_GGUF"));
        for name in [
            "owner",
            "a/b/c",
            "/name",
            "owner/",
            "../name",
            "owner/..",
            "owner/.name",
            "a--b/c",
            "a/b c",
            "a\\b/c",
        ] {
            assert!(!is_repository(name), "{name}");
        }
    }

    /// A hub that sends `info` about a repository, and an empty list of files.
    fn hub_with(info: &'static str) -> Hub {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for (number, mut call) in listener.incoming().flatten().enumerate() {
                let _ = call.read(&mut [0; 8192]);
                let body = if number == 0 { info } else { "[]" };
                let length = body.len();
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}");
                let _ = write!(call, "{head}\r\nConnection: close\r\n\r\n{body}");
            }
        });
        Hub::at(&endpoint, std::env::temp_dir(), None)
    }

    #[test]
    fn a_revision_that_cannot_name_a_folder_is_refused() {
        let plain = hub_with(r#"{"id": "owner/name", "sha": "abc123"}"#);
        assert_eq!(plain.repository("owner/name").unwrap().revision, "abc123");
        for info in [r#"{"id": "a/b", "sha": "../../up"}"#, r#"{"id": "a/b", "sha": ""}"#, r#"{"id": "a/b"}"#]
        {
            let error = hub_with(info).repository("owner/name").unwrap_err();
            assert!(
                matches!(&error, Error::Hub { found } if found.contains("without a revision")),
                "{info}: {error}"
            );
        }
    }
}
