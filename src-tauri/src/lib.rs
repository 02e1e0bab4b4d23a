//! Foretoken's desktop shell: a window around [`App`]. Nothing clever happens here.
//!
//! - [`ipc`]: every type that crosses to the page
//! - [`commands`]: the commands the page calls, each a line that passes on
//! - [`app`], [`reply`], [`settings`]: what they do, without a window
//! - [`engine`]: the thread that owns the models; [`board`]: its status and who watches it
//! - [`remote`]: what comes from the hub; [`drag`]: what a person drops on the window
//! - [`models`]: the lists of targets and drafts; [`drafts`]: which draft a target gets; [`memory`]: whether
//!   they fit
//! - `rendering`: whether WebKit composes the page; [`pace`]: how often the page is told
//! - [`error`], [`stored`]: other crates' types as the page's

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod app;
#[cfg(test)]
mod bindings;
pub mod board;
pub mod commands;
pub mod drafts;
pub mod drag;
pub mod engine;
pub mod error;
pub mod ipc;
mod lock;
pub mod memory;
pub mod models;
pub mod pace;
pub mod proof;
pub mod remote;
#[cfg(target_os = "linux")]
mod rendering;
pub mod reply;
pub mod save;
pub mod settings;
mod stored;

use std::path::Path;
use std::sync::Arc;

use foretoken_library::Folders;
use tauri::{Manager, WindowEvent};
use tracing_subscriber::EnvFilter;

pub use app::App;

/// Opens the window and runs until it is closed.
///
/// # Errors
/// When the system has no window to give, or the data folder cannot be used.
pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    tauri::Builder::default()
        .plugin(tauri_plugin_single_instance::init(|app, _, _| {
            if let Some(window) = app.get_webview_window("main") {
                let _ = window.unminimize();
                let _ = window.set_focus();
            }
        }))
        .plugin(tauri_plugin_window_state::Builder::new().build())
        .plugin(tauri_plugin_dialog::init())
        .invoke_handler(commands::handler())
        .on_window_event(|window, event| {
            if let WindowEvent::DragDrop(event) = event
                && let Some(app) = window.try_state::<Arc<App>>()
            {
                app.dragged(event);
            }
        })
        .setup(|handle| {
            let folders = Folders::locate()?;
            folders.create()?;
            keep_log(&folders.logs());
            #[cfg(target_os = "linux")]
            if let Some(window) = handle.get_webview_window("main") {
                rendering::choose(&window);
            }
            let resources = handle.path().resource_dir().ok();
            let app = App::start(folders, resources.as_deref()).map_err(|error| error.message)?;
            handle.manage(Arc::new(app));
            Ok(())
        })
        .run(tauri::generate_context!())?;
    Ok(())
}

/// Writes a log file a day into `folder` and keeps a week of them; `RUST_LOG` chooses what.
fn keep_log(folder: &Path) {
    let files = tracing_appender::rolling::Builder::new()
        .rotation(tracing_appender::rolling::Rotation::DAILY)
        .filename_prefix("foretoken")
        .filename_suffix("log")
        .max_log_files(7);
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    if let Ok(files) = files.build(folder) {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            tracing::error!("{panic}");
            default(panic);
        }));
        // Another subscriber may be set already, in tests for instance.
        let _ =
            tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(files).try_init();
    }
}
