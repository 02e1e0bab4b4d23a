/** Starts the page: chooses the backend, makes the state around it, mounts the window. */
import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/inter/wght-italic.css";
import "@fontsource-variable/jetbrains-mono/wght.css";
import "./theme.css";
import "./app.css";
import { mount } from "svelte";
import Window from "./Window.svelte";
import { chooseBackend } from "./backend/choose";
import { App } from "./state/app.svelte";
import { rememberedTheme, showTheme } from "./theme";

showTheme(rememberedTheme());

const app = new App(await chooseBackend());
const target = document.getElementById("app");
// Read before the first paint, so that panels and colours do not jump.
await app.settings.load();
if (target) mount(Window, { target, props: { app } });
void app.start();
