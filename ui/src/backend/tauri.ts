/** The backend in the desktop shell. The only file that imports Tauri. */
import { Channel, invoke } from "@tauri-apps/api/core";
import type { Commands } from "../bindings/commands";
import { BackendError } from "./backend";
import { backendOver } from "./commands";

/** Replaces lone surrogates, which the shell's JSON cannot represent. */
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.replace(/\p{Surrogate}/gu, "\ufffd");
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value?.constructor !== Object) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, wellFormed(part)]));
}

/** Calls a command of the shell; an unknown name or argument is a type error. */
async function call<Name extends keyof Commands>(
  name: Name,
  args: Commands[Name]["args"],
): Promise<Commands[Name]["returns"]> {
  try {
    return await invoke<Commands[Name]["returns"]>(name, wellFormed(args) as typeof args);
  } catch (thrown) {
    throw BackendError.from(thrown);
  }
}

export const tauri = backendOver(call, (onEvent) => new Channel(onEvent));
