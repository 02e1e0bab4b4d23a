/** Selects the backend: the shell's in the shell, the player elsewhere or with `?replay`. */
import type { Backend } from "./backend";

export async function chooseBackend(): Promise<Backend> {
  const options = new URLSearchParams(location.search);
  if ("__TAURI_INTERNALS__" in window && !options.has("replay")) {
    return (await import("./tauri")).tauri;
  }
  return (await import("./player")).player(options);
}
