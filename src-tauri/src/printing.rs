//! Prints the page through the system's dialog.

use tauri::WebviewWindow;

/// Opens the system's dialog; the page has laid out the conversation for paper.
///
/// # Errors
/// If the window is closed.
#[cfg(not(target_os = "linux"))]
pub fn print(window: &WebviewWindow) -> tauri::Result<()> {
    window.print()
}

/// Opens the system's dialog above the window. WebKitGTK takes margins from the dialog instead of
/// the page.
///
/// # Errors
/// If the window is closed.
#[cfg(target_os = "linux")]
pub fn print(window: &WebviewWindow) -> tauri::Result<()> {
    use gtk::prelude::{Cast, WidgetExt};
    use webkit2gtk::{PrintOperation, PrintOperationExt, WebViewExt};

    window.with_webview(|webview| {
        let view = webview.inner();
        let operation = PrintOperation::new(&view);
        operation.set_page_setup(&paper());
        let settings = gtk::PrintSettings::new();
        settings.set("output-basename", Some(&file_name(view.title().as_deref().unwrap_or_default())));
        operation.set_print_settings(&settings);
        let parent = view.toplevel().and_then(|widget| widget.downcast::<gtk::Window>().ok());
        operation.run_dialog(parent.as_ref());
    })
}

/// The usual paper, with margins as in the page's style.
#[cfg(target_os = "linux")]
fn paper() -> gtk::PageSetup {
    const MARGIN_MM: f64 = 18.0;
    let paper = gtk::PageSetup::new();
    paper.set_top_margin(MARGIN_MM, gtk::Unit::Mm);
    paper.set_bottom_margin(MARGIN_MM, gtk::Unit::Mm);
    paper.set_left_margin(MARGIN_MM, gtk::Unit::Mm);
    paper.set_right_margin(MARGIN_MM, gtk::Unit::Mm);
    paper
}

/// Proposed name of a PDF file, without its ending.
#[cfg(target_os = "linux")]
fn file_name(title: &str) -> String {
    let name: String = title.chars().filter(|letter| !letter.is_control()).take(80).collect();
    name.replace('/', "-").trim().trim_start_matches('.').to_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_has_no_path() {
        assert_eq!(file_name("../a/b\0c\n"), "-a-bc");
        assert_eq!(file_name(&"ä".repeat(200)).chars().count(), 80);
    }
}
