//! Servers in `mcp.json`, in the form that LM Studio, Claude Desktop and Cursor read and write.
//! Fields that this program does not know stay as they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Field of the document that holds the servers.
const SERVERS: &str = "mcpServers";

/// Largest file in bytes, and most servers.
const LARGEST: u64 = 1 << 20;
const MOST: usize = 64;

/// A document of servers.
#[derive(Debug, Clone, PartialEq)]
pub struct McpFile(Map<String, Value>);

/// A server, and what its entry means or why it means nothing.
pub type Listed = (String, Result<ServerConfig>);

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    pub transport: Transport,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Child process that speaks on its standard input and output.
    Process { command: String, args: Vec<String>, env: BTreeMap<String, String>, folder: Option<PathBuf> },
    /// Server that speaks streamable HTTP.
    Http { url: String, headers: BTreeMap<String, String> },
}

impl Default for McpFile {
    fn default() -> Self {
        Self(Map::from_iter([(SERVERS.to_owned(), json!({}))]))
    }
}

impl McpFile {
    /// Reads a file; a missing one has no servers.
    ///
    /// # Errors
    /// Returns `Error::File` if it cannot be read or is no document of servers.
    pub fn read(path: &Path) -> Result<Self> {
        let size = match fs::metadata(path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Error::File(error.to_string())),
        };
        if size > LARGEST {
            return Err(Error::File(format!("it has {size} bytes, and at most {LARGEST} are read")));
        }
        Self::parse(&fs::read_to_string(path).map_err(|error| Error::File(error.to_string()))?)
    }

    /// # Errors
    /// Returns `Error::File` if the text is no document of servers.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim_start_matches('\u{feff}');
        let mut document: Map<String, Value> = match serde_json::from_str(text) {
            Ok(Value::Object(document)) => document,
            Ok(_) => return Err(Error::File("expected a JSON object".to_owned())),
            Err(error) => return Err(Error::File(error.to_string())),
        };
        // VS Code calls them so.
        if let Some(servers) = document.remove("servers") {
            document.entry(SERVERS).or_insert(servers);
        }
        match document.get(SERVERS) {
            Some(Value::Object(servers)) if servers.len() <= MOST => Ok(Self(document)),
            Some(Value::Object(servers)) => {
                Err(Error::File(format!("it has {} servers, and at most {MOST} are read", servers.len())))
            }
            _ => Err(Error::File(format!("expected an object \"{SERVERS}\""))),
        }
    }

    /// Writes the document to a file that only its owner can read: it may contain keys.
    ///
    /// # Errors
    /// Returns `Error::File`.
    pub fn write(&self, path: &Path) -> Result<()> {
        let failed = |error: io::Error| Error::File(error.to_string());
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        io::Write::write_all(&mut file, self.text().as_bytes()).map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Returns the document as text for people.
    pub fn text(&self) -> String {
        format!("{:#}\n", Value::Object(self.0.clone()))
    }

    /// Returns the servers in the document's order.
    pub fn servers(&self) -> Vec<Listed> {
        let entries = self.0.get(SERVERS).and_then(Value::as_object).into_iter().flatten();
        entries.map(|(name, entry)| (name.clone(), ServerConfig::of(entry))).collect()
    }

    /// Adds the servers of another document whose names are free; returns their names.
    pub fn add(&mut self, other: &Self) -> Vec<String> {
        let Some(Value::Object(servers)) = self.0.get_mut(SERVERS) else { return Vec::new() };
        let mut added = Vec::new();
        for (name, entry) in other.0.get(SERVERS).and_then(Value::as_object).into_iter().flatten() {
            if servers.len() < MOST && !servers.contains_key(name) {
                servers.insert(name.clone(), entry.clone());
                added.push(name.clone());
            }
        }
        added
    }

    /// Removes a server; returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let servers = self.0.get_mut(SERVERS).and_then(Value::as_object_mut);
        servers.is_some_and(|servers| servers.shift_remove(name).is_some())
    }
}

impl ServerConfig {
    fn of(entry: &Value) -> Result<Self> {
        let words = |field: &str| entry.get(field).and_then(Value::as_str).map(filled_in);
        let table = |field: &str| -> BTreeMap<String, String> {
            let entries = entry.get(field).and_then(Value::as_object).into_iter().flatten();
            entries.filter_map(|(name, value)| Some((name.clone(), filled_in(&scalar(value)?)))).collect()
        };
        let transport = match (words("command"), words("url").or_else(|| words("serverUrl"))) {
            (Some(command), _) if !command.trim().is_empty() => {
                let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
                let args = args.filter_map(scalar).map(|arg| filled_in(&arg)).collect();
                let folder = words("cwd").map(PathBuf::from);
                Transport::Process { command, args, env: table("env"), folder }
            }
            (_, Some(url)) if entry.get("type").and_then(Value::as_str) != Some("sse") => {
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    return Err(Error::File(format!("expected http:// or https://, found {url}")));
                }
                Transport::Http { url, headers: table("headers") }
            }
            (_, Some(_)) => {
                let reason = "the transport sse is out of date. Use the server's address for streamable HTTP";
                return Err(Error::File(reason.to_owned()));
            }
            _ => return Err(Error::File("expected a \"command\" or a \"url\"".to_owned())),
        };
        Ok(Self { transport })
    }

    /// Returns the command line or the address, as a person sees it before a server is switched on.
    pub fn line(&self) -> String {
        match &self.transport {
            Transport::Process { command, args, .. } => {
                let words = std::iter::once(command).chain(args);
                words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
            Transport::Http { url, .. } => url.clone(),
        }
    }

    /// Returns the names of environment variables or headers that are sent, without their values.
    pub fn variables(&self) -> Vec<String> {
        match &self.transport {
            Transport::Process { env: table, .. } | Transport::Http { headers: table, .. } => {
                table.keys().cloned().collect()
            }
        }
    }

    /// Returns the SHA-256 of everything that a person switched on.
    pub fn digest(&self) -> String {
        let hash = Sha256::digest(format!("{:?}", self.transport));
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns a number, a switch or a text as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Replaces `${env:NAME}` by the variable of this program's environment.
fn filled_in(text: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, (name, after))) =
        rest.split_once("${env:").and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        filled.push_str(before);
        filled.push_str(&env::var(name).unwrap_or_default());
        rest = after;
    }
    filled + rest
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| !letter.is_whitespace() && letter != '"';
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("{word:?}") }
}

/// Returns the files of other programs on this computer, with the programs' names.
pub fn other_files() -> Vec<(&'static str, PathBuf)> {
    let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE")).map(PathBuf::from);
    let Some(home) = home else { return Vec::new() };
    let settings = match env::consts::OS {
        "macos" => home.join("Library/Application Support"),
        "windows" => env::var_os("APPDATA").map_or_else(|| home.join("AppData/Roaming"), PathBuf::from),
        _ => env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from),
    };
    let files = [
        ("LM Studio", home.join(".lmstudio/mcp.json")),
        ("Claude Desktop", settings.join("Claude/claude_desktop_config.json")),
        ("Cursor", home.join(".cursor/mcp.json")),
    ];
    files.into_iter().filter(|(_, path)| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(entry: &Value) -> Result<ServerConfig> {
        let file = McpFile::parse(&json!({ "mcpServers": { "a": entry } }).to_string()).unwrap();
        file.servers().remove(0).1
    }

    #[test]
    fn entries_of_other_programs_are_read() {
        let path = env::var("PATH").unwrap();
        let found = only(&json!({
            "command": "npx", "args": ["-y", 7, "a b"], "env": { "KEY": "${env:PATH}", "N": 1 },
            "disabled": true, "cwd": "/tmp",
        }));
        let config = found.unwrap();
        assert_eq!(config.line(), "npx -y 7 \"a b\"");
        assert_eq!(config.variables(), ["KEY", "N"]);
        let Transport::Process { env, folder, .. } = &config.transport else { panic!("{config:?}") };
        assert_eq!((&env["KEY"], folder.as_deref()), (&path, Some(Path::new("/tmp"))));
        let remote = only(&json!({ "type": "http", "serverUrl": "https://a/mcp", "headers": { "X": "y" } }));
        let headers = BTreeMap::from([("X".to_owned(), "y".to_owned())]);
        assert_eq!(remote.unwrap().transport, Transport::Http { url: "https://a/mcp".into(), headers });
    }

    #[test]
    fn entries_without_a_server_say_what_was_expected() {
        for (entry, expected) in [
            (json!({}), "\"command\" or a \"url\""),
            (json!([]), "\"command\" or a \"url\""),
            (json!({ "command": " " }), "\"command\" or a \"url\""),
            (json!({ "url": "ftp://a" }), "https://"),
            (json!({ "url": "http://a/sse", "type": "sse" }), "out of date"),
        ] {
            let error = only(&entry).unwrap_err().to_string();
            assert!(error.contains(expected), "{entry}: {error}");
        }
        for text in ["", "[]", "{}", "{\"mcpServers\": 1}", "no"] {
            assert!(McpFile::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_changed_command_has_another_digest_and_unknown_fields_stay() {
        let text = r#"{"theme": 1, "mcpServers": {"b": {"command": "x", "args": ["1"], "note": "mine"}}}"#;
        let mut file = McpFile::parse(text).unwrap();
        let other =
            McpFile::parse(r#"{"servers": {"a": {"url": "http://a"}, "b": {"command": "y"}}}"#).unwrap();
        assert_eq!(file.add(&other), ["a"], "a server that is there stays");
        let digest = |file: &McpFile, at: usize| file.servers()[at].1.clone().unwrap().digest();
        assert_ne!(digest(&file, 0), digest(&other, 1));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        file.write(&path).unwrap();
        assert_eq!(McpFile::read(&path).unwrap(), file);
        assert!(file.text().contains("\"theme\": 1") && file.text().contains("\"note\": \"mine\""));
        assert!(file.remove("a") && !file.remove("a"));
        assert_eq!(McpFile::read(&folder.path().join("none")).unwrap(), McpFile::default());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
