//! What a person drags over the window. The page is told here rather than by Tauri's own events, for
//! which it would need a permission.

use tauri::DragDropEvent;

use crate::app::App;
use crate::ipc::FileDrag;

impl App {
    /// Tells the page of `event`.
    pub fn dragged(&self, event: &DragDropEvent) {
        match event {
            DragDropEvent::Enter { paths, .. } => {
                self.show_drag(FileDrag::Over { count: paths.len() as u32 })
            }
            DragDropEvent::Drop { paths, .. } => {
                let paths = paths.iter().map(|path| path.display().to_string()).collect();
                self.show_drag(FileDrag::Dropped { paths });
                // So that a page that is opened later does not hear of it.
                self.show_drag(FileDrag::Left);
            }
            DragDropEvent::Leave => self.show_drag(FileDrag::Left),
            _ => (),
        }
    }

    pub fn watch_file_drags(&self, watcher: impl Fn(&FileDrag) -> bool + Send + 'static) {
        self.drags.watch(watcher);
    }

    fn show_drag(&self, drag: FileDrag) {
        self.drags.update(|shown| *shown = drag);
    }
}
