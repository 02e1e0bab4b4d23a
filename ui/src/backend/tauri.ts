/** The backend in the desktop shell. The only file that imports Tauri. */
import { Channel, invoke } from "@tauri-apps/api/core";
import type { Commands } from "../bindings/commands";
import { BackendError, type Backend } from "./backend";

/** Calls a command of the shell; a name or an argument that it does not have is a type error. */
async function call<Name extends keyof Commands>(
  name: Name,
  args: Commands[Name]["args"],
): Promise<Commands[Name]["returns"]> {
  try {
    return await invoke<Commands[Name]["returns"]>(name, args);
  } catch (thrown) {
    throw BackendError.from(thrown);
  }
}

export const tauri: Backend = {
  appInfo: () => call("app_info", {}),
  settings: () => call("settings", {}),
  saveSettings: (settings) => call("save_settings", { settings }),
  watchEngine: async (onStatus) => {
    await call("watch_engine", { onStatus: new Channel(onStatus) });
  },
  addModel: (path) => call("add_model", { path }),
  removeModel: async (id) => {
    await call("remove_model", { id });
  },
  chooseModelFile: () => call("choose_model_file", {}),
  conversations: () => call("list_conversations", {}),
  messages: (conversation) => call("messages", { conversation }),
  trace: (message) => call("trace", { message }),
  rename: (conversation, title) => call("rename_conversation", { conversation, title }),
  pin: (conversation, pinned) => call("pin_conversation", { conversation, pinned }),
  delete: async (conversation) => {
    await call("delete_conversation", { conversation });
  },
  restore: (conversation) => call("restore_conversation", { conversation }),
  search: (query) => call("search_messages", { query }),
  send: (conversation, text, onEvent) =>
    call("send", { conversation, text, onEvent: new Channel(onEvent) }),
  regenerate: (message, onEvent) => call("regenerate", { message, onEvent: new Channel(onEvent) }),
  stop: async () => {
    await call("stop", {});
  },
};
