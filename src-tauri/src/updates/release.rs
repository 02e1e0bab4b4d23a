//! The channel's description of its latest release, in the updater plugin's format.

use foretoken_app::ipc::{FoundUpdate, UpdateProblem};
use semver::Version;
use serde_json::Value;
use tauri_plugin_updater::RemoteRelease;

/// Most characters of release notes.
const NOTES: usize = 10_000;

/// A release that is newer than this program. Its description is not authenticated; the package's
/// signature is.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    shown: FoundUpdate,
    description: Value,
}

impl Release {
    /// Reads a description; `None` if its version is not newer than `current`.
    ///
    /// # Errors
    /// Returns `BadResponse` for anything else.
    pub fn newer(description: &[u8], current: &Version) -> Result<Option<Self>, UpdateProblem> {
        let bad = |error| {
            tracing::warn!("the description of the latest release cannot be read: {error}");
            UpdateProblem::BadResponse
        };
        let description: Value = serde_json::from_slice(description).map_err(bad)?;
        let release: RemoteRelease = serde_json::from_value(description.clone()).map_err(bad)?;
        if release.version <= *current {
            return Ok(None);
        }
        let notes = shortened(release.notes.unwrap_or_default().trim());
        let shown = FoundUpdate { version: release.version.to_string(), notes };
        Ok(Some(Self { shown, description }))
    }

    pub fn shown(&self) -> &FoundUpdate {
        &self.shown
    }

    pub fn version(&self) -> &str {
        &self.shown.version
    }

    /// The description as the plugin reads it.
    pub fn description(&self) -> Value {
        self.description.clone()
    }
}

/// Cuts a text after [`NOTES`] characters.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(NOTES) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(description: &Value) -> Result<Option<Release>, UpdateProblem> {
        Release::newer(description.to_string().as_bytes(), &Version::new(0, 2, 0))
    }

    fn description(version: &str) -> Value {
        let package = json!({ "url": "https://example.org/package", "signature": "c2ln" });
        json!({ "version": version, "notes": " <b>New</b>\n", "platforms": { "linux-x86_64": package } })
    }

    #[test]
    fn only_a_newer_version_is_an_update() {
        for newer in ["0.2.1", "v0.3.0", "1.0.0-beta.1", "0.10.0"] {
            assert!(read(&description(newer)).unwrap().is_some(), "{newer}");
        }
        for older in ["0.2.0", "0.1.9", "0.2.0-rc.1", "0.0.0"] {
            assert_eq!(read(&description(older)), Ok(None), "{older}");
        }
    }

    #[test]
    fn notes_are_text_and_short() {
        let found = read(&description("1.0.0")).unwrap().unwrap();
        assert_eq!((found.version(), found.shown().notes.as_str()), ("1.0.0", "<b>New</b>"));
        let mut long = description("1.0.0");
        long["notes"] = json!("ü".repeat(NOTES + 1));
        assert_eq!(read(&long).unwrap().unwrap().shown().notes.chars().count(), NOTES + 1);
        long["notes"] = json!(null);
        assert_eq!(read(&long).unwrap().unwrap().shown().notes, "");
    }

    #[test]
    fn anything_else_is_refused() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        for garbage in ["", "<html>", "null", "[]", "{}", r#"{"version":"1.0.0"}"#, &deep] {
            let read = Release::newer(garbage.as_bytes(), &Version::new(0, 2, 0));
            assert_eq!(read, Err(UpdateProblem::BadResponse), "{:.40}", garbage);
        }
        assert_eq!(read(&description("latest")), Err(UpdateProblem::BadResponse));
        assert_eq!(read(&description(&"9".repeat(100))), Err(UpdateProblem::BadResponse));
    }
}
