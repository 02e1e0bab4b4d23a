//! Foretoken's desktop shell: a window around [`App`]. Nothing clever happens here.
//!
//! - [`commands`]: the commands the page calls, each a line that passes on
//! - [`drag`]: what a person drops on the window, or opens with it; `opened`: which files these are
//! - `start`: the application, then the window, or a message; `window`: where its page may go
//! - `file_manager`: folders that are shown in it
//! - `rendering`: whether WebKit composes the page; `theme`: what is around it, light or dark; `log`: what is written where

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

#[cfg(test)]
mod bindings;
pub mod commands;
pub mod drag;
#[cfg(target_os = "linux")]
mod file_dialog;
mod file_manager;
mod log;
mod opened;
#[cfg(target_os = "linux")]
mod rendering;
mod start;
mod theme;
mod window;

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use foretoken_app::App;
use tauri::{Manager, WindowEvent};

use drag::Drags;

/// Opens the window and runs until it is closed. To be called before there is a second thread.
///
/// # Errors
/// When the system has no window to give. A data folder that cannot be used is shown in a message.
pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: nothing has started a thread so far.
    #[cfg(target_os = "linux")]
    let rendering = unsafe { rendering::Rendering::choose() };
    let drags = Drags::default();
    drags.open(&opened::files(env::args_os().skip(1), &env::current_dir().unwrap_or_default()));
    let application = tauri::Builder::default()
        .plugin(tauri_plugin_single_instance::init(|app, arguments, folder| {
            if let Some(window) = app.get_webview_window("main") {
                let _ = window.unminimize();
                let _ = window.set_focus();
            }
            app.state::<Drags>().open(&opened::files(arguments.into_iter().skip(1), Path::new(&folder)));
        }))
        .plugin(tauri_plugin_window_state::Builder::new().build())
        .plugin(tauri_plugin_dialog::init())
        .manage(drags)
        .invoke_handler(commands::handler())
        .on_window_event(|window, event| {
            if let WindowEvent::DragDrop(event) = event {
                window.state::<Drags>().hear(event);
            }
            if let WindowEvent::Destroyed = event
                && let Some(app) = window.try_state::<Arc<App>>()
            {
                app.store_rest();
            }
        })
        .setup(move |app| {
            let handle = app.handle().clone();
            let apply = move || {
                #[cfg(target_os = "linux")]
                rendering.apply();
            };
            thread::Builder::new().name("start".to_owned()).spawn(move || start::start(&handle, apply))?;
            Ok(())
        })
        .build(tauri::generate_context!())?;
    application.run(|_app, _event| {
        // Elsewhere files are arguments.
        #[cfg(target_os = "macos")]
        if let tauri::RunEvent::Opened { urls } = _event {
            let files: Vec<_> = urls.iter().filter_map(|url| url.to_file_path().ok()).collect();
            _app.state::<Drags>().open(&files);
        }
    });
    Ok(())
}
