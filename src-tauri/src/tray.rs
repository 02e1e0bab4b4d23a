//! The tray icon, if the settings want it: the local server's state, and a menu to open the window,
//! to switch the server, to ask a quick question and to quit. The page names its parts in the
//! person's language.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foretoken_app::App;
use foretoken_app::ipc::{ServerStatus, TrayWords};
use tauri::menu::{Menu, MenuItem, PredefinedMenuItem};
use tauri::tray::{MouseButton, MouseButtonState, TrayIcon, TrayIconBuilder, TrayIconEvent};
use tauri::{AppHandle, Manager, Wry};

use crate::closing::Closing;
use crate::quick;
use crate::window::{self, MAIN};

/// Id of the icon.
const ID: &str = "foretoken";

// Ids of the menu's items.
const OPEN: &str = "tray-open";
const SERVER: &str = "tray-server";
const SWITCH: &str = "tray-switch";
const QUICK: &str = "tray-quick";
const QUIT: &str = "tray-quit";

/// Event at which the page fetches the local server's setting, which the menu has changed.
const SERVER_CHANGED: &str = "dispatchEvent(new Event('foretoken-server'))";

/// The icon, and what it shows.
#[derive(Clone, Default)]
pub struct Tray(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// `None` until the page has named them.
    words: Option<TrayWords>,
    server: ServerStatus,
    shown: Option<Shown>,
}

/// The icon and the items of its menu.
struct Shown {
    icon: TrayIcon,
    open: MenuItem<Wry>,
    server: MenuItem<Wry>,
    switch: MenuItem<Wry>,
    quick: MenuItem<Wry>,
    quit: MenuItem<Wry>,
}

impl Tray {
    /// Follows the local server and the desktop from now on. Must be called on the main thread.
    pub fn start(&self, handle: &AppHandle, app: &App) {
        let (tray, main) = (self.clone(), handle.clone());
        app.watch_server(move |status| {
            tray.lock().server.clone_from(status);
            tray.follow(&main);
            true
        });
        #[cfg(target_os = "linux")]
        {
            let (tray, main) = (self.clone(), handle.clone());
            crate::tray_host::watch(move || tray.follow(&main));
        }
    }

    /// Sets the words of the menu.
    pub fn name(&self, handle: &AppHandle, words: TrayWords) {
        self.lock().words = Some(words);
        self.follow(handle);
    }

    /// Shows or removes the icon as the settings say, with the server's present state.
    pub fn follow(&self, handle: &AppHandle) {
        let (tray, main) = (self.clone(), handle.clone());
        if let Err(error) = handle.run_on_main_thread(move || tray.update(&main)) {
            tracing::warn!(%error, "the tray icon stays as it is");
        }
    }

    /// Returns whether the program goes on without a window: the icon is shown, and the settings
    /// want it.
    pub fn keeps_running(&self, handle: &AppHandle) -> bool {
        let wanted = |app: &App| app.settings().keep_in_tray;
        let app = handle.try_state::<Arc<App>>();
        app.is_some_and(|app| wanted(&app)) && self.lock().shown.is_some() && is_offered()
    }

    fn update(&self, handle: &AppHandle) {
        let wanted = handle.try_state::<Arc<App>>().is_some_and(|app| app.settings().tray_icon);
        let mut state = self.lock();
        let State { words, server, shown } = &mut *state;
        let Some(words) = words.as_ref().filter(|_| wanted) else {
            if shown.take().is_some() {
                handle.remove_tray_by_id(ID);
            }
            return;
        };
        if shown.is_none() {
            match Shown::build(handle) {
                Ok(built) => *shown = Some(built),
                Err(error) => tracing::warn!(%error, "the desktop shows no tray icon"),
            }
        }
        if let Some(Err(error)) = shown.as_ref().map(|shown| shown.label(words, server)) {
            tracing::warn!(%error, "the tray icon shows an old state");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    fn build(handle: &AppHandle) -> tauri::Result<Self> {
        let item = |id, enabled| MenuItem::with_id(handle, id, "", enabled, None::<&str>);
        let (open, quick, quit) = (item(OPEN, true)?, item(QUICK, true)?, item(QUIT, true)?);
        let (server, switch) = (item(SERVER, false)?, item(SWITCH, true)?);
        let line = || PredefinedMenuItem::separator(handle);
        let menu = Menu::with_items(
            handle,
            &[&open, &line()?, &server, &switch, &line()?, &quick, &line()?, &quit],
        )?;
        // On a Mac a click opens the menu.
        let builder =
            TrayIconBuilder::with_id(ID).menu(&menu).show_menu_on_left_click(cfg!(target_os = "macos"));
        let builder = if cfg!(target_os = "linux") { builder.title("Foretoken") } else { builder };
        let icon = match handle.default_window_icon() {
            Some(image) => builder.icon(image.clone()),
            None => builder,
        };
        Ok(Self { icon: icon.build(handle)?, open, server, switch, quick, quit })
    }

    fn label(&self, words: &TrayWords, server: &ServerStatus) -> tauri::Result<()> {
        let state = state(words, server);
        self.open.set_text(&words.open)?;
        // An ampersand would mark a letter.
        self.server.set_text(state.replace('&', "&&"))?;
        self.switch.set_text(if server.url.is_some() { &words.stop } else { &words.start })?;
        self.quick.set_text(&words.quick)?;
        self.quit.set_text(&words.quit)?;
        self.icon.set_tooltip(Some(format!("Foretoken\n{state}")))
    }
}

/// The server's state in words.
fn state(words: &TrayWords, server: &ServerStatus) -> String {
    match server {
        ServerStatus { url: Some(url), .. } => words.running.replace("{url}", url),
        ServerStatus { problem: Some(_), .. } => words.failed.clone(),
        ServerStatus { .. } => words.stopped.clone(),
    }
}

/// Returns whether the desktop shows tray icons.
pub fn is_offered() -> bool {
    #[cfg(target_os = "linux")]
    return crate::tray_host::exists();
    #[cfg(not(target_os = "linux"))]
    true
}

/// Does what an item of the menu says; others belong to other menus.
pub fn choose(handle: &AppHandle, item: &str) {
    match item {
        OPEN => window::raise(handle),
        SWITCH => switch_server(handle),
        QUICK => quick::open(handle),
        QUIT => handle.state::<Closing>().quit(handle),
        _ => (),
    }
}

/// Opens the window at a click on the icon.
pub fn click(handle: &AppHandle, event: &TrayIconEvent) {
    let is_left = |event: &TrayIconEvent| {
        matches!(
            event,
            TrayIconEvent::Click { button: MouseButton::Left, button_state: MouseButtonState::Up, .. }
        )
    };
    if is_left(event) && !cfg!(target_os = "macos") {
        window::raise(handle);
    }
}

/// Starts or stops the local server on a thread of its own, since its address may take time to
/// resolve.
fn switch_server(handle: &AppHandle) {
    let Some(app) = handle.try_state::<Arc<App>>().map(|app| Arc::clone(&app)) else { return };
    let starts = handle.state::<Tray>().lock().server.url.is_none();
    let handle = handle.clone();
    tauri::async_runtime::spawn_blocking(move || {
        if let Err(error) = app.switch_server(starts) {
            tracing::warn!("the local server stays as it is: {}", error.message);
        }
        if let Some(Err(error)) = handle.get_webview_window(MAIN).map(|page| page.eval(SERVER_CHANGED)) {
            tracing::warn!(%error, "the page shows an old state of the local server");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_state_has_its_address_only_while_it_runs() {
        let words = TrayWords {
            running: "Local server: {url}".to_owned(),
            stopped: "off".to_owned(),
            failed: "failed".to_owned(),
            ..TrayWords::default()
        };
        let shown = |url: Option<&str>, problem: Option<&str>| {
            let status = ServerStatus { url: url.map(str::to_owned), problem: problem.map(str::to_owned) };
            state(&words, &status)
        };
        assert_eq!(shown(Some("http://127.0.0.1:8642/v1"), None), "Local server: http://127.0.0.1:8642/v1");
        assert_eq!(shown(None, None), "off");
        assert_eq!(shown(None, Some("The port is in use.")), "failed");
    }
}
