//! The theme of what the system draws around the page: the title bar, menus, dialogs. It is the one chosen for the page.

use foretoken_app::ipc::Theme;
use tauri::WebviewWindow;

/// What "the system's theme" is.
#[derive(Debug, Clone, Copy)]
pub struct SystemTheme(Option<tauri::Theme>);

impl SystemTheme {
    /// As the desktop has it. To be asked on the main thread, when there is a window and before a theme was shown: on
    /// Linux a theme that was chosen takes the place of the desktop's, which would not come back by itself.
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
