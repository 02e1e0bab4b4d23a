//! Trace files that the page imported, kept in memory so that a page that is loaded again shows
//! them again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use foretoken_app::ipc::ImportedTrace;

/// Most bytes of all kept files together.
const MOST_BYTES: usize = 64 << 20;

/// Imported files, the oldest first.
#[derive(Clone, Default)]
pub struct ImportedTraces(Arc<Mutex<Files>>);

#[derive(Default)]
struct Files {
    last_id: u32,
    list: VecDeque<(ImportedTrace, String)>,
}

impl ImportedTraces {
    /// Keeps a file and returns its id; `None` if it is larger than [`MOST_BYTES`]. The oldest
    /// files are dropped to make room.
    pub fn keep(&self, name: String, text: String) -> Option<u32> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = text.len() + files.list.iter().map(|(_, text)| text.len()).sum::<usize>();
        while bytes > MOST_BYTES {
            bytes -= files.list.pop_front().map_or(0, |(_, text)| text.len());
        }
        files.last_id += 1;
        let id = files.last_id;
        files.list.push_back((ImportedTrace { id, name }, text));
        Some(id)
    }

    /// Lists the kept files, the oldest first.
    pub fn list(&self) -> Vec<ImportedTrace> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.list.iter().map(|(file, _)| file.clone()).collect()
    }

    /// Returns the contents of a kept file; nothing if it was dropped.
    pub fn text(&self, id: u32) -> Option<String> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.list.iter().find(|(file, _)| file.id == id).map(|(_, text)| text.clone())
    }

    /// Drops a file.
    pub fn forget(&self, id: u32) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.list.retain(|(file, _)| file.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(traces: &ImportedTraces) -> Vec<String> {
        traces.list().into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn imported_files_are_kept_in_order_until_they_are_closed() {
        let traces = ImportedTraces::default();
        let [first, second] =
            ["a", "b"].map(|name| traces.keep(name.to_owned(), format!("{name}!")).unwrap());
        assert_eq!((names(&traces), traces.text(second)), (vec!["a".into(), "b".into()], Some("b!".into())));
        traces.forget(first);
        assert_eq!((names(&traces), traces.text(first)), (vec!["b".into()], None));
    }

    #[test]
    fn the_oldest_files_are_dropped_beyond_64_mb_and_a_larger_one_is_not_kept() {
        let traces = ImportedTraces::default();
        let keep = |name: &str, bytes| traces.keep(name.to_owned(), "x".repeat(bytes));
        keep("old", MOST_BYTES / 2).unwrap();
        keep("newer", MOST_BYTES / 2).unwrap();
        assert_eq!(keep("too large", MOST_BYTES + 1), None);
        keep("newest", 1).unwrap();
        assert_eq!(names(&traces), ["newer", "newest"]);
    }
}
