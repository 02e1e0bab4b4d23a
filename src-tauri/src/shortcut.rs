//! The global shortcut of the quick question, if the settings have one. Its plugin, which polls the
//! display, is loaded with the first shortcut.

use std::env;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use foretoken_app::App;
use foretoken_app::ipc::ShortcutProblem;
use tauri::{AppHandle, Manager, Wry};
use tauri_plugin_global_shortcut::{
    GlobalShortcut, GlobalShortcutExt, Modifiers, Shortcut, ShortcutEvent, ShortcutState,
};

use crate::quick;

/// The registered shortcut, or why the chosen one is not registered.
#[derive(Clone, Default)]
pub struct QuickShortcut(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// As in the settings; empty for none.
    chosen: String,
    problem: Option<ShortcutProblem>,
}

impl QuickShortcut {
    pub fn problem(&self) -> Option<ShortcutProblem> {
        if is_wayland() {
            return Some(ShortcutProblem::Wayland);
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).problem
    }

    /// Registers the settings' shortcut in place of the one before.
    pub fn follow(&self, handle: &AppHandle) {
        let Some(app) = handle.try_state::<Arc<App>>() else { return };
        let chosen = app.settings().quick_shortcut;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.chosen == chosen || is_wayland() {
            return;
        }
        if let Some(plugin) = handle.try_state::<GlobalShortcut<Wry>>()
            && let Err(error) = plugin.unregister_all()
        {
            tracing::warn!(%error, "the shortcut before may still be in use");
        }
        let registered = if chosen.is_empty() { Ok(()) } else { register(handle, &chosen) };
        state.problem = registered.err();
        state.chosen = chosen;
    }
}

/// Registers a combination on the main thread, which other systems demand, and waits for that.
fn register(handle: &AppHandle, chosen: &str) -> Result<(), ShortcutProblem> {
    let (send, receive) = mpsc::channel();
    let (main, wanted) = (handle.clone(), chosen.to_owned());
    let started = handle.run_on_main_thread(move || {
        // The receiver waits.
        let _ = send.send(register_here(&main, &wanted));
    });
    let registered = started
        .map_err(|error| error.to_string())
        .and_then(|()| receive.recv().unwrap_or_else(|error| Err(error.to_string())));
    registered.map_err(|reason| {
        tracing::warn!("the shortcut {chosen} is not registered: {reason}");
        ShortcutProblem::Taken
    })
}

fn register_here(handle: &AppHandle, chosen: &str) -> Result<(), String> {
    let shortcut = parse(chosen).ok_or("it has no modifier or no key")?;
    if handle.try_state::<GlobalShortcut<Wry>>().is_none() {
        let plugin = tauri_plugin_global_shortcut::Builder::new().build();
        handle.plugin(plugin).map_err(|error| error.to_string())?;
    }
    let pressed = |handle: &AppHandle, _: &Shortcut, event: ShortcutEvent| {
        if event.state == ShortcutState::Pressed {
            quick::toggle(handle);
        }
    };
    handle.global_shortcut().on_shortcut(shortcut, pressed).map_err(|error| error.to_string())
}

/// Reads a combination such as "control+shift+Space"; `None` without a modifier other than Shift,
/// since it would take a letter from every other program.
fn parse(chosen: &str) -> Option<Shortcut> {
    let shortcut: Shortcut = chosen.parse().ok()?;
    let held = Modifiers::CONTROL | Modifiers::ALT | Modifiers::SUPER;
    shortcut.mods.intersects(held).then_some(shortcut)
}

/// Returns whether the desktop lets no program listen for keys: under Wayland, its own settings
/// run a command instead.
fn is_wayland() -> bool {
    cfg!(target_os = "linux") && env::var_os("WAYLAND_DISPLAY").is_some_and(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combination_needs_a_modifier_other_than_shift() {
        for allowed in ["control+Space", "alt+KeyQ", "shift+super+F1", "control+shift+alt+Digit1"] {
            assert!(parse(allowed).is_some(), "{allowed}");
        }
        for refused in ["", "KeyQ", "shift+KeyQ", "F1", "control", "control+", "control+Nothing"] {
            assert!(parse(refused).is_none(), "{refused}");
        }
    }
}
