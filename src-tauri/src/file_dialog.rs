//! The dialog for attaching files, on Linux: WebKit's own has no fitting title and lists every
//! file. The webviews of other systems have both.

use gtk::prelude::{Cast, FileChooserExt, NativeDialogExt, WidgetExt};
use gtk::{FileChooserAction, FileChooserNative, FileFilter, ResponseType, Window};
use tauri::WebviewWindow;
use webkit2gtk::{FileChooserRequest, FileChooserRequestExt, WebView, WebViewExt};

/// A MIME type that only the page's input for attachments accepts.
const ATTACHED: &str = "text/*";

/// Replaces WebKit's dialog for attachments.
pub fn install(window: &WebviewWindow) {
    let installed = window.with_webview(|webview| {
        webview.inner().connect_run_file_chooser(|view, request| {
            let attaches = request.mime_types().iter().any(|wanted| wanted == ATTACHED);
            if attaches {
                choose(view, request);
            }
            attaches
        });
    });
    if let Err(error) = installed {
        tracing::warn!("files are chosen in WebKit's own dialog: {error}");
    }
}

fn choose(view: &WebView, request: &FileChooserRequest) {
    let window = view.toplevel().and_then(|top| top.downcast::<Window>().ok());
    let dialog =
        FileChooserNative::new(Some("Attach files"), window.as_ref(), FileChooserAction::Open, None, None);
    dialog.set_select_multiple(request.selects_multiple());
    if let Some(readable) = request.mime_types_filter() {
        readable.set_name(Some("Text, code and PDF"));
        dialog.add_filter(readable);
    }
    let all = FileFilter::new();
    all.set_name(Some("All files"));
    all.add_pattern("*");
    dialog.add_filter(all);
    if dialog.run() == ResponseType::Accept {
        let names = dialog.filenames();
        let names: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
        request.select_files(&names);
    } else {
        request.cancel();
    }
}
