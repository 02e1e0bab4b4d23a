/** Starts the page: selects the backend, creates the state, mounts the window. */
import "./language";
import "./softCanvas";
import "@fontsource-variable/inter/wght.css";
import "./mono.css";
import "./theme.css";
import "./app.css";
import { mount } from "svelte";
import Quick from "./Quick.svelte";
import Window from "./Window.svelte";
import { chooseBackend } from "./backend/choose";
import { frames } from "./frames";
import { showLanguage } from "./messages/locale.svelte";
import { App } from "./state/app.svelte";
import { showTheme } from "./theme";

// Placeholders until the settings are loaded; the shell has set the system's theme already.
showTheme("system");
showLanguage("system");

let backend = await chooseBackend();
const options = new URLSearchParams(location.search);
if (options.has("meter")) {
  const { Meter } = await import("./meter");
  window.foretokenMeter = new Meter(frames);
  backend = window.foretokenMeter.watch(backend);
}
const app = new App(backend);
const target = document.getElementById("app");
// Loaded before the first paint, so that panels, colours and texts do not jump.
await Promise.all([app.settings.load(), app.view.load()]);
const isQuick = options.has("quick");
if (target) mount(isQuick ? Quick : Window, { target, props: { app } });
if (!isQuick) {
  // The shell dispatches these events: before the window closes, after the tray icon's menu has
  // switched the local server, and after a quick question.
  addEventListener("foretoken-close", () => void app.quit());
  addEventListener("foretoken-server", () => void app.settings.refreshServer());
  addEventListener("foretoken-asked", () => void app.conversations.load());
  addEventListener("foretoken-open", (event) => {
    if (event instanceof CustomEvent) void app.takeOver(Number(event.detail));
  });
  void app.start();
}
