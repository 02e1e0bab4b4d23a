//! The embedded starter pair: where its two files are. They lie among the application's resources
//! when it is installed, and in the source tree when it is run from there.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The name of the embedded target.
pub const STARTER: &str = "starter";
/// The name of the embedded draft.
pub const STARTER_DRAFT: &str = "starter-draft";

/// The places where the pair may be, the first one that has a file wins.
#[derive(Debug)]
pub(crate) struct Starter {
    places: Vec<PathBuf>,
}

impl Starter {
    /// `named` is the folder a person asked for, and then the only one; `resources` the one the
    /// application was installed with.
    pub(crate) fn new(named: Option<PathBuf>, resources: Option<&Path>) -> Self {
        if let Some(named) = named {
            return Self { places: vec![named] };
        }
        let executable = std::env::current_exe().ok();
        let beside = executable.as_deref().and_then(Path::parent);
        let above = beside.and_then(Path::parent);
        let source_tree = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        let places = [
            resources.map(|folder| folder.join("starter")),
            beside.map(|folder| folder.join("starter")),
            // Where Debian packages and AppImages put resources, and macOS bundles.
            above.map(|folder| folder.join("lib/Foretoken/starter")),
            above.map(|folder| folder.join("Resources/starter")),
            source_tree.map(|folder| folder.join("starter")),
        ];
        Self { places: places.into_iter().flatten().collect() }
    }

    /// The path of `STARTER` or `STARTER_DRAFT`; `None` for any other name.
    pub(crate) fn path(&self, name: &str) -> Option<Result<PathBuf>> {
        let file = match name {
            STARTER => "starter-target-Q8_0.gguf",
            STARTER_DRAFT => "starter-draft-Q8_0.gguf",
            _ => return None,
        };
        let found = self.places.iter().map(|place| place.join(file)).find(|path| path.is_file());
        Some(found.ok_or_else(|| Error::NoStarter { file, places: self.places.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_path::tests::put;

    #[test]
    fn the_pair_is_taken_from_the_resources_before_the_source_tree() {
        let resources = tempfile::tempdir().unwrap();
        let starter = Starter::new(None, Some(resources.path()));
        put(&resources.path().join("starter/starter-target-Q8_0.gguf"), 1);
        let target = starter.path(STARTER).unwrap().unwrap();
        assert_eq!(target, resources.path().join("starter/starter-target-Q8_0.gguf"));
        let source_tree = starter.places.last().unwrap();
        assert!(
            source_tree.with_file_name("Cargo.lock").is_file(),
            "{source_tree:?} is not in the workspace"
        );
    }

    #[test]
    fn a_folder_that_was_asked_for_is_the_only_one_looked_in() {
        let resources = tempfile::tempdir().unwrap();
        put(&resources.path().join("starter/starter-draft-Q8_0.gguf"), 1);
        let starter = Starter::new(Some("/asked/for".into()), Some(resources.path()));
        let error = starter.path(STARTER_DRAFT).unwrap().unwrap_err().to_string();
        assert!(error.contains("starter-draft-Q8_0.gguf in /asked/for."), "{error}");
        assert!(error.contains("FORETOKEN_STARTER_DIR"), "{error}");
    }

    #[test]
    fn other_names_are_not_the_starter_pair() {
        assert!(Starter::new(None, None).path("starter-target").is_none());
    }
}
