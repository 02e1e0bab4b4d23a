//! The theme of the window's decorations, menus and dialogs, which is that of the page.

use foretoken_app::ipc::Theme;
use tauri::WebviewWindow;

/// The desktop's theme.
#[derive(Debug, Clone, Copy)]
pub struct SystemTheme(Option<tauri::Theme>);

impl SystemTheme {
    /// Reads the desktop's theme. Must be called on the main thread, with a window and before a
    /// theme was set: on Linux a set theme replaces the desktop's, which does not return by itself.
    pub fn ask() -> Self {
        #[cfg(target_os = "linux")]
        if let Some(settings) = gtk::Settings::default() {
            use gtk::prelude::GtkSettingsExt;
            let dark = settings.is_gtk_application_prefer_dark_theme();
            return Self(Some(if dark { tauri::Theme::Dark } else { tauri::Theme::Light }));
        }
        Self(None)
    }

    /// Shows `theme` around the page of `window`.
    pub fn show(self, window: &WebviewWindow, theme: Theme) {
        let theme = match theme {
            Theme::System => self.0,
            Theme::Light => Some(tauri::Theme::Light),
            Theme::Dark => Some(tauri::Theme::Dark),
        };
        if let Err(error) = window.set_theme(theme) {
            tracing::warn!(%error, "the window keeps its theme");
        }
    }
}
