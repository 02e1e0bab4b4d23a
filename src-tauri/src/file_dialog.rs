//! The dialog for attaching files, on Linux: WebKit's own has no fitting title and lists every
//! file. The webviews of other systems have both.

use gtk::prelude::{Cast, FileChooserExt, NativeDialogExt, WidgetExt};
use gtk::{FileChooserAction, FileChooserNative, FileFilter, ResponseType, Window};
use tauri::WebviewWindow;
use webkit2gtk::{FileChooserRequest, FileChooserRequestExt, WebView, WebViewExt};

use crate::attach_words::AttachWords;

/// A MIME type that only the page's input for attachments accepts.
const ATTACHED: &str = "text/*";

/// Replaces WebKit's dialog for attachments.
pub fn install(window: &WebviewWindow, words: AttachWords) {
    let installed = window.with_webview(move |webview| {
        webview.inner().connect_run_file_chooser(move |view, request| {
            let attaches = request.mime_types().iter().any(|wanted| wanted == ATTACHED);
            if attaches {
                choose(view, request, &words.get());
            }
            attaches
        });
    });
    if let Err(error) = installed {
        tracing::warn!("files are chosen in WebKit's own dialog: {error}");
    }
}

fn choose(view: &WebView, request: &FileChooserRequest, [title, readable, all]: &[String; 3]) {
    let window = view.toplevel().and_then(|top| top.downcast::<Window>().ok());
    let dialog = FileChooserNative::new(Some(title), window.as_ref(), FileChooserAction::Open, None, None);
    dialog.set_select_multiple(request.selects_multiple());
    if let Some(filter) = request.mime_types_filter() {
        filter.set_name(Some(readable));
        dialog.add_filter(filter);
    }
    let filter = FileFilter::new();
    filter.set_name(Some(all));
    filter.add_pattern("*");
    dialog.add_filter(filter);
    if dialog.run() == ResponseType::Accept {
        let names = dialog.filenames();
        let names: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
        request.select_files(&names);
    } else {
        request.cancel();
    }
}
