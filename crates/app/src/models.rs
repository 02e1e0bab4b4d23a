//! Models on this computer as the pickers list them: which can be targets, which can draft, and why
//! not. Files are opened by the [`Inspector`]; only a loaded target's own is opened here.
//!
//! - [`inspection`]: reading untrusted files; `drafts`: ranking of drafts; `memory`: memory use
//! - `speeds`: measured and estimated speeds; `recommend`: models of the catalogue that suit this
//!   computer
//! - `hub`: models of the hub; `found`: its repositories, judged for this computer
//! - `servers`: remote servers in the settings; `remote`: adding and removing them

pub(crate) mod drafts;
pub(crate) mod found;
pub(crate) mod hub;
pub(crate) mod inspection;
pub(crate) mod memory;
pub(crate) mod recommend;
pub(crate) mod remote;
pub(crate) mod servers;
pub(crate) mod speeds;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foretoken_engine::compat::{Compatibility, Method};
use foretoken_engine::inspection::{FileProblem, Inspected, Inspector, TOKENS};
use foretoken_library::{
    CatalogueFamily, Installed, Kind, Library, STARTER, STARTER_DRAFT, catalogue, is_known_pair,
    makers_sampling,
};
use foretoken_model::recommended::Recommended;
use foretoken_model::{ModelSource, ProblemKind, VisionSource};

use self::drafts::Candidate;
use self::inspection::Inspections;
use self::speeds::Speeds;
use crate::error::Result;
use crate::ipc::{
    CommandError, ContextWindow, DRAFT_MTP, DRAFT_NGRAM, DRAFT_NONE, DraftOption, ErrorCode, MTP_NAME,
    ModelDetail, ModelEntry, ModelKind, NGRAM_NAME, Problem,
};

/// Inspects models, and caches compatibility of pairs, because comparing large vocabularies takes
/// time.
pub struct Models {
    library: Library,
    /// Speeds of the models.
    pub speeds: Speeds,
    inspections: Inspections,
    inspector: Arc<Inspector>,
    /// Problems of models whose last inspection in [`Self::entries`] failed.
    failed: HashMap<PathBuf, Problem>,
    verdicts: HashMap<(PathBuf, PathBuf), Compatibility>,
}

/// The loaded target, with which drafts are compared.
pub struct LoadedTarget<'a> {
    pub entry: &'a ModelEntry,
    pub path: &'a Path,
}

/// A model that may be installed on this computer.
#[derive(Debug, Clone, PartialEq)]
pub struct InstalledModel {
    pub id: String,
    pub path: PathBuf,
    /// Name, see [`ModelEntry::name`].
    pub name: String,
    pub kind: ModelKind,
    /// Program that the model belongs to.
    pub program: Option<&'static str>,
    /// Size of the weights on disk; 0 if unknown.
    pub size_bytes: u64,
    /// `true` if a file beside it has the name of a vision file.
    pub has_vision_file: bool,
}

impl InstalledModel {
    /// A model added by path.
    pub fn added(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let id = path.display().to_string();
        let has_vision_file = VisionSource::may_be_beside(&path);
        let (kind, name) = (ModelKind::Added, id.clone());
        Self { id, path, name, kind, program: None, size_bytes: 0, has_vision_file }
    }

    /// Returns the model's list entry; problems of the file are part of it.
    ///
    /// # Errors
    /// Returns the problem of a file whose inspection was ended.
    pub fn entry(&self, inspector: &Inspector) -> Result<ModelEntry, Problem> {
        let mut entry = self.unread();
        match inspector.inspect(&self.path) {
            Ok(mut found) => {
                match self.id.as_str() {
                    STARTER => found.name = "Starter".to_owned(),
                    STARTER_DRAFT => found.name = "Starter draft".to_owned(),
                    _ => (),
                }
                entry.label = found.label();
                entry.detail = Some(detail(&found));
                entry.size_bytes = found.bytes;
                entry.parameters = found.parameters;
                entry.memory_bytes = found.memory_bytes.unwrap_or_else(|| memory::needed(found.bytes));
                entry.context_window = context_window(&found);
                entry.licence = found.licence.or_else(|| known_licence(&self.name));
                entry.read_bytes = found.read_bytes;
                entry.context = found.context.unwrap_or(0);
                entry.recommended = found.recommended.or_else(|| known_to_catalogue(&self.path));
                entry.sees = found.sees && found.problem.is_none();
                entry.problem = found.problem.map(Problem::from);
            }
            Err(problem) if problem.was_ended => return Err(problem.into()),
            Err(_) if !self.path.exists() => entry.problem = Some(gone(&self.path)),
            Err(problem) => {
                if problem.kind == ProblemKind::EmbeddingModel {
                    entry.label = self.name.rsplit('/').next().unwrap_or_default().to_owned();
                }
                entry.problem = Some(problem.into());
            }
        }
        entry.fits = memory::holds(entry.memory_bytes);
        Ok(entry)
    }

    /// Returns the entry before the file was inspected.
    pub fn unread(&self) -> ModelEntry {
        ModelEntry {
            id: self.id.clone(),
            label: file_name(&self.path),
            detail: None,
            kind: self.kind,
            program: self.program.map(str::to_owned),
            name: self.name.clone(),
            size_bytes: self.size_bytes,
            memory_bytes: memory::needed(self.size_bytes),
            fits: false,
            parameters: 0,
            context: 0,
            context_window: None,
            recommended: None,
            sees: false,
            licence: None,
            read_bytes: 0,
            speed: None,
            problem: None,
        }
    }
}

impl From<Installed> for InstalledModel {
    fn from(installed: Installed) -> Self {
        let Installed { id, name, path, kind, size_bytes } = installed;
        let (kind, program) = match kind {
            Kind::Bundled => (ModelKind::Bundled, None),
            Kind::Local => (ModelKind::Local, None),
            Kind::HubCache => (ModelKind::Downloaded, None),
            Kind::Program(program) => (ModelKind::Program, Some(program.name())),
        };
        let has_vision_file = VisionSource::may_be_beside(&path);
        Self { id, path, name, kind, program, size_bytes, has_vision_file }
    }
}

impl Models {
    pub fn new(
        library: Library,
        speeds: Speeds,
        inspections: Inspections,
        inspector: Arc<Inspector>,
    ) -> Self {
        Self { library, speeds, inspections, inspector, failed: HashMap::new(), verdicts: HashMap::new() }
    }

    /// Returns the default target, see [`Library::default_target`].
    pub fn default_target(&self) -> &'static str {
        self.library.default_target()
    }

    /// Returns the path of the model with this id.
    ///
    /// # Errors
    /// Returns an error if there is no such model, or if its last inspection failed: loading it
    /// would hang as well.
    pub fn path(&self, id: &str) -> Result<PathBuf> {
        let path = self.library.resolve(id)?;
        match self.failed.get(&path) {
            Some(problem) => {
                let message = format!("{}: {}", path.display(), problem.reason);
                Err(CommandError::new(ErrorCode::BadModel, message))
            }
            None => Ok(path),
        }
    }

    /// Returns the paths of all installed models, then of those in `added`. Reads folders, no
    /// files.
    pub fn installed(&self, added: &[String]) -> Vec<InstalledModel> {
        let installed = self.library.installed().into_iter().map(InstalledModel::from);
        installed.chain(added.iter().map(InstalledModel::added)).collect()
    }

    /// Returns the list entries of models. A failed inspection is a problem of its own model only.
    pub fn entries(&mut self, models: &[InstalledModel]) -> Vec<ModelEntry> {
        let inspector = Arc::clone(&self.inspector);
        self.entries_by(models, move |model| model.entry(&inspector))
    }

    fn entries_by(
        &mut self,
        models: &[InstalledModel],
        read: impl Fn(&InstalledModel) -> Result<ModelEntry, Problem> + Send + Sync + 'static,
    ) -> Vec<ModelEntry> {
        let these = models.to_vec();
        let found = self.inspections.each(paths(models.iter()), move |at| read(&these[at]));
        self.inspector.rest();
        self.failed.clear();
        let entry = |(model, found): (&InstalledModel, Result<_, Problem>)| {
            found.flatten().unwrap_or_else(|problem| {
                self.failed.insert(model.path.clone(), problem.clone());
                ModelEntry { problem: Some(problem), ..model.unread() }
            })
        };
        models.iter().zip(found).map(entry).collect()
    }

    /// Returns the list entry of one model.
    pub fn entry(&self, model: InstalledModel) -> ModelEntry {
        let (inspector, unread) = (Arc::clone(&self.inspector), model.unread());
        let found = self.inspections.one(&model.path.clone(), move || model.entry(&inspector)).flatten();
        self.inspector.rest();
        found.unwrap_or_else(|problem| ModelEntry { problem: Some(problem), ..unread })
    }

    /// Returns plain decoding, the n-gram drafter, and every listed model except the target, usable
    /// or not, with the facts for ranking.
    pub fn drafts(
        &mut self,
        listed: &[(InstalledModel, ModelEntry)],
        target: &LoadedTarget<'_>,
    ) -> Vec<Candidate> {
        let inspector = Arc::clone(&self.inspector);
        let compare = move |target: &Path, draft: &Path| Ok(inspector.compare(target, draft)?);
        let drafts = self.drafts_by(listed, target, compare);
        self.inspector.rest();
        drafts
    }

    fn drafts_by(
        &mut self,
        listed: &[(InstalledModel, ModelEntry)],
        target: &LoadedTarget<'_>,
        compare: impl Fn(&Path, &Path) -> Result<Compatibility, Problem> + Send + Sync + 'static,
    ) -> Vec<Candidate> {
        let drafts = |(model, entry): &&(InstalledModel, ModelEntry)| {
            let embeds =
                entry.problem.as_ref().is_some_and(|problem| problem.kind == ProblemKind::EmbeddingModel);
            model.path != target.path && !embeds
        };
        let others: Vec<_> = listed.iter().filter(drafts).collect();
        let problems = self.judge(&others, target, compare);
        let models = others.into_iter().map(|(model, entry)| {
            let method = match problems.get(&model.path) {
                Some(problem) => Err(problem.clone()),
                None => self.method(&model.path, target),
            };
            Candidate {
                share: Some(entry.size_bytes as f64 / target.entry.size_bytes.max(1) as f64),
                same_vocabulary: method == Ok(Method::Same),
                is_head: method == Ok(Method::Head),
                known_pair: is_known_pair(&target.entry.name, &entry.name),
                needs: entry.memory_bytes,
                ..Candidate::without_model(DraftOption {
                    id: entry.id.clone(),
                    label: entry.label.clone(),
                    detail: entry.detail.clone(),
                    merit: None,
                    problem: method.err(),
                })
            }
        });
        let own = self.own_head(target);
        [none(), ngram()].map(Candidate::without_model).into_iter().chain(own).chain(models).collect()
    }

    /// Returns the draft head in the target's own file, usable or not, if the file mentions one.
    fn own_head(&self, target: &LoadedTarget<'_>) -> Option<Candidate> {
        let path = target.path.to_owned();
        let found = self.inspections.each(vec![path.clone()], move |_| own_head(&path)).pop()?;
        Some(match found.and_then(|found| found).transpose()? {
            Ok((read, needs)) => Candidate {
                share: Some(read as f64 / target.entry.read_bytes.max(1) as f64),
                is_head: true,
                needs,
                ..Candidate::without_model(mtp(None))
            },
            Err(problem) => Candidate::without_model(mtp(Some(problem))),
        })
    }

    /// Compares the drafts that have no cached result with the target, and returns the problems of
    /// those that are not compared, or cannot be.
    fn judge(
        &mut self,
        others: &[&(InstalledModel, ModelEntry)],
        target: &LoadedTarget<'_>,
        compare: impl Fn(&Path, &Path) -> Result<Compatibility, Problem> + Send + Sync + 'static,
    ) -> HashMap<PathBuf, Problem> {
        let mut problems = self.failed.clone();
        for (model, entry) in others {
            // Files that could not be read have no parameters.
            if entry.parameters > 0 && entry.size_bytes > target.entry.size_bytes {
                problems.insert(model.path.clone(), too_large(entry, target.entry));
            }
        }
        let unknown = |path: &PathBuf| {
            !problems.contains_key(path)
                && !self.verdicts.contains_key(&(target.path.to_owned(), path.clone()))
        };
        let mut new = paths(others.iter().map(|(model, _)| model));
        new.retain(unknown);
        let (these, path) = (new.clone(), target.path.to_owned());
        let found = self.inspections.each(new.clone(), move |at| compare(&path, &these[at]));
        for (path, verdict) in new.into_iter().zip(found) {
            match verdict.flatten() {
                Ok(verdict) => drop(self.verdicts.insert((target.path.to_owned(), path), verdict)),
                Err(problem) => drop(problems.insert(path, problem)),
            }
        }
        problems
    }

    /// Returns how the draft's tokens map to the target's, or why it cannot draft.
    fn method(&self, draft: &Path, target: &LoadedTarget<'_>) -> Result<Method, Problem> {
        let Compatibility { method, reason, .. } =
            &self.verdicts[&(target.path.to_owned(), draft.to_owned())];
        method.ok_or_else(|| Problem { kind: ProblemKind::OtherVocabulary, reason: reason.clone() })
    }
}

/// Returns the bytes that a token reads of the draft head in a model's own file, and the memory it
/// needs, if the file mentions one.
fn own_head(path: &Path) -> Result<Option<(u64, u64)>, Problem> {
    let source = ModelSource::open(path)?;
    if !source.speaks_of_mtp() {
        return Ok(None);
    }
    // Parts shared with the target are in memory once.
    let own = source.mtp_head()?;
    let head = own.for_target(&source)?;
    Ok(Some((head.read_bytes()?, own.memory_bytes(TOKENS)?)))
}

fn paths<'a>(models: impl Iterator<Item = &'a InstalledModel>) -> Vec<PathBuf> {
    models.map(|model| model.path.clone()).collect()
}

/// Returns the catalogue's licence of the model with this name.
fn known_licence(name: &str) -> Option<String> {
    let mut known = catalogue().iter().flat_map(CatalogueFamily::models).map(|(_, model)| model);
    let found = known.find(|model| model.name() == name && model.licence != "unknown");
    found.map(|model| model.licence.to_owned())
}

/// Problem of an added model that no longer exists.
fn gone(path: &Path) -> Problem {
    let reason = format!(
        "{} no longer exists. Connect the disk it is on, or remove it from the list in the Library.",
        path.display()
    );
    Problem { kind: ProblemKind::NotFound, reason }
}

impl From<foretoken_model::Error> for Problem {
    fn from(error: foretoken_model::Error) -> Self {
        FileProblem::from(error).into()
    }
}

impl From<FileProblem> for Problem {
    fn from(problem: FileProblem) -> Self {
        let FileProblem { kind, reason, .. } = problem;
        Self { kind, reason }
    }
}

fn too_large(draft: &ModelEntry, target: &ModelEntry) -> Problem {
    let [ours, theirs] = [target, draft].map(|model| bytes(model.size_bytes));
    Problem {
        kind: ProblemKind::LargerThanTarget,
        reason: format!(
            "it is larger than the target, {theirs} against {ours}: drafting a token would take longer than the token it \
             may save"
        ),
    }
}

fn detail(found: &Inspected) -> ModelDetail {
    let Inspected { architecture, bytes, context, .. } = found;
    ModelDetail::File { architecture: architecture.clone(), bytes: *bytes, context: *context }
}

fn context_window(found: &Inspected) -> Option<ContextWindow> {
    let Inspected { context, kv_bytes, int8_kv_bytes, rope_scaling, .. } = *found;
    Some(ContextWindow {
        trained: context?,
        token_bytes: kv_bytes,
        int8_token_bytes: int8_kv_bytes,
        rope_scaling,
    })
}

/// Formats a size: "8.8 MB", "4.9 GB".
fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        n if n >= 1e9 => format!("{:.1} GB", n / 1e9),
        n => format!("{:.1} MB", n / 1e6),
    }
}

fn known_to_catalogue(path: &Path) -> Option<Recommended> {
    let makers = makers_sampling(&file_name(path))?;
    Some(Recommended {
        temperature: Some(makers.temperature),
        top_k: Some(makers.top_k),
        top_p: Some(makers.top_p),
        ..Recommended::default()
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn none() -> DraftOption {
    drafter(DRAFT_NONE, "", None)
}

fn mtp(problem: Option<Problem>) -> DraftOption {
    drafter(DRAFT_MTP, MTP_NAME, problem)
}

fn ngram() -> DraftOption {
    drafter(DRAFT_NGRAM, NGRAM_NAME, None)
}

/// A choice without a model of its own.
fn drafter(id: &str, name: &str, problem: Option<Problem>) -> DraftOption {
    DraftOption { id: id.to_owned(), label: name.to_owned(), detail: None, merit: None, problem }
}

#[cfg(test)]
mod tests {
    use foretoken_library::Folders;
    use foretoken_model::Renderer;

    use super::*;

    fn models() -> Models {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::at(folder.path());
        let inspections = Inspections::default();
        Models::new(Library::new(&folders, None), Speeds(folders), inspections, Arc::new(here()))
    }

    fn here() -> Inspector {
        Inspector::beside(&Renderer::in_this_process())
    }

    fn starter(name: &str) -> InstalledModel {
        let starter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../starter");
        InstalledModel::added(starter.join(format!("starter-{name}-Q8_0.gguf")).canonicalize().unwrap())
    }

    #[test]
    fn a_model_whose_inspection_panics_is_listed_with_the_problem_and_not_loaded() {
        let mut models = models();
        let these = [starter("target"), starter("draft")];
        let bad = these[0].clone();
        let (bad_path, bad_id) = (bad.path.clone(), bad.id.clone());
        let entries = models.entries_by(&these, move |model| {
            assert!(model.path != bad_path, "a made-up failure");
            model.entry(&here())
        });
        let problem = entries[0].problem.clone().unwrap();
        assert_eq!((entries[0].id.as_str(), problem.kind), (bad_id.as_str(), ProblemKind::CannotBeRead));
        assert!(problem.reason.contains("Foretoken failed while reading it"), "{}", problem.reason);
        assert_eq!((&entries[1].problem, entries[1].parameters), (&None, 1_115_008));
        assert!(models.path(&bad_id).unwrap_err().message.contains("Foretoken failed"));
        assert!(models.path(&these[1].id).is_ok());

        models.entries(&these);
        assert!(models.path(&bad_id).is_ok(), "the second inspection succeeded");
    }

    #[test]
    fn a_draft_whose_comparison_panics_is_listed_with_the_problem_and_others_draft() {
        let mut models = models();
        let (target, good) = (starter("target"), starter("draft"));
        let bad = InstalledModel::added("/nowhere/bad.gguf");
        let entry = target.entry(&here()).unwrap();
        let beside = LoadedTarget { entry: &entry, path: &target.path };
        let listed = |model: InstalledModel| (model.clone(), model.entry(&here()).unwrap());
        let listed: Vec<_> = [good.clone(), bad].map(listed).into();
        let found = models.drafts_by(&listed, &beside, |target, path| {
            assert!(!path.ends_with("bad.gguf"), "a made-up failure");
            Ok(here().compare(target, path)?)
        });
        let problem =
            |id: &str| found.iter().find(|found| found.option.id == id).unwrap().option.problem.clone();
        assert_eq!(problem(&good.id), None);
        assert_eq!(problem("/nowhere/bad.gguf").unwrap().kind, ProblemKind::CannotBeRead);
    }

    #[test]
    fn a_missing_model_is_listed_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["gone.gguf", "gone-folder", "unplugged/disk/model.gguf"] {
            let entry = InstalledModel::added(folder.path().join(path)).entry(&here());
            let problem = entry.unwrap().problem.unwrap();
            assert_eq!(problem.kind, ProblemKind::NotFound);
            assert!(problem.reason.contains("remove it from the list"), "{}", problem.reason);
        }
    }
}
