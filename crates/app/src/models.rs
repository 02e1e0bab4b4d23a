//! The models on this computer as the pickers show them: which can be a target, which can draft for
//! it, and why not. Opens files; loads no weights.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use foretoken_engine::compat::{self, Compatibility, Method};
use foretoken_engine::model::{Description, ModelSource, Tokenizer};
use foretoken_library::{Installed, Kind, Library, STARTER, STARTER_DRAFT, is_known_pair};

use crate::drafts::Candidate;
use crate::error::Result;
use crate::ipc::{DRAFT_NGRAM, DRAFT_NONE, DraftOption, ModelEntry, ModelKind, Problem};
use crate::memory;

/// Looks into models, and remembers verdicts on pairs, since comparing large vocabularies takes time.
pub struct Models {
    library: Library,
    verdicts: HashMap<(PathBuf, PathBuf), Compatibility>,
}

/// The loaded target, beside which drafts are looked at.
pub struct Beside<'a> {
    pub entry: &'a ModelEntry,
    pub path: &'a Path,
    pub tokenizer: &'a Tokenizer,
}

/// A model that may be on this computer.
#[derive(Debug, PartialEq)]
pub struct InstalledModel {
    pub id: String,
    pub path: PathBuf,
    /// See [`ModelEntry::name`].
    pub name: String,
    pub kind: ModelKind,
    /// Weights on disk; 0 where nobody looked.
    pub size_bytes: u64,
}

impl InstalledModel {
    /// A model that is where a person says.
    pub fn added(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let id = path.display().to_string();
        Self { name: id.clone(), id, path, kind: ModelKind::Added, size_bytes: 0 }
    }

    /// The model as a list shows it; what is wrong with it is part of the entry.
    pub fn entry(&self) -> ModelEntry {
        let mut entry = ModelEntry {
            id: self.id.clone(),
            label: file_name(&self.path),
            detail: String::new(),
            kind: self.kind,
            name: self.name.clone(),
            size_bytes: self.size_bytes,
            memory_bytes: memory::needed(self.size_bytes),
            fits: false,
            parameters: 0,
            context: 0,
            problem: None,
        };
        match ModelSource::open(&self.path) {
            Ok(source) => {
                let mut description = source.describe();
                match self.id.as_str() {
                    STARTER => description.name = "Starter".to_owned(),
                    STARTER_DRAFT => description.name = "Starter draft".to_owned(),
                    _ => (),
                }
                entry.label = description.label();
                entry.detail = detail(&description);
                entry.size_bytes = description.bytes;
                entry.parameters = description.parameters;
                let known = source.memory_bytes(memory::TOKENS);
                entry.memory_bytes = known.unwrap_or_else(|_| memory::needed(description.bytes));
                entry.context = description.sizes.as_ref().map_or(0, |sizes| sizes.context as u32);
                let usable = source.config().map(|_| ()).and_then(|()| source.template_source().map(|_| ()));
                entry.problem = usable.err().map(Problem::from);
            }
            Err(error) => entry.problem = Some(error.into()),
        }
        entry.fits = memory::holds(entry.memory_bytes);
        entry
    }
}

impl From<Installed> for InstalledModel {
    fn from(installed: Installed) -> Self {
        let Installed { id, name, path, kind, size_bytes } = installed;
        let kind = match kind {
            Kind::Bundled => ModelKind::Bundled,
            Kind::Local => ModelKind::Local,
            Kind::HubCache => ModelKind::Downloaded,
        };
        Self { id, path, name, kind, size_bytes }
    }
}

impl Models {
    pub fn new(library: Library) -> Self {
        Self { library, verdicts: HashMap::new() }
    }

    /// See [`Library::default_target`].
    pub fn default_target(&self) -> &'static str {
        self.library.default_target()
    }

    /// Where the model with this id is.
    pub fn path(&self, id: &str) -> Result<PathBuf> {
        Ok(self.library.resolve(id)?)
    }

    /// Where every installed model is, then those in `added` (paths). Reads folders, no files.
    pub fn installed(&self, added: &[String]) -> Vec<InstalledModel> {
        let installed = self.library.installed().into_iter().map(InstalledModel::from);
        installed.chain(added.iter().map(InstalledModel::added)).collect()
    }

    /// No draft, the n-gram drafter, and every listed model but the target itself, usable or not, with what is
    /// known of it.
    pub fn drafts(&mut self, listed: &[(InstalledModel, ModelEntry)], target: &Beside<'_>) -> Vec<Candidate> {
        let others = listed.iter().filter(|(model, _)| model.path != target.path);
        let models = others.map(|(model, entry)| {
            let method = self.method(&model.path, entry, target);
            Candidate {
                share: Some(entry.size_bytes as f64 / target.entry.size_bytes.max(1) as f64),
                same_vocabulary: method == Ok(Method::Same),
                known_pair: is_known_pair(&target.entry.name, &entry.name),
                ..Candidate::without_model(DraftOption {
                    id: entry.id.clone(),
                    label: entry.label.clone(),
                    detail: entry.detail.clone(),
                    merit: None,
                    problem: method.err(),
                })
            }
        });
        [none(), ngram()].map(Candidate::without_model).into_iter().chain(models).collect()
    }

    /// How the tokens of the model at `draft` become the target's, or why it cannot draft.
    fn method(&mut self, draft: &Path, entry: &ModelEntry, target: &Beside<'_>) -> Result<Method, Problem> {
        // What could not be read has no parameters.
        if entry.parameters > 0 && entry.size_bytes > target.entry.size_bytes {
            return Err(too_large(entry, target.entry));
        }
        let pair = (target.path.to_owned(), draft.to_owned());
        if !self.verdicts.contains_key(&pair) {
            let source = ModelSource::open(draft)?;
            source.config()?;
            let verdict = compat::compare(target.tokenizer, &source.tokenizer()?);
            self.verdicts.insert(pair.clone(), verdict);
        }
        let Compatibility { method, reason, .. } = &self.verdicts[&pair];
        method.ok_or_else(|| Problem { short: "other vocabulary".to_owned(), reason: reason.clone() })
    }
}

impl From<foretoken_engine::Error> for Problem {
    fn from(error: foretoken_engine::Error) -> Self {
        Self { short: error.short().to_owned(), reason: error.to_string() }
    }
}

fn too_large(draft: &ModelEntry, target: &ModelEntry) -> Problem {
    let [ours, theirs] = [target, draft].map(|model| bytes(model.size_bytes));
    Problem {
        short: "larger than the target".to_owned(),
        reason: format!(
            "it is larger than the target, {theirs} against {ours}: a guess would cost more than the token it \
             may save"
        ),
    }
}

fn detail(description: &Description) -> String {
    let architecture = description.architecture.as_deref().unwrap_or("no architecture");
    let size = bytes(description.bytes);
    match &description.sizes {
        Some(sizes) => format!("{architecture}, {size}, context {} tokens", sizes.context),
        None => format!("{architecture}, {size}"),
    }
}

/// "8.8 MB", "4.9 GB".
fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        n if n >= 1e9 => format!("{:.1} GB", n / 1e9),
        n => format!("{:.1} MB", n / 1e6),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn none() -> DraftOption {
    DraftOption {
        id: DRAFT_NONE.to_owned(),
        label: "None".to_owned(),
        detail: "plain decoding, one token at a time".to_owned(),
        merit: None,
        problem: None,
    }
}

fn ngram() -> DraftOption {
    DraftOption {
        id: DRAFT_NGRAM.to_owned(),
        label: "N-gram".to_owned(),
        detail: "repeats what the conversation already said".to_owned(),
        merit: None,
        problem: None,
    }
}
