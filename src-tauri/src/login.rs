//! Start at login: an entry of the system that follows the setting.

use foretoken_app::App;
use foretoken_app::error::Result;
use foretoken_app::ipc::{CommandError, ErrorCode, Settings};
use tauri::AppHandle;
use tauri_plugin_autostart::ManagerExt;

/// Adds the entry, or removes it.
///
/// # Errors
/// Returns `Internal` if the system does not allow it.
pub fn start_at_login(handle: &AppHandle, wanted: bool) -> Result<()> {
    let entry = handle.autolaunch();
    let failed = |error| {
        CommandError::new(ErrorCode::Internal, format!("The start at login cannot be changed: {error}"))
    };
    if entry.is_enabled().map_err(failed)? == wanted {
        return Ok(());
    }
    if wanted { entry.enable() } else { entry.disable() }.map_err(failed)
}

/// Switches the setting off if the entry was removed outside of Foretoken.
pub fn follow_system(handle: &AppHandle, app: &App) {
    let settings = app.settings();
    if settings.start_at_login && handle.autolaunch().is_enabled().is_ok_and(|enabled| !enabled) {
        let changed = Settings { start_at_login: false, ..settings };
        if let Err(error) = app.save_settings(changed) {
            tracing::warn!("the setting to start at login stays on: {}", error.message);
        }
    }
}
