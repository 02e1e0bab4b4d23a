//! Models that come with the program: their paths, the default target, and which one drafts for
//! which. An installed program has them among its resources, a source tree in its own folders.
//! SmolLM2 may be missing, because the source tree does not contain its weights.

use std::path::{Path, PathBuf};

use crate::folders::path_named;
use crate::{Error, Result};

/// Name of SmolLM2-135M-Instruct, the default target.
pub const SMOLLM2: &str = "smollm2";
/// Name of the draft head for SmolLM2.
pub const SMOLLM2_HEAD: &str = "smollm2-head";
/// Name of the starter, a tiny target for tests and for source trees without SmolLM2.
pub const STARTER: &str = "starter";
/// Name of the starter's draft.
pub const STARTER_DRAFT: &str = "starter-draft";

/// Names of all bundled models, in the order they are listed.
pub(crate) const NAMES: [&str; 4] = [SMOLLM2, SMOLLM2_HEAD, STARTER, STARTER_DRAFT];

/// Returns the bundled model or draft head that drafts for a target; `None` if it needs none.
pub(crate) fn draft_of(target: &str) -> Option<&'static str> {
    match target {
        SMOLLM2 => Some(SMOLLM2_HEAD),
        STARTER => Some(STARTER_DRAFT),
        _ => None,
    }
}

/// Folders that may contain the bundled models; the first one with a file wins.
#[derive(Debug)]
pub(crate) struct Bundled {
    smollm2: Vec<PathBuf>,
    starter: Vec<PathBuf>,
}

impl Bundled {
    /// Creates the list of folders. `resources` is the folder of the installed application.
    /// FORETOKEN_SMOLLM2_DIR and FORETOKEN_STARTER_DIR replace the other folders.
    pub(crate) fn new(resources: Option<&Path>) -> Self {
        let named = |variable| path_named(std::env::var_os(variable));
        Self {
            smollm2: places("smollm2", named("FORETOKEN_SMOLLM2_DIR"), resources),
            starter: places("starter", named("FORETOKEN_STARTER_DIR"), resources),
        }
    }

    /// Returns the path of a bundled model; `None` for any other name.
    pub(crate) fn path(&self, name: &str) -> Option<Result<PathBuf>> {
        let (file, places) = match name {
            SMOLLM2 => ("SmolLM2-135M-Instruct-Q4_1.gguf", &self.smollm2),
            SMOLLM2_HEAD => ("smollm2-head.gguf", &self.smollm2),
            STARTER => ("starter-target-Q8_0.gguf", &self.starter),
            STARTER_DRAFT => ("starter-draft-Q8_0.gguf", &self.starter),
            _ => return None,
        };
        let found = places.iter().map(|place| place.join(file)).find(|path| path.is_file());
        let missing = || match name {
            SMOLLM2 => Error::NoSmolLm2 { file, places: places.clone() },
            SMOLLM2_HEAD => Error::NoHead { file, places: places.clone() },
            _ => Error::NoStarter { file, places: places.clone() },
        };
        Some(found.ok_or_else(missing))
    }

    /// Returns the bundled draft of a target, if its files exist.
    pub(crate) fn draft_of(&self, target: &str) -> Option<&'static str> {
        draft_of(target).filter(|draft| matches!(self.path(draft), Some(Ok(_))))
    }

    /// Returns SmolLM2 if its files exist, else the starter.
    pub(crate) fn default_target(&self) -> &'static str {
        match self.path(SMOLLM2) {
            Some(Ok(_)) => SMOLLM2,
            _ => STARTER,
        }
    }
}

fn places(folder: &str, named: Option<PathBuf>, resources: Option<&Path>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named];
    }
    let executable = std::env::current_exe().ok();
    let beside = executable.as_deref().and_then(Path::parent);
    let above = beside.and_then(Path::parent);
    let source_tree = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let roots = [
        resources.map(Path::to_path_buf),
        beside.map(Path::to_path_buf),
        // Resource folders of Debian packages and AppImages, and of macOS bundles.
        above.map(|above| above.join("lib/Foretoken")),
        above.map(|above| above.join("Resources")),
        source_tree.map(Path::to_path_buf),
    ];
    roots.into_iter().flatten().map(|root| root.join(folder)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model_path::tests::put;

    /// Bundled models in `root/smollm2` and `root/starter` only.
    pub(crate) fn bundled_in(root: &Path) -> Bundled {
        Bundled { smollm2: vec![root.join("smollm2")], starter: vec![root.join("starter")] }
    }

    #[test]
    fn models_in_the_resources_win_over_the_source_tree() {
        let resources = tempfile::tempdir().unwrap();
        for (name, file) in [
            (SMOLLM2, "smollm2/SmolLM2-135M-Instruct-Q4_1.gguf"),
            (STARTER, "starter/starter-target-Q8_0.gguf"),
        ] {
            let path = resources.path().join(file);
            put(&path, 1);
            let [folder, _] = file.split('/').collect::<Vec<_>>()[..] else { panic!("{file}") };
            let places = places(folder, None, Some(resources.path()));
            let bundled = Bundled { smollm2: places.clone(), starter: places.clone() };
            assert_eq!(bundled.path(name).unwrap().unwrap(), path);
            let source_tree = places.last().unwrap();
            assert!(
                source_tree.with_file_name("Cargo.lock").is_file(),
                "{source_tree:?} is not in the workspace"
            );
        }
    }

    #[test]
    fn a_folder_named_by_the_environment_is_the_only_one_searched() {
        let asked = PathBuf::from("/asked/for");
        assert_eq!(places("starter", Some(asked.clone()), Some(Path::new("/resources"))), [asked]);
    }

    #[test]
    fn smollm2_is_the_default_target_if_installed_and_the_starter_otherwise() {
        let root = tempfile::tempdir().unwrap();
        let bundled = bundled_in(root.path());
        assert_eq!(bundled.default_target(), STARTER);
        let error = bundled.path(SMOLLM2).unwrap().unwrap_err().to_string();
        assert!(
            error.contains("SmolLM2-135M-Instruct-Q4_1.gguf in ") && error.contains("make model"),
            "{error}"
        );
        put(&root.path().join("smollm2/SmolLM2-135M-Instruct-Q4_1.gguf"), 1);
        assert_eq!(bundled.default_target(), SMOLLM2);
    }

    #[test]
    fn a_partial_download_is_not_taken_for_the_model() {
        let root = tempfile::tempdir().unwrap();
        for part in [".wheel.7", ".file.7", ".unpacked.7"] {
            put(&root.path().join("smollm2").join(part), 1);
        }
        assert_eq!(bundled_in(root.path()).default_target(), STARTER);
    }

    #[test]
    fn a_missing_starter_is_reported_with_the_folders_searched() {
        let root = tempfile::tempdir().unwrap();
        let error = bundled_in(root.path()).path(STARTER_DRAFT).unwrap().unwrap_err().to_string();
        let place = root.path().join("starter");
        assert!(error.contains(&format!("starter-draft-Q8_0.gguf in {}.", place.display())), "{error}");
        assert!(error.contains("FORETOKEN_STARTER_DIR"), "{error}");
    }

    #[test]
    fn bundled_targets_have_drafts_and_other_models_have_none() {
        assert_eq!((draft_of(STARTER), draft_of(SMOLLM2)), (Some(STARTER_DRAFT), Some(SMOLLM2_HEAD)));
        assert_eq!((draft_of(SMOLLM2_HEAD), draft_of("/a/model.gguf")), (None, None));
    }

    #[test]
    fn a_missing_draft_is_no_default() {
        let root = tempfile::tempdir().unwrap();
        let bundled = bundled_in(root.path());
        assert_eq!(bundled.draft_of(SMOLLM2), None);
        put(&root.path().join("smollm2/smollm2-head.gguf"), 1);
        assert_eq!(bundled.draft_of(SMOLLM2), Some(SMOLLM2_HEAD));
    }

    #[test]
    fn other_names_are_not_bundled() {
        assert!(Bundled::new(None).path("starter-target").is_none());
    }
}
