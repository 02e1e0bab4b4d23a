//! Deletes an installed model: all its files, and none that another model uses.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use crate::cache::snapshots;
use crate::model_path::{
    POOLING, Part, belongs_to_folder_model, is_known_of_folder_model, is_vision_file, models_below,
    visible_entries,
};
use crate::{Error, Kind, Library, Result};

impl Library {
    /// Deletes an installed model by id or name. In the hub's cache it is removed from every
    /// revision, with the blobs that no other file links to. On Unix a model in use keeps working
    /// until it is closed.
    ///
    /// # Errors
    /// `Error::BundledStays` for a model that comes with Foretoken, `Error::OfProgram` for another
    /// program's, `Error::Unknown` for one that
    /// is not installed, `Error::InUse` on systems that do not delete open files, `Error::Outside`
    /// if a link leads out of the folder; nothing is removed then.
    pub fn remove(&self, id: &str) -> Result<()> {
        let installed = self.installed();
        let model = installed.iter().find(|model| model.id == id || model.name == id);
        let model = model.ok_or_else(|| self.unknown(id, &installed))?;
        match model.kind {
            Kind::Bundled => Err(Error::BundledStays(model.name.clone())),
            Kind::Local => {
                let files = files_of(&model.path, is_known_of_folder_model);
                let root = resolved(&self.models)?;
                files.iter().try_for_each(|file| require_inside(file, &root, &self.models))?;
                files.iter().try_for_each(|file| remove_file(file))?;
                remove_empty(&model.path, &self.models);
                Ok(())
            }
            Kind::HubCache => self.remove_cached(&model.path),
            Kind::Program(program) => {
                Err(Error::OfProgram { name: model.name.clone(), program: program.name() })
            }
        }
    }

    /// Removes a model of the hub's cache; `model` is a file or folder in one revision of a
    /// repository.
    fn remove_cached(&self, model: &Path) -> Result<()> {
        let outside = |path: &Path| Error::Outside { path: path.to_owned(), folder: self.hub.clone() };
        let below = model.strip_prefix(&self.hub).map_err(|_| outside(model))?;
        // The path is models--owner--name/snapshots/<revision>/<file>.
        let parts: Vec<_> = below.components().collect();
        let [Component::Normal(name), Component::Normal(snapshots_name), Component::Normal(_), within @ ..] =
            &parts[..]
        else {
            return Err(outside(model));
        };
        if *snapshots_name != "snapshots" || within.iter().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(outside(model));
        }
        let within: PathBuf = within.iter().collect();
        let repository = self.hub.join(name);
        let root = resolved(&self.hub)?.join(name);
        let folder = self.blobs(&repository, &root)?;
        let files: Vec<PathBuf> = snapshots(&repository)
            .iter()
            .flat_map(|snapshot| {
                let model = snapshot.join(&within);
                let vision = vision_files_only_of(&model, snapshot);
                files_of(&model, belongs_to_folder_model).into_iter().chain(vision)
            })
            .collect();
        files.iter().try_for_each(|file| require_inside(file, &root, &repository))?;
        let blobs: HashSet<PathBuf> =
            files.iter().filter_map(|file| blob_of(file, folder.as_deref()?)).collect();
        for file in &files {
            remove_file(file)?;
            remove_empty(file, &repository);
        }
        let mut used = HashSet::new();
        if let Some(folder) = &folder {
            snapshots(&repository).iter().for_each(|snapshot| collect_blobs(snapshot, folder, &mut used));
        }
        blobs.difference(&used).try_for_each(|blob| remove_file(blob))?;
        if snapshots(&repository).is_empty() {
            remove_rest(&repository);
        }
        Ok(())
    }

    /// Returns the resolved folder of a repository's blobs; `None` if there is none, as on systems
    /// without links.
    fn blobs(&self, repository: &Path, root: &Path) -> Result<Option<PathBuf>> {
        let path = repository.join("blobs");
        match fs::canonicalize(&path) {
            Ok(folder) if folder == root.join("blobs") => Ok(Some(folder)),
            Ok(_) => Err(Error::Outside { path, folder: repository.to_owned() }),
            // A broken link has no blob.
            Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => Ok(None),
            Err(source) => Err(Error::Disk { path, source }),
        }
    }
}

/// Returns the resolved path of a folder.
fn resolved(folder: &Path) -> Result<PathBuf> {
    fs::canonicalize(folder).map_err(|source| Error::Disk { path: folder.to_owned(), source })
}

/// # Errors
/// Returns `Error::Outside` if a file, which may itself be a link, is in no folder below `root`,
/// the resolved path of `folder`.
fn require_inside(file: &Path, root: &Path, folder: &Path) -> Result<()> {
    let above = file.parent().map(resolved).transpose()?;
    match above {
        Some(above) if above.starts_with(root) => Ok(()),
        _ => Err(Error::Outside { path: file.to_owned(), folder: folder.to_owned() }),
    }
}

/// Returns the files of a model: one, all parts of a split model, or those of a folder model whose
/// names belong to it.
fn files_of(model: &Path, belongs: fn(&str) -> bool) -> Vec<PathBuf> {
    if model.is_dir() && !model.is_symlink() {
        let belongs = |file: &PathBuf| file.file_name().and_then(|name| name.to_str()).is_some_and(belongs);
        return visible_entries(model)
            .map(|entry| entry.path())
            .filter(|path| !path.is_dir() && belongs(path))
            .chain(Some(model.join(POOLING)).filter(|path| path.symlink_metadata().is_ok()))
            .collect();
    }
    let files = match Part::of(model) {
        Some(part) => (1..=part.count).map(|number| part.sibling(model, number)).collect(),
        None => vec![model.to_owned()],
    };
    files.into_iter().filter(|file| file.symlink_metadata().is_ok()).collect()
}

/// Returns the vision files of a snapshot whose only model is `model`.
fn vision_files_only_of(model: &Path, snapshot: &Path) -> Vec<PathBuf> {
    if models_below(snapshot).iter().any(|other| other.path != model) {
        return Vec::new();
    }
    let entries = visible_entries(snapshot);
    let vision = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_vision_file));
    vision.map(|entry| entry.path()).collect()
}

/// Returns the blob in `folder` that a link leads to; `None` for a plain file or a link outside.
fn blob_of(file: &Path, folder: &Path) -> Option<PathBuf> {
    let blob = file.is_symlink().then(|| fs::canonicalize(file).ok()).flatten();
    blob.filter(|blob| blob.parent() == Some(folder))
}

/// Collects the blobs of `folder` that a snapshot links to.
fn collect_blobs(snapshot: &Path, folder: &Path, blobs: &mut HashSet<PathBuf>) {
    for entry in fs::read_dir(snapshot).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect_blobs(&entry.path(), folder, blobs),
            _ => blobs.extend(blob_of(&entry.path(), folder)),
        }
    }
}

/// Removes a file or link; a missing one is fine.
fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if is_in_use(&error) => Err(Error::InUse { path: path.to_owned() }),
        Err(source) => Err(Error::Disk { path: path.to_owned(), source }),
        Ok(()) => Ok(()),
    }
}

/// Windows does not delete a file that is open or mapped.
fn is_in_use(error: &io::Error) -> bool {
    const SHARING_VIOLATION: i32 = 32;
    const USER_MAPPED_FILE: i32 = 1224;
    cfg!(windows)
        && (error.kind() == ErrorKind::PermissionDenied
            || matches!(error.raw_os_error(), Some(SHARING_VIOLATION | USER_MAPPED_FILE)))
}

/// Removes the folders below `root` that a removal left empty.
fn remove_empty(removed: &Path, root: &Path) {
    for folder in removed.ancestors().take_while(|folder| *folder != root) {
        if folder.is_dir() && fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

/// Removes the rest of a repository without revisions, unless a download to it is in progress.
fn remove_rest(repository: &Path) {
    let blobs = repository.join("blobs");
    if fs::remove_dir(&blobs).is_ok() || !blobs.exists() {
        let _ = fs::remove_dir_all(repository);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::download;
    use crate::library::tests::library;
    use crate::model_path::tests::put;

    fn names(library: &Library) -> Vec<String> {
        library.installed().into_iter().map(|model| model.name).collect()
    }

    #[test]
    fn a_cached_model_is_removed_with_its_blob_and_its_neighbours_stay() {
        let (library, folder) = library();
        let repository = folder.path().join("hub/models--owner--two");
        library.remove("owner/two:two-Q4.gguf").unwrap();
        assert!(!names(&library).contains(&"owner/two:two-Q4.gguf".to_owned()));
        assert!(names(&library).contains(&"owner/two:two-Q8.gguf".to_owned()));
        // Without links there is no blob beside the file.
        assert_eq!(fs::read_dir(repository.join("blobs")).unwrap().count(), if cfg!(unix) { 1 } else { 0 });
        library.remove("owner/two:two-Q8.gguf").unwrap();
        assert!(!repository.exists());
    }

    #[test]
    fn the_last_model_of_a_repository_is_removed_with_its_vision_file() {
        let (library, folder) = library();
        let hub = folder.path().join("hub");
        for file in ["sees-Q4.gguf", "sees-Q8.gguf", "mmproj-F16.gguf"] {
            download(&hub, "owner/sees", "abc", file, 1);
        }
        let vision = hub.join("models--owner--sees/snapshots/abc/mmproj-F16.gguf");
        assert!(!names(&library).iter().any(|name| name.contains("mmproj")));
        library.remove("owner/sees:sees-Q4.gguf").unwrap();
        assert!(vision.exists());
        library.remove("owner/sees:sees-Q8.gguf").unwrap();
        assert!(!hub.join("models--owner--sees").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_blob_that_another_file_links_to_stays() {
        let (library, folder) = library();
        let repository = folder.path().join("hub/models--owner--one");
        let blob = fs::canonicalize(repository.join("snapshots/abc/one-Q4.gguf")).unwrap();
        std::os::unix::fs::symlink(&blob, repository.join("snapshots/abc/same.gguf")).unwrap();
        library.remove("owner/one:one-Q4.gguf").unwrap();
        assert_eq!(
            library.resolve("owner/one:same.gguf").unwrap(),
            repository.join("snapshots/abc/same.gguf")
        );
        assert!(blob.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_repository_is_removed_but_not_its_target() {
        let (library, folder) = library();
        let precious = folder.path().join("precious.gguf");
        put(&precious, 3);
        let other = folder.path().join("hub/models--owner--two/blobs");
        let neighbour = fs::read_dir(&other).unwrap().flatten().next().unwrap().path();
        let snapshot = folder.path().join("hub/models--owner--one/snapshots/abc");
        for (name, leads_to) in [("out.gguf", &precious), ("over.gguf", &neighbour)] {
            std::os::unix::fs::symlink(leads_to, snapshot.join(name)).unwrap();
            library.remove(&format!("owner/one:{name}")).unwrap();
            assert!(!snapshot.join(name).is_symlink() && leads_to.exists(), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_model_inside_a_linked_folder_is_refused_and_stays() {
        let (library, folder) = library();
        let outside = folder.path().join("elsewhere");
        let link = |to: &Path, at: PathBuf| std::os::unix::fs::symlink(to, at).unwrap();
        let refused = |library: &Library, id: &str| {
            let error = library.remove(id).unwrap_err();
            assert!(matches!(error, Error::Outside { .. }), "{id}: {error}");
            assert!(error.to_string().contains("nothing was removed"), "{error}");
        };
        // A folder of the person's own models.
        put(&outside.join("mine.gguf"), 3);
        link(&outside, folder.path().join("models/linked"));
        refused(&library, "linked/mine.gguf");
        // A folder within a revision, and a whole repository.
        link(&outside, folder.path().join("hub/models--owner--one/snapshots/abc/linked"));
        refused(&library, "owner/one:linked/mine.gguf");
        let two = folder.path().join("hub/models--owner--two");
        fs::rename(&two, folder.path().join("moved")).unwrap();
        link(&folder.path().join("moved"), two.clone());
        refused(&library, "owner/two:two-Q4.gguf");
        assert!(outside.join("mine.gguf").exists() && two.join("snapshots/abc/two-Q4.gguf").exists());
    }

    #[cfg(unix)]
    #[test]
    fn blobs_outside_the_cache_are_refused_and_a_repository_without_blobs_is_removed() {
        let (library, folder) = library();
        let blobs = folder.path().join("hub/models--owner--one/blobs");
        let outside = folder.path().join("elsewhere");
        fs::rename(&blobs, &outside).unwrap();
        std::os::unix::fs::symlink(&outside, &blobs).unwrap();
        assert!(matches!(library.remove("owner/one:one-Q4.gguf"), Err(Error::Outside { .. })));
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);

        let whole = folder.path().join("hub/models--owner--whole");
        put(&whole.join("snapshots/abc/m.gguf"), 3);
        library.remove("owner/whole:m.gguf").unwrap();
        assert!(!whole.exists());
    }

    #[test]
    fn a_model_outside_the_hubs_folder_is_refused_and_stays() {
        let (library, folder) = library();
        let model = folder.path().join("else/models--a--b/snapshots/abc/m.gguf");
        put(&model, 3);
        for path in [
            model.clone(),
            library.hub.join("../else/models--a--b/snapshots/abc/m.gguf"),
            library.hub.clone(),
        ] {
            assert!(matches!(library.remove_cached(&path), Err(Error::Outside { .. })), "{}", path.display());
        }
        assert!(model.exists());
    }

    #[test]
    fn only_files_that_certainly_belong_to_the_model_are_removed_from_a_mixed_folder() {
        let (library, folder) = library();
        let model = folder.path().join("models/publisher/llama");
        let own = ["notes.txt", "results.json", "prompt.jinja", "my.model", "package.json"];
        let known = [
            "generation_config.json",
            "model.safetensors.index.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "tokenizer.model",
            "special_tokens_map.json",
            "vocab.json",
            "vocab.txt",
            "merges.txt",
            "chat_template.jinja",
        ];
        own.iter().chain(&known).for_each(|name| put(&model.join(name), 1));
        library.remove("publisher/llama").unwrap();
        let mut left: Vec<_> =
            visible_entries(&model).filter_map(|e| e.file_name().into_string().ok()).collect();
        left.sort();
        assert_eq!(left, ["my.model", "notes.txt", "package.json", "prompt.jinja", "results.json"]);
    }

    #[test]
    fn a_model_is_removed_from_every_revision() {
        let (library, folder) = library();
        download(&folder.path().join("hub"), "owner/one", "older", "one-Q4.gguf", 5);
        library.remove("owner/one:one-Q4.gguf").unwrap();
        assert!(!folder.path().join("hub/models--owner--one").exists());
    }

    #[test]
    fn a_partial_download_in_the_repository_stays() {
        let (library, folder) = library();
        let partial = folder.path().join("hub/models--owner--one/blobs/def.incomplete");
        put(&partial, 3);
        library.remove("owner/one:one-Q4.gguf").unwrap();
        assert!(partial.exists());
    }

    #[test]
    fn all_parts_and_folder_models_are_removed_and_other_files_stay() {
        let (library, folder) = library();
        let models = folder.path().join("models");
        put(&models.join("split/m-00001-of-00002.gguf"), 1);
        put(&models.join("split/m-00002-of-00002.gguf"), 1);
        put(&models.join("publisher/llama/notes.md"), 1);
        library.remove("split/m-00001-of-00002.gguf").unwrap();
        assert!(!models.join("split").exists());
        library.remove("publisher/llama").unwrap();
        let left: Vec<_> = fs::read_dir(models.join("publisher/llama")).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        library.remove("local.gguf").unwrap();
        assert!(models.exists(), "the models folder itself stays");
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_file_loses_its_link_and_not_the_target() {
        let (library, folder) = library();
        let outside = folder.path().join("elsewhere.gguf");
        put(&outside, 1);
        std::os::unix::fs::symlink(&outside, folder.path().join("models/linked.gguf")).unwrap();
        library.remove("linked.gguf").unwrap();
        assert!(outside.exists() && !names(&library).contains(&"linked.gguf".to_owned()));
    }

    #[test]
    fn bundled_models_stay_and_a_typing_error_suggests_the_nearest_name() {
        let (library, _folder) = library();
        for name in crate::bundled::NAMES {
            assert!(matches!(library.remove(name), Err(Error::BundledStays(stays)) if stays == name));
        }
        let error = library.remove("owner/on:one-Q4.gguf").unwrap_err().to_string();
        assert!(error.contains("Did you mean 'owner/one:one-Q4.gguf'?"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_removed_model_that_is_open_can_still_be_read() {
        use std::io::Read;
        let (library, folder) = library();
        let mut file = fs::File::open(folder.path().join("models/local.gguf")).unwrap();
        library.remove("local.gguf").unwrap();
        assert_eq!(file.read_to_end(&mut Vec::new()).unwrap(), 4);
    }

    #[cfg(windows)]
    #[test]
    fn a_model_that_another_program_holds_is_reported_as_in_use_and_stays() {
        use std::os::windows::fs::OpenOptionsExt;
        const READ_ALONE: u32 = 1;
        let (library, folder) = library();
        let path = folder.path().join("models/local.gguf");
        let held = fs::OpenOptions::new().read(true).share_mode(READ_ALONE).open(&path).unwrap();
        let error = library.remove("local.gguf").unwrap_err();
        assert!(matches!(error, Error::InUse { .. }) && path.exists(), "{error}");
        drop(held);
        library.remove("local.gguf").unwrap();
    }

    #[test]
    fn the_models_folder_stays_when_it_becomes_empty() {
        let (library, folder) = library();
        library.remove("local.gguf").unwrap();
        library.remove("publisher/llama").unwrap();
        let models = folder.path().join("models");
        assert_eq!(fs::read_dir(&models).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_folder_model_loses_its_link_and_not_the_target() {
        let (library, folder) = library();
        let outside = folder.path().join("elsewhere");
        put(&outside.join("config.json"), 1);
        put(&outside.join("model.safetensors"), 5);
        let link = folder.path().join("models/linked");
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        library.remove("linked").unwrap();
        assert!(!link.is_symlink() && outside.join("model.safetensors").exists());
    }

    #[test]
    fn a_path_that_leads_up_from_a_revision_is_refused() {
        let (library, folder) = library();
        let repository = library.hub.join("models--owner--one");
        for path in ["snapshots/abc/../../blobs/other", "other/main/abc.gguf"] {
            let path = repository.join(path);
            put(&path, 1);
            assert!(matches!(library.remove_cached(&path), Err(Error::Outside { .. })), "{}", path.display());
            assert!(path.exists(), "{}", path.display());
        }
        drop(folder);
    }
}
