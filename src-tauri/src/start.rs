//! Starts the application, then the window; shows a message if there is no application. The
//! decisions are in [`foretoken_app::start`].

use std::sync::{Arc, Once};

use foretoken_app::App;
use foretoken_app::ipc::Theme;
use foretoken_app::pace::Pace;
use foretoken_app::start::StartProblem;
use foretoken_library::Folders;
use tauri::{AppHandle, Manager};
use tauri_plugin_dialog::{DialogExt, MessageDialogButtons, MessageDialogKind};

use crate::log::keep_log;
use crate::login;
use crate::quick;
use crate::shortcut::QuickShortcut;
use crate::theme::SystemTheme;
use crate::tray::Tray;
use crate::updates::Updates;
use crate::window::{self, MAIN};

/// Exit code of a failed start.
const NO_START: i32 = 1;

/// Starts the application and calls `apply` once its window exists. Must be called on its own
/// thread: a message blocks until the user answers, while the main thread shows it.
pub fn start(handle: &AppHandle, apply: impl Fn() + Send + 'static) {
    let resources = handle.path().resource_dir().ok();
    let log = Once::new();
    let start = || {
        let folders = Folders::locate()?;
        folders.create()?;
        log.call_once(|| keep_log(&folders.logs()));
        expect_webview(tauri::webview_version().is_ok())?;
        App::start(folders, resources.as_deref())
    };
    let Some(app) = App::start_with_recovery(start, |problem| ask(handle, problem)) else {
        return handle.exit(NO_START);
    };
    login::follow_system(handle, &app);
    let appearance = app.settings().appearance;
    handle.manage(Arc::new(Pace::default()));
    let app = Arc::new(app);
    handle.manage(Arc::clone(&app));
    let main = handle.clone();
    let opened = handle.run_on_main_thread(move || match window::open(&main, MAIN) {
        Ok(window) => {
            let system = SystemTheme::ask();
            if appearance.theme != Theme::System {
                system.show(&window, appearance.theme);
            }
            window::zoom(&window, appearance.text_size);
            main.manage(system);
            main.state::<Tray>().start(&main, &app);
            main.state::<QuickShortcut>().follow(&main);
            main.state::<Updates>().follow(&main);
            if quick::is_wanted(&std::env::args().collect::<Vec<_>>()) {
                quick::open(&main);
            }
            apply();
        }
        Err(error) => {
            tracing::error!("the window could not be opened: {error}");
            main.exit(NO_START);
        }
    });
    if let Err(error) = opened {
        tracing::error!("the window could not be opened: {error}");
    }
}

/// Checks for WebView2, a part of Windows that can be missing; on other systems the program would
/// not start.
fn expect_webview(found: bool) -> Result<(), StartProblem> {
    const MISSING: &str = "WebView2 is missing, the part of Windows that draws Foretoken's window. Install it from \
        https://developer.microsoft.com/microsoft-edge/webview2/ and start Foretoken again. Your conversations stay \
        as they are.";
    // Tauri checks only once, so a second try would find the same.
    if found { Ok(()) } else { Err(StartProblem { text: MISSING.to_owned(), remedy: None }) }
}

/// Shows a problem and returns whether the user chose its remedy.
fn ask(handle: &AppHandle, problem: &StartProblem) -> bool {
    let quit = || "Quit".to_owned();
    let buttons = match &problem.remedy {
        Some(remedy) => MessageDialogButtons::OkCancelCustom(remedy.label().to_owned(), quit()),
        None => MessageDialogButtons::OkCustom(quit()),
    };
    let dialog = handle.dialog().message(plain(&problem.text)).title("Foretoken cannot start");
    dialog.kind(MessageDialogKind::Error).buttons(buttons).blocking_show() && problem.remedy.is_some()
}

/// Prepares a text for the dialog: a capital letter first, no format characters on Linux, no NUL.
fn plain(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let text = first.chain(letters).collect::<String>().replace('\0', "\u{fffd}");
    if cfg!(target_os = "linux") { text.replace('%', "%%") } else { text }
}
