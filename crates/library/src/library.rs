//! Every model on this computer, with its names. Does not read the files: the engine decides
//! whether a model runs, and with which draft.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::bundled::{Bundled, NAMES};
use crate::disk::free_at;
use crate::model_path::{models_below, recognise};
use crate::nearest::nearest;
use crate::programs::{Places, Program, ProgramModel};
use crate::{Error, Folders, Result, cache};

/// Origin of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Comes with the program.
    Bundled,
    /// Is in the models folder.
    Local,
    /// Is in the hub's cache, downloaded by this program or another.
    HubCache,
    /// Belongs to another program.
    Program(Program),
}

/// A model on this computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Name of a bundled model or of another program's, else the path.
    pub id: String,
    /// Name that a person can use: of a bundled model, the path below the models folder,
    /// `owner/name`, `owner/name:file` or `program:name`.
    pub name: String,
    /// A `.gguf` file (the first part of a split model) or a safetensors folder.
    pub path: PathBuf,
    pub kind: Kind,
    /// Size of the weights, all parts together.
    pub size_bytes: u64,
}

/// The models of one person.
#[derive(Debug)]
pub struct Library {
    pub(crate) models: PathBuf,
    pub(crate) hub: PathBuf,
    bundled: Bundled,
    places: Places,
}

impl Library {
    /// Creates the library. `resources` is the folder of the installed application, if there is
    /// one. FORETOKEN_SMOLLM2_DIR and FORETOKEN_STARTER_DIR replace the folders of the bundled
    /// models.
    pub fn new(folders: &Folders, resources: Option<&Path>) -> Self {
        Self {
            models: folders.models(),
            hub: cache::cache_folder(),
            bundled: Bundled::new(resources),
            places: Places::here(),
        }
    }

    /// Returns the default target's name: SmolLM2 if it is installed, else the starter.
    pub fn default_target(&self) -> &'static str {
        self.bundled.default_target()
    }

    /// Returns the bundled model or draft head that drafts for a target, if its files exist.
    pub fn draft_of(&self, target: &str) -> Option<&'static str> {
        self.bundled.draft_of(target)
    }

    /// Returns the bytes free for downloads; `None` if the disk does not report them.
    pub fn free_disk(&self) -> Option<u64> {
        free_at(&self.hub)
    }

    /// Returns all installed models: bundled ones, then the models folder, then the hub's cache,
    /// then those of other programs. Unreadable ones are left out. Lists folders, and opens only
    /// files in which other programs describe models.
    pub fn installed(&self) -> Vec<Installed> {
        let bundled = NAMES.into_iter().filter_map(|name| {
            let found = recognise(&self.bundled.path(name)?.ok()?).ok()?;
            let (id, path, size_bytes) = (name.to_string(), found.path, found.size_bytes);
            Some(Installed { name: id.clone(), id, path, kind: Kind::Bundled, size_bytes })
        });
        let local = models_below(&self.models).into_iter().filter_map(|found| {
            let name = found.path.strip_prefix(&self.models).ok()?.to_str()?.replace('\\', "/");
            Some((name, found, Kind::Local))
        });
        let hub = cache::models(&self.hub).into_iter().map(|(name, found)| (name, found, Kind::HubCache));
        let others = local.chain(hub).filter_map(|(name, found, kind)| {
            let id = found.path.to_str()?.to_string();
            Some(Installed { id, name, path: found.path, kind, size_bytes: found.size_bytes })
        });
        let mut installed: Vec<Installed> = bundled.chain(others).collect();
        self.add_models_of_programs(&mut installed);
        installed
    }

    /// Adds the models of other programs, without files that are listed already: programs can share
    /// a folder.
    fn add_models_of_programs(&self, installed: &mut Vec<Installed>) {
        let target = |path: &Path| std::fs::canonicalize(path).ok();
        let mut known: HashSet<PathBuf> = installed.iter().filter_map(|model| target(&model.path)).collect();
        for program in Program::ALL {
            for ProgramModel { name, found } in program.models(&self.places) {
                if target(&found.path).is_some_and(|target| known.insert(target)) {
                    let (path, size_bytes, kind) = (found.path, found.size_bytes, Kind::Program(program));
                    installed.push(Installed { id: name.clone(), name, path, kind, size_bytes });
                }
            }
        }
    }

    /// Returns the path of the model called `name`: a bundled model, the path of a `.gguf` file or
    /// a safetensors folder, or an installed model's name. `.gguf` may be left out, and a
    /// repository or folder with a single model may be named instead of the model.
    pub fn resolve(&self, name: &str) -> Result<PathBuf> {
        if let Some(bundled) = self.bundled.path(name) {
            return bundled;
        }
        let path = Path::new(name);
        let recognised = recognise(path);
        if recognised.is_ok() {
            return Ok(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()));
        }
        let installed = self.installed();
        if let Some(model) = by_name(&installed, name)? {
            return Ok(model.path.clone());
        }
        match recognised {
            Err(found) if path.exists() => Err(Error::NotAModel { path: path.to_path_buf(), found }),
            _ => Err(self.unknown(name, &installed)),
        }
    }

    pub(crate) fn unknown(&self, name: &str, installed: &[Installed]) -> Error {
        let names = installed.iter().flat_map(|model| {
            let repository = model.name.split_once(':').map(|(repository, _)| repository);
            [model.name.as_str(), model.name.trim_end_matches(".gguf")].into_iter().chain(repository)
        });
        let hint = match nearest(name, names) {
            Some(near) => format!("Did you mean '{near}'?"),
            None => format!("Enter the path of a model, or copy the model to {}.", self.models.display()),
        };
        Error::Unknown { name: name.into(), hint }
    }
}

fn by_name<'a>(installed: &'a [Installed], name: &str) -> Result<Option<&'a Installed>> {
    let exact = |model: &&Installed| {
        model
            .name
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.eq_ignore_ascii_case(".gguf"))
    };
    if let Some(model) = installed.iter().find(exact) {
        return Ok(Some(model));
    }
    let within =
        |model: &&Installed| model.name.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '/']));
    let inside: Vec<_> = installed.iter().filter(within).collect();
    match inside[..] {
        [] => Ok(None),
        [model] => Ok(Some(model)),
        _ => Err(Error::Ambiguous {
            name: name.into(),
            choices: inside.into_iter().map(|model| model.name.clone()).collect(),
        }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::STARTER;
    use crate::bundled::tests::bundled_in;
    use crate::cache::tests::download;
    use crate::model_path::tests::put;

    /// Creates a library with the bundled models, two local models and two repositories in the
    /// hub's cache.
    pub(crate) fn library() -> (Library, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(&root.join("smollm2/SmolLM2-135M-Instruct-Q4_1.gguf"), 98);
        put(&root.join("smollm2/smollm2-head.gguf"), 7);
        put(&root.join("starter/starter-target-Q8_0.gguf"), 8);
        put(&root.join("starter/starter-draft-Q8_0.gguf"), 1);
        put(&root.join("models/local.gguf"), 4);
        put(&root.join("models/publisher/llama/config.json"), 1);
        put(&root.join("models/publisher/llama/model.safetensors"), 5);
        download(&root.join("hub"), "owner/one", "abc", "one-Q4.gguf", 6);
        download(&root.join("hub"), "owner/two", "abc", "two-Q4.gguf", 7);
        download(&root.join("hub"), "owner/two", "abc", "two-Q8.gguf", 9);
        put(&root.join("home/.lmstudio/models/pub/model/far.gguf"), 3);
        put(&root.join("home/.local/share/nomic.ai/GPT4All/near.gguf"), 2);
        let library = Library {
            models: root.join("models"),
            hub: root.join("hub"),
            bundled: bundled_in(root),
            places: Places::below(&root.join("home")),
        };
        (library, folder)
    }

    #[test]
    fn every_kind_of_model_is_listed() {
        let (library, _folder) = library();
        let listed: Vec<_> =
            library.installed().into_iter().map(|model| (model.name, model.kind, model.size_bytes)).collect();
        let expected = [
            ("smollm2", Kind::Bundled, 98),
            ("smollm2-head", Kind::Bundled, 7),
            ("starter", Kind::Bundled, 8),
            ("starter-draft", Kind::Bundled, 1),
            ("local.gguf", Kind::Local, 4),
            ("publisher/llama", Kind::Local, 5),
            ("owner/one:one-Q4.gguf", Kind::HubCache, 6),
            ("owner/two:two-Q4.gguf", Kind::HubCache, 7),
            ("owner/two:two-Q8.gguf", Kind::HubCache, 9),
            ("lmstudio:pub/model/far.gguf", Kind::Program(Program::LmStudio), 3),
            ("gpt4all:near.gguf", Kind::Program(Program::Gpt4All), 2),
        ];
        assert_eq!(listed, expected.map(|(name, kind, size)| (name.to_string(), kind, size)));
    }

    #[test]
    fn every_listed_model_is_found_by_its_id_and_by_its_name() {
        let (library, _folder) = library();
        for model in library.installed() {
            assert_eq!(library.resolve(&model.id).unwrap(), model.path);
            assert_eq!(library.resolve(&model.name).unwrap(), model.path);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_two_programs_share_is_listed_once() {
        let (library, folder) = library();
        let root = folder.path();
        std::fs::remove_dir_all(root.join("home/.lmstudio/models")).unwrap();
        std::os::unix::fs::symlink(root.join("models"), root.join("home/.lmstudio/models")).unwrap();
        let names: Vec<_> = library.installed().into_iter().map(|model| model.name).collect();
        assert!(names.contains(&"local.gguf".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.starts_with("lmstudio:")), "{names:?}");
    }

    #[test]
    fn a_name_may_be_shortened_while_it_is_unambiguous() {
        let (library, folder) = library();
        for (short, path) in [
            ("local", "models/local.gguf"),
            ("publisher", "models/publisher/llama"),
            ("owner/one", "hub/models--owner--one/snapshots/abc/one-Q4.gguf"),
            ("owner/two:two-Q8", "hub/models--owner--two/snapshots/abc/two-Q8.gguf"),
            ("lmstudio:pub/model/far", "home/.lmstudio/models/pub/model/far.gguf"),
            ("gpt4all", "home/.local/share/nomic.ai/GPT4All/near.gguf"),
        ] {
            assert_eq!(library.resolve(short).unwrap(), folder.path().join(path));
        }
        let error = library.resolve("owner/two").unwrap_err().to_string();
        assert!(error.contains("owner/two:two-Q4.gguf, owner/two:two-Q8.gguf"), "{error}");
    }

    #[test]
    fn a_path_needs_no_installation_and_becomes_absolute() {
        let (library, folder) = library();
        let path = folder.path().join("elsewhere/m.gguf");
        put(&path, 1);
        assert_eq!(library.resolve(path.to_str().unwrap()).unwrap(), path);
        // A relative path cannot lead to another Windows drive.
        let Ok(below) = path.strip_prefix("/") else { return };
        let here = std::env::current_dir().unwrap();
        let up: PathBuf = here.iter().skip(1).map(|_| "..").collect();
        let resolved = library.resolve(up.join(below).to_str().unwrap()).unwrap();
        assert!(resolved.is_absolute() && resolved.is_file(), "{resolved:?}");
    }

    #[test]
    fn a_path_that_is_not_a_model_says_what_was_expected_and_found() {
        let (library, folder) = library();
        let path = folder.path().join("notes.txt");
        put(&path, 1);
        let error = library.resolve(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("notes.txt is not a model: expected a .gguf file"), "{error}");
        assert!(error.ends_with("found a different kind of file."), "{error}");
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest_one_or_how_to_install_it() {
        let (library, folder) = library();
        for (wanted, near) in [("startr", "starter"), ("lcal", "local"), ("ownr/one", "owner/one")] {
            let error = library.resolve(wanted).unwrap_err().to_string();
            assert!(error.ends_with(&format!("Did you mean '{near}'?")), "{error}");
        }
        for wanted in ["completely different", "", "/nowhere/m.gguf"] {
            let error = library.resolve(wanted).unwrap_err();
            assert!(matches!(error, Error::Unknown { .. }), "{error}");
            assert!(
                error
                    .to_string()
                    .ends_with(&format!("copy the model to {}.", folder.path().join("models").display()))
            );
        }
    }

    #[test]
    fn missing_bundled_models_and_missing_folders_leave_the_rest_usable() {
        let folder = tempfile::tempdir().unwrap();
        download(&folder.path().join("hub"), "owner/one", "abc", "m.gguf", 6);
        let library = Library {
            models: folder.path().join("none"),
            hub: folder.path().join("hub"),
            bundled: bundled_in(&folder.path().join("none")),
            places: Places::below(&folder.path().join("none")),
        };
        assert_eq!(library.installed().len(), 1);
        assert!(matches!(library.resolve(STARTER), Err(Error::NoStarter { .. })));
    }
}
