//! What a person drags over the window. The page is told here rather than by Tauri's own events, for
//! which it would need a permission.

use std::sync::Arc;

use foretoken_app::board::Board;
use foretoken_app::ipc::FileDrag;
use tauri::DragDropEvent;

#[derive(Clone)]
pub struct Drags(Arc<Board<FileDrag>>);

impl Default for Drags {
    fn default() -> Self {
        Self(Arc::new(Board::showing(FileDrag::Left)))
    }
}

impl Drags {
    /// Tells the page of `event`.
    pub fn hear(&self, event: &DragDropEvent) {
        match event {
            DragDropEvent::Enter { paths, .. } => self.show(FileDrag::Over { count: paths.len() as u32 }),
            DragDropEvent::Drop { paths, .. } => {
                let paths = paths.iter().map(|path| path.display().to_string()).collect();
                self.show(FileDrag::Dropped { paths });
                // So that a page that is opened later does not hear of it.
                self.show(FileDrag::Left);
            }
            DragDropEvent::Leave => self.show(FileDrag::Left),
            _ => (),
        }
    }

    /// For the page, see [`Board::watch_from_page`].
    pub fn watch(&self, watcher: impl Fn(&FileDrag) -> bool + Send + 'static) {
        self.0.watch_from_page(watcher);
    }

    fn show(&self, drag: FileDrag) {
        self.0.update(|shown| *shown = drag);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn dropped_files_are_told_once_and_not_to_a_page_that_comes_later() {
        let drags = Drags::default();
        let (sender, heard) = mpsc::channel();
        drags.watch(move |drag| sender.send(drag.clone()).is_ok());
        let (paths, position) = (vec!["/models/a.gguf".into()], Default::default());
        drags.hear(&DragDropEvent::Enter { paths: paths.clone(), position });
        drags.hear(&DragDropEvent::Over { position });
        drags.hear(&DragDropEvent::Drop { paths, position });
        let dropped = FileDrag::Dropped { paths: vec!["/models/a.gguf".to_owned()] };
        let told: Vec<FileDrag> = heard.try_iter().collect();
        assert_eq!(told, [FileDrag::Left, FileDrag::Over { count: 1 }, dropped, FileDrag::Left]);
        let (sender, later) = mpsc::channel();
        drags.watch(move |drag| sender.send(drag.clone()).is_ok());
        assert_eq!(later.try_iter().collect::<Vec<_>>(), [FileDrag::Left]);
    }
}
