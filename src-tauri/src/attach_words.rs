//! Words of the dialog for attaching files, in the page's language.

use std::sync::{Arc, Mutex, PoisonError};

/// Title, name of the filter for readable files, and name of the filter for all files. The page
/// sets them; only [`crate::file_dialog`] on Linux reads them.
#[derive(Clone, Default)]
pub struct AttachWords(Arc<Mutex<[String; 3]>>);

impl AttachWords {
    pub fn set(&self, title: String, readable: String, all: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = [title, readable, all];
    }

    #[cfg(target_os = "linux")]
    pub fn get(&self) -> [String; 3] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
