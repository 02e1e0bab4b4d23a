//! Files that are dragged over the window, dropped on it or opened with the application. The page
//! receives them through a command's channel, since Tauri's own events would need a permission. It
//! may read the files dropped or opened last, and no others.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use foretoken_app::error::Result;
use foretoken_app::ipc::{CommandError, Dropped, ErrorCode, FILE_BYTES, FileDrag, FileKind};
use foretoken_app::observable::Observable;
use tauri::DragDropEvent;

#[derive(Clone)]
pub struct Drags {
    state: Arc<Observable<FileDrag>>,
    /// The files dropped last.
    dropped: Arc<Mutex<Vec<PathBuf>>>,
    /// A page has watched.
    is_watched: Arc<AtomicBool>,
}

impl Default for Drags {
    fn default() -> Self {
        Self {
            state: Arc::new(Observable::new(FileDrag::Left)),
            dropped: Arc::default(),
            is_watched: Arc::default(),
        }
    }
}

impl Drags {
    /// Sends `event` to the page.
    pub fn show_event(&self, event: &DragDropEvent) {
        match event {
            DragDropEvent::Enter { paths, .. } => {
                self.show(FileDrag::Over { kinds: paths.iter().map(|path| kind(path)).collect() });
            }
            DragDropEvent::Drop { paths, .. } => self.open(paths),
            DragDropEvent::Leave => self.show(FileDrag::Left),
            _ => (),
        }
    }

    /// Sends files to the page, or keeps them until there is one.
    pub fn open(&self, paths: &[PathBuf]) {
        if paths.is_empty() {
            return;
        }
        *self.dropped.lock().unwrap_or_else(PoisonError::into_inner) = paths.to_vec();
        let file = |path: &PathBuf| Dropped { path: path.display().to_string(), kind: kind(path) };
        self.show(FileDrag::Dropped { files: paths.iter().map(file).collect() });
        if self.is_watched.load(Ordering::Relaxed) {
            // A page that is opened later must not receive them again.
            self.show(FileDrag::Left);
        }
    }

    /// Watches for the page, see [`Observable::watch_from_page`].
    pub fn watch(&self, watcher: impl Fn(&FileDrag) -> bool + Send + 'static) {
        self.state.watch_from_page(watcher);
        if !self.is_watched.swap(true, Ordering::Relaxed) {
            self.show(FileDrag::Left);
        }
    }

    /// The contents of a dropped file.
    ///
    /// # Errors
    /// `NotFound` for a file that was not dropped, `BadAttachment` for one that cannot be read or
    /// is larger than [`FILE_BYTES`].
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        let dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        let found = dropped.iter().find(|dropped| dropped.display().to_string() == path).cloned();
        drop(dropped);
        let path = found.ok_or_else(|| {
            CommandError::new(ErrorCode::NotFound, "This file was not dropped on the window. Drop it again.")
        })?;
        let name = path.file_name().unwrap_or(path.as_os_str()).display().to_string();
        contents(&path, &name)
    }

    fn show(&self, drag: FileDrag) {
        self.state.update(|shown| *shown = drag);
    }
}

/// The kind of a file, by its name; a folder can be a model.
fn kind(path: &Path) -> FileKind {
    let end = path.extension().map(|end| end.to_ascii_lowercase());
    match end.as_ref().and_then(|end| end.to_str()) {
        Some("gguf" | "safetensors") => FileKind::Model,
        Some("jsonl") => FileKind::Trace,
        Some("zip") => FileKind::Conversations,
        Some("json") if holds_conversations(path) => FileKind::Conversations,
        _ if path.is_dir() => FileKind::Model,
        _ => FileKind::Attachment,
    }
}

/// Returns whether a JSON file is named like an export of conversations: ours, ChatGPT's, Open
/// WebUI's or LM Studio's.
fn holds_conversations(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let begins = ["foretoken-", "chat-export"].iter().any(|begin| name.starts_with(begin));
    begins || name == "conversations" || name.ends_with(".conversation")
}

/// The contents of a file, called `name` in errors.
///
/// # Errors
/// `BadAttachment` if it cannot be read or is larger than [`FILE_BYTES`].
pub fn contents(path: &Path, name: &str) -> Result<Vec<u8>> {
    let refused = |message: String| CommandError::new(ErrorCode::BadAttachment, message);
    let too_large =
        || refused(format!("{name} is larger than {} MB. Attach only part of it.", FILE_BYTES >> 20));
    let unreadable = |error| refused(format!("{name} could not be read: {error}. Is it still there?"));
    let facts = path.metadata().map_err(unreadable)?;
    // Reading a pipe could block forever.
    if !facts.is_file() {
        return Err(refused(format!("{name} is not a regular file.")));
    }
    if facts.len() > FILE_BYTES as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > FILE_BYTES { Err(too_large()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn drop_on(drags: &Drags, paths: &[PathBuf]) {
        drags.show_event(&DragDropEvent::Drop { paths: paths.to_vec(), position: Default::default() });
    }

    #[test]
    fn dropped_files_are_sent_once_and_not_to_a_later_page() {
        let drags = Drags::default();
        let (sender, received) = mpsc::channel();
        drags.watch(move |drag| sender.send(drag.clone()).is_ok());
        let (paths, position) = (vec!["/models/a.gguf".into()], Default::default());
        drags.show_event(&DragDropEvent::Enter { paths: paths.clone(), position });
        drags.show_event(&DragDropEvent::Over { position });
        drags.show_event(&DragDropEvent::Drop { paths, position });
        let file = Dropped { path: "/models/a.gguf".to_owned(), kind: FileKind::Model };
        let events: Vec<FileDrag> = received.try_iter().collect();
        let over = FileDrag::Over { kinds: vec![FileKind::Model] };
        assert_eq!(events, [FileDrag::Left, over, FileDrag::Dropped { files: vec![file] }, FileDrag::Left]);
        let (sender, later) = mpsc::channel();
        drags.watch(move |drag| sender.send(drag.clone()).is_ok());
        assert_eq!(later.try_iter().collect::<Vec<_>>(), [FileDrag::Left]);
    }

    #[test]
    fn files_opened_with_the_application_are_sent_once_to_the_first_page() {
        let drags = Drags::default();
        let listen = || {
            let (sender, received) = mpsc::channel();
            drags.watch(move |drag| sender.send(drag.clone()).is_ok());
            received
        };
        let of = |path: &str| FileDrag::Dropped {
            files: vec![Dropped { path: path.to_owned(), kind: FileKind::Model }],
        };
        drags.open(&[]);
        drags.open(&["/models/a.gguf".into()]);
        assert_eq!(listen().try_iter().collect::<Vec<_>>(), [of("/models/a.gguf"), FileDrag::Left]);
        let later = listen();
        drags.open(&["/models/b.gguf".into()]);
        let events: Vec<FileDrag> = later.try_iter().collect();
        assert_eq!(events, [FileDrag::Left, of("/models/b.gguf"), FileDrag::Left]);
    }

    #[test]
    fn the_kind_of_a_file_follows_from_its_name() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kind(folder.path()), FileKind::Model);
        for (name, expected) in [
            ("a.gguf", FileKind::Model),
            ("model.SAFETENSORS", FileKind::Model),
            ("a.jsonl", FileKind::Trace),
            ("export.ZIP", FileKind::Conversations),
            ("Conversations.JSON", FileKind::Conversations),
            ("1731.conversation.json", FileKind::Conversations),
            ("foretoken-a-fox.json", FileKind::Conversations),
            ("package.json", FileKind::Attachment),
            ("a.pdf", FileKind::Attachment),
            ("Makefile", FileKind::Attachment),
        ] {
            assert_eq!(kind(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn the_page_can_read_only_the_files_dropped_last() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a.txt"), folder.path().join("b.txt"));
        std::fs::write(&first, "one").unwrap();
        std::fs::write(&second, "two").unwrap();
        let drags = Drags::default();
        let read = |path: &Path| drags.read(path.to_str().unwrap());
        assert_eq!(read(&first).unwrap_err().code, ErrorCode::NotFound);
        drop_on(&drags, std::slice::from_ref(&first));
        assert_eq!((read(&first).unwrap(), read(&first).unwrap()), (b"one".to_vec(), b"one".to_vec()));
        assert_eq!(read(&second).unwrap_err().code, ErrorCode::NotFound);
        drop_on(&drags, std::slice::from_ref(&second));
        assert_eq!(read(&second).unwrap(), b"two");
        assert_eq!(read(&first).unwrap_err().code, ErrorCode::NotFound);
        std::fs::remove_file(&second).unwrap();
        assert!(read(&second).unwrap_err().message.starts_with("b.txt could not be read"));
    }

    #[test]
    fn a_huge_file_and_a_folder_are_rejected_unread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.log");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let drags = Drags::default();
        drop_on(&drags, &[path.clone(), folder.path().to_owned()]);
        let refused = drags.read(path.to_str().unwrap()).unwrap_err();
        assert_eq!(refused.message, "large.log is larger than 64 MB. Attach only part of it.");
        assert!(
            drags
                .read(folder.path().to_str().unwrap())
                .unwrap_err()
                .message
                .ends_with("is not a regular file.")
        );
    }
}
