//! Foretoken's desktop shell: a window around [`App`].
//!
//! - [`commands`]: the commands that the page calls; `closing`: what happens before the window
//!   closes
//! - [`drag`]: files dropped on the window or opened with it; `opened`: files on the command line
//! - `start`: starts the application, then the window, or shows a message; `window`: where the page
//!   may navigate
//! - `file_dialog`: the dialog for attaching files on Linux; `attach_words`: its words
//! - `file_manager`: opens folders in it; `imported_traces`: trace files for a reloaded page
//! - `clipboard`: the picture in it; `notices`: notifications of the system; `preview`: sealed HTML
//!   from a reply; `printing`: the dialog for printing
//! - `reloading`: loads the page again when its process ends; `rendering`: whether WebKit
//!   composites the page; `spelling`: checks typed text on Linux
//! - `theme`: light or dark window decorations; `login`: start at login; `log`: log files
//! - `quick`: the window for a quick question; `shortcut`: its global shortcut
//! - `updates`: looks for new versions, downloads and installs them
//! - `tray`: the tray icon; `tray_host`: the part of a Linux desktop that shows it

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod attach_words;
#[cfg(test)]
mod bindings;
mod clipboard;
mod closing;
pub mod commands;
pub mod drag;
#[cfg(target_os = "linux")]
mod file_dialog;
mod file_manager;
mod imported_traces;
mod log;
mod login;
mod notices;
mod opened;
mod preview;
mod printing;
mod quick;
#[cfg(target_os = "linux")]
mod reloading;
#[cfg(target_os = "linux")]
mod rendering;
mod screenshot;
mod shortcut;
#[cfg(target_os = "linux")]
mod spelling;
mod start;
mod theme;
mod tray;
#[cfg(target_os = "linux")]
mod tray_host;
mod updates;
mod window;

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use foretoken_app::App;
use tauri::{Manager, Window, WindowEvent};
use tauri_plugin_window_state::StateFlags;

use attach_words::AttachWords;
use closing::Closing;
use drag::Drags;
use imported_traces::ImportedTraces;
use notices::Notices;
use preview::Preview;
use quick::QUICK;
use shortcut::QuickShortcut;
use tray::Tray;
use updates::Updates;

/// Opens the window and runs until it is closed. Must be called before there is a second thread.
///
/// # Errors
/// If the system has no display. A problem with the data folder is shown in a message instead.
pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: no other thread has been started yet.
    #[cfg(target_os = "linux")]
    let rendering = unsafe { rendering::Rendering::choose() };
    let drags = Drags::default();
    drags.open(&opened::files(env::args_os().skip(1), &env::current_dir().unwrap_or_default()));
    let preview = Preview::default();
    let shown = preview.clone();
    let application = tauri::Builder::default()
        .register_uri_scheme_protocol(preview::SCHEME, move |_, request| shown.respond(&request))
        .plugin(tauri_plugin_single_instance::init(|app, arguments, folder| {
            if quick::is_wanted(&arguments) {
                quick::open(app);
            } else {
                window::raise(app);
            }
            app.state::<Drags>().open(&opened::files(arguments.into_iter().skip(1), Path::new(&folder)));
        }))
        .plugin(
            tauri_plugin_window_state::Builder::new()
                .with_state_flags(kept_of_the_window())
                .with_denylist(&[QUICK])
                .build(),
        )
        .plugin(tauri_plugin_dialog::init())
        .plugin(tauri_plugin_updater::Builder::new().build())
        .plugin(tauri_plugin_autostart::Builder::new().app_name("Foretoken").build())
        .manage(drags)
        .manage(AttachWords::default())
        .manage(Closing::default())
        .manage(ImportedTraces::default())
        .manage(Notices::default())
        .manage(preview)
        .manage(QuickShortcut::default())
        .manage(Tray::default())
        .invoke_handler(commands::handler())
        .on_menu_event(|app, event| tray::choose(app, event.id().as_ref()))
        .on_tray_icon_event(|app, event| tray::click(app, &event))
        .on_window_event(|window, event| {
            if window.label() == QUICK {
                handle_quick(window, event);
            } else {
                handle_main(window, event);
            }
        })
        .setup(move |app| {
            let handle = app.handle().clone();
            app.manage(Updates::new(&handle));
            let apply = move || {
                #[cfg(target_os = "linux")]
                rendering.apply();
            };
            thread::Builder::new().name("start".to_owned()).spawn(move || start::start(&handle, apply))?;
            Ok(())
        })
        .build(tauri::generate_context!())?;
    application.run(|_app, _event| {
        // Other systems pass opened files as arguments.
        #[cfg(target_os = "macos")]
        if let tauri::RunEvent::Opened { urls } = _event {
            let files: Vec<_> = urls.iter().filter_map(|url| url.to_file_path().ok()).collect();
            _app.state::<Drags>().open(&files);
        }
    });
    Ok(())
}

/// Handles an event of the main window; its end is the program's.
fn handle_main(window: &Window, event: &WindowEvent) {
    match event {
        WindowEvent::DragDrop(event) => window.state::<Drags>().show_event(event),
        WindowEvent::CloseRequested { api, .. } => window.state::<Closing>().request(window, api),
        WindowEvent::Destroyed => {
            quick::close(window.app_handle());
            if let Some(app) = window.try_state::<Arc<App>>() {
                app.quit();
            }
            window.state::<Closing>().finish(window.app_handle());
        }
        _ => (),
    }
}

/// Handles an event of the window for a quick question, which is hidden instead of closed.
fn handle_quick(window: &Window, event: &WindowEvent) {
    if let WindowEvent::CloseRequested { api, .. } = event {
        api.prevent_close();
        quick::hide(window.app_handle());
    }
}

/// Parts of the window's state that the next start restores: not that it was hidden.
fn kept_of_the_window() -> StateFlags {
    StateFlags::all() - StateFlags::VISIBLE
}
