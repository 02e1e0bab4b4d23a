//! Problems of a failed start: the message, and the available remedy.

use std::path::PathBuf;

use chrono::Local;
use foretoken_library::Error as LibraryError;
use foretoken_store::{Error as StoreError, Store};

use crate::ipc::CommandError;

/// Reason why the application cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartProblem {
    /// Message: what happened and what to do.
    pub text: String,
    /// Remedy that can be applied here, besides quitting.
    pub remedy: Option<Remedy>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Renames the database and starts with a new one.
    SetAside(PathBuf),
    /// Retries, because the cause may be gone.
    TryAgain,
}

impl Remedy {
    /// Returns the label of the button.
    pub fn label(&self) -> &'static str {
        match self {
            Self::SetAside(_) => "Set it aside and start empty",
            Self::TryAgain => "Try again",
        }
    }

    /// Applies the remedy; returns a notice to show after the start, if there is one.
    pub(crate) fn apply(self) -> Result<Option<String>, StartProblem> {
        let Self::SetAside(path) = self else { return Ok(None) };
        let date = Local::now().format("%Y-%m-%d").to_string();
        let aside = Store::set_aside(&path, &date)?;
        tracing::warn!("{} was set aside as {}", path.display(), aside.display());
        Ok(Some(format!(
            "Foretoken started with an empty database. The old one was kept: {}. To go back to it, quit and rename \
             it to {}.",
            aside.display(),
            path.file_name().unwrap_or_default().display()
        )))
    }
}

impl From<StoreError> for StartProblem {
    fn from(error: StoreError) -> Self {
        let StoreError::Open { path, source } = error else {
            return Self { text: error.to_string(), remedy: Some(Remedy::TryAgain) };
        };
        match *source {
            StoreError::Damaged(found) => Self {
                text: format!(
                    "Your conversations cannot be read: {} is damaged or is no database of Foretoken ({found}). If \
                     you have a backup, quit and put it in its place. Or set the file aside and start with an empty \
                     one: it is renamed and not deleted.",
                    path.display()
                ),
                remedy: Some(Remedy::SetAside(path)),
            },
            newer @ StoreError::Newer { .. } => {
                Self { text: format!("{}: {newer}", path.display()), remedy: None }
            }
            source => Self { text: format!("{}: {source}", path.display()), remedy: Some(Remedy::TryAgain) },
        }
    }
}

impl From<LibraryError> for StartProblem {
    fn from(error: LibraryError) -> Self {
        // Without a home folder, retrying does not help.
        let remedy = (!matches!(error, LibraryError::NoHome)).then_some(Remedy::TryAgain);
        Self { text: error.to_string(), remedy }
    }
}

impl From<CommandError> for StartProblem {
    fn from(error: CommandError) -> Self {
        Self { text: error.message, remedy: Some(Remedy::TryAgain) }
    }
}
