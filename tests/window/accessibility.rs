//! axe findings in the real window, where text has its colours and layout, in both themes.
#![cfg(target_os = "linux")]

use foretoken_tests::window::Window;
use foretoken_tests::{nightly_or, repository};
use serde_json::json;

use crate::e2e::always_drafting;

/// A screen, and the elements to click, in order, to get there from a window that shows a
/// conversation.
pub const SCREENS: [(&str, &[&str]); 10] = [
    ("a conversation", &[]),
    ("the palette", &["palette-open"]),
    ("the settings of speculation", &["settings-open", "settings-tab-speculation"]),
    ("the settings of sampling", &["settings-open", "settings-tab-sampling"]),
    ("the presets", &["settings-open", "settings-tab-presets"]),
    ("the settings of the local server", &["settings-open", "settings-tab-server"]),
    ("the settings of data", &["settings-open", "settings-tab-data"]),
    ("installed models", &["library-open", "library-tab-installed"]),
    ("models to get", &["library-open", "library-tab-get"]),
    ("the arena", &["arena-open"]),
];

/// Serious and critical findings of axe, one line per element.
async fn findings(window: &Window) -> Vec<String> {
    let axe = std::fs::read_to_string(repository().join("ui/node_modules/axe-core/axe.min.js")).unwrap();
    window.page.execute(&axe, vec![]).await.unwrap();
    // axe treats the labels of a fixed dialog as hidden where they are below the window's edge, so
    // it checks them again where they are.
    let script = "const done = arguments[0];
        const scrolledTo = async ({ id, nodes }) => {
            if (id !== 'label-title-only') return { id, nodes };
            const remaining = [];
            for (const { target } of nodes) {
                const element = document.querySelector(target[0]);
                element.scrollIntoView({ block: 'center' });
                const { violations } = await axe.run(element, { runOnly: [id] });
                remaining.push(...violations.flatMap(({ nodes }) => nodes));
            }
            return { id, nodes: remaining };
        };
        axe.run(document, { resultTypes: ['violations'] })
            .then(({ violations }) => violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)))
            .then((grave) => Promise.all(grave.map(scrolledTo)))
            .then(
                (grave) => done(grave.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))),
                (error) => done([`axe failed: ${error.message}`]));";
    let found = window.page.execute_async(script, vec![]).await.unwrap();
    serde_json::from_value(found).unwrap()
}

async fn change_theme(window: &Window, theme: &str) {
    let script = "const { invoke } = window.__TAURI_INTERNALS__;
        const done = arguments[0];
        invoke('settings', {}).then((settings) => done(settings.appearance));";
    let mut appearance = window.page.execute_async(script, vec![]).await.unwrap();
    appearance["theme"] = json!(theme);
    window.configure(json!({ "appearance": appearance })).await;
    wait_for_theme(window, if theme == "dark" { "dark" } else { "light" }).await;
}

/// Waits until the page has the theme and the system's colours: WebKit passes on GTK's theme.
async fn wait_for_theme(window: &Window, theme: &str) {
    let script = "const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
        return [document.documentElement.dataset.theme, system];";
    window
        .wait("page and title bar have the theme", async || {
            window.page.execute(script, vec![]).await.unwrap() == json!([theme, theme])
        })
        .await;
}

#[tokio::test]
async fn what_the_system_draws_has_the_theme_of_the_page_from_the_start_and_goes_back_to_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let window = Window::open(folder.path()).await;
    wait_for_theme(&window, "light").await;
    change_theme(&window, "dark").await;
    window.close().await;
    let window = Window::open(folder.path()).await;
    wait_for_theme(&window, "dark").await;
    change_theme(&window, "system").await;
    window.close().await;
}

#[tokio::test]
async fn axe_finds_nothing_grave_on_any_screen_in_either_theme() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let window = Window::open(&data).await;
    window.ask("Tell me a story about a fox.").await;
    window.wait_for_reply(1).await;
    for theme in ["dark", "light"] {
        change_theme(&window, theme).await;
        // Outside of nightly runs, a third of the screens in the second theme.
        let every = if theme == "light" { nightly_or(1, 3) } else { 1 };
        for (screen, clicks) in SCREENS.into_iter().step_by(every) {
            window.open_page("").await;
            window.click("conversation-item").await;
            window.wait_for_reply(1).await;
            for name in clicks {
                window.click(name).await;
            }
            // Fading elements must have ended: at half opacity they have half the contrast.
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            let found = findings(&window).await;
            assert!(found.is_empty(), "{screen}, {theme}: {found:#?}");
        }
    }
    window.close().await;
}
