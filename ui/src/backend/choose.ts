/** Which backend this page has: the shell's when the page runs in it, else recorded traces. */
import type { Backend } from "./backend";

export async function chooseBackend(): Promise<Backend> {
  if ("__TAURI_INTERNALS__" in window) return (await import("./tauri")).tauri;
  const { Replay } = await import("./replay");
  return new Replay(new URLSearchParams(location.search));
}
