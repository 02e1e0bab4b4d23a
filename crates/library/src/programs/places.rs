//! Folders in which other programs keep models: where their settings say, or by default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use directories::BaseDirs;
use serde_json::Value;

use super::files::read_text;
use crate::folders::path_named;

/// Another program with models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    LmStudio,
    Ollama,
    Jan,
    Gpt4All,
    LlamaCpp,
}

/// Environment variable with a folder in place of the person's home folder.
const HOME: &str = "FORETOKEN_PROGRAMS_HOME";

/// Variables that name folders of other programs.
const VARIABLES: [&str; 3] = ["OLLAMA_MODELS", "JAN_DATA_FOLDER", "LLAMA_CACHE"];

/// A person's folders.
#[derive(Debug, Default)]
pub(crate) struct Places {
    home: PathBuf,
    /// Data, settings and caches of programs. On Windows `data` follows a person between computers
    /// and `local` does not.
    data: PathBuf,
    local: PathBuf,
    config: PathBuf,
    cache: PathBuf,
    /// Folders that environment variables name.
    named: BTreeMap<&'static str, PathBuf>,
    /// Folder of Ollama as a service.
    service: PathBuf,
}

impl Places {
    /// Returns the folders of the person who runs this program.
    pub(crate) fn here() -> Self {
        if let Some(home) = path_named(std::env::var_os(HOME)) {
            return Self::below(&home);
        }
        let Some(dirs) = BaseDirs::new() else { return Self::default() };
        let named = |name| Some((name, path_named(std::env::var_os(name).map(unquoted))?));
        Self {
            home: dirs.home_dir().to_owned(),
            data: dirs.data_dir().to_owned(),
            local: dirs.data_local_dir().to_owned(),
            config: dirs.config_dir().to_owned(),
            // Programs on Windows keep caches beside their data.
            cache: if cfg!(windows) { dirs.data_local_dir() } else { dirs.cache_dir() }.to_owned(),
            named: VARIABLES.into_iter().filter_map(named).collect(),
            service: PathBuf::from("/usr/share/ollama/.ollama/models"),
        }
    }

    /// Returns the folders of a person with this home folder, as on Linux and without any
    /// environment.
    pub(crate) fn below(home: &Path) -> Self {
        let data = home.join(".local/share");
        Self {
            home: home.to_owned(),
            local: data.clone(),
            data,
            config: home.join(".config"),
            cache: home.join(".cache"),
            ..Self::default()
        }
    }

    /// Returns the folders with models of a program, which need not exist.
    pub(super) fn folders(&self, program: Program) -> Vec<PathBuf> {
        match program {
            Program::LmStudio => self.lm_studio(),
            Program::Ollama => match self.named.get("OLLAMA_MODELS") {
                Some(folder) => vec![folder.clone()],
                None => vec![self.home.join(".ollama/models"), self.service.clone()],
            },
            Program::Jan => vec![self.jan()],
            Program::Gpt4All => vec![self.gpt4all()],
            Program::LlamaCpp => {
                let named = self.named.get("LLAMA_CACHE").cloned();
                vec![named.unwrap_or_else(|| self.cache.join("llama.cpp"))]
            }
        }
    }

    /// LM Studio keeps its home in a pointer file, and a chosen folder of models in its settings.
    fn lm_studio(&self) -> Vec<PathBuf> {
        let pointer = read_text(&self.home.join(".lmstudio-home-pointer"));
        let homes = match pointer.as_deref().map(str::trim).filter(|home| is_path(home)) {
            Some(home) => vec![PathBuf::from(home)],
            None => vec![self.home.join(".cache/lm-studio"), self.home.join(".lmstudio")],
        };
        let own = self.config.join("LM Studio");
        let mut settings = homes.iter().chain([&own]).map(|home| home.join("settings.json"));
        let chosen = settings.find_map(|file| path_in(&file, "downloadsFolder"));
        chosen.map_or_else(|| homes.iter().map(|home| home.join("models")).collect(), |folder| vec![folder])
    }

    /// Jan's data folder.
    fn jan(&self) -> PathBuf {
        let folder = self.data.join("Jan");
        let settings = [folder.join("settings.json"), self.config.join("Jan/settings.json")];
        let chosen = settings.iter().find_map(|path| path_in(path, "data_folder"));
        self.named.get("JAN_DATA_FOLDER").cloned().or(chosen).unwrap_or_else(|| folder.join("data"))
    }

    /// GPT4All keeps its settings as Qt does: in a file of lines `name=value`.
    fn gpt4all(&self) -> PathBuf {
        let configs = [self.config.clone(), self.home.join(".config"), self.data.clone()];
        let chosen = configs.iter().find_map(|config| {
            let text = read_text(&config.join("nomic.ai/GPT4All.ini"))?;
            let path = text.lines().find_map(|line| line.strip_prefix("modelPath="))?;
            let path = path.trim().trim_matches('"').replace("\\\\", "\\");
            is_path(&path).then(|| PathBuf::from(path))
        });
        chosen.unwrap_or_else(|| self.local.join("nomic.ai/GPT4All"))
    }
}

/// Returns the absolute path in a field of a JSON file.
fn path_in(file: &Path, field: &str) -> Option<PathBuf> {
    let json: Value = serde_json::from_str(&read_text(file)?).ok()?;
    json.get(field)?.as_str().filter(|path| is_path(path)).map(PathBuf::from)
}

fn is_path(text: &str) -> bool {
    Path::new(text).is_absolute()
}

/// Returns the value of a variable without quotes, as Ollama reads it.
fn unquoted(value: OsString) -> OsString {
    match value.to_str() {
        Some(text) => text.trim().trim_matches(['"', '\'']).into(),
        None => value,
    }
}
