//! Spell checking of typed text, on Linux. The webviews of other systems do it by themselves.

use gtk::glib;
use tauri::WebviewWindow;
use webkit2gtk::{WebContextExt, WebViewExt};

/// Language if the system names none.
const FALLBACK: &str = "en_US";

/// Checks spelling in the languages of the system, as far as their dictionaries are installed.
pub fn install(window: &WebviewWindow) {
    let installed = window.with_webview(|webview| {
        let Some(context) = webview.inner().context() else { return };
        let names = glib::language_names();
        context.set_spell_checking_languages(&languages(names.iter().map(|name| name.as_str())));
        context.set_spell_checking_enabled(true);
    });
    if let Err(error) = installed {
        tracing::warn!("spelling is not checked: {error}");
    }
}

/// Returns the names that dictionaries have, such as "de_DE", of those of the system's languages.
fn languages<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let names = names.filter(|name| !["C", "POSIX"].contains(name) && !name.contains(['.', '@']));
    let mut names: Vec<_> = names.collect();
    if names.is_empty() {
        names.push(FALLBACK);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_no_character_set_and_one_is_always_there() {
        let found = |names: &[&'static str]| languages(names.iter().copied());
        assert_eq!(found(&["de_DE.UTF-8", "de_DE", "de.UTF-8", "de", "C"]), ["de_DE", "de"]);
        assert_eq!(found(&["sr_RS@latin", "C"]), ["en_US"]);
        assert_eq!(found(&[]), ["en_US"]);
    }
}
