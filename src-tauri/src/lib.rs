//! Foretoken's desktop shell: a window around [`App`]. Nothing clever happens here.
//!
//! - [`commands`]: the commands the page calls, each a line that passes on
//! - [`drag`]: what a person drops on the window
//! - `start`: the application, then the window, or a message; `window`: where its page may go
//! - `rendering`: whether WebKit composes the page; `log`: what is written where

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

#[cfg(test)]
mod bindings;
pub mod commands;
pub mod drag;
mod log;
#[cfg(target_os = "linux")]
mod rendering;
mod start;
mod window;

use std::sync::Arc;
use std::thread;

use foretoken_app::App;
use tauri::{Manager, WebviewWindow, WindowEvent};

use drag::Drags;

/// Opens the window and runs until it is closed. To be called before there is a second thread.
///
/// # Errors
/// When the system has no window to give. A data folder that cannot be used is shown in a message.
pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: nothing has started a thread so far.
    #[cfg(target_os = "linux")]
    let rendering = unsafe { rendering::Rendering::choose() };
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
                && let Some(drags) = window.try_state::<Drags>()
            {
                drags.hear(event);
            }
            if let WindowEvent::Destroyed = event
                && let Some(app) = window.try_state::<Arc<App>>()
            {
                app.store_rest();
            }
        })
        .setup(move |app| {
            let handle = app.handle().clone();
            let apply = move |window: &WebviewWindow| {
                #[cfg(target_os = "linux")]
                rendering.apply(window);
            };
            thread::Builder::new().name("start".to_owned()).spawn(move || start::start(&handle, apply))?;
            Ok(())
        })
        .run(tauri::generate_context!())?;
    Ok(())
}
