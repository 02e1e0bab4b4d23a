/** Context menu of a reply's token. */
import type { App } from "../state/app.svelte";
import type { WindowActions } from "./command";
import { menuOf, type SubjectCommand } from "./subject";

/** A token of a message's trace. */
export interface TokenSubject {
  message: number;
  ref: NonNullable<App["view"]["selected"]>;
  text: string;
}

type TokenCommand = SubjectCommand<TokenSubject>;

const copyToken: TokenCommand = {
  id: "copy-token",
  run: (_, actions, { text }) => actions.copy(text),
};

/**
 * Selects the token, and shows the inspector unless the heatmap is docked below the conversation.
 */
const showInHeatmap: TokenCommand = {
  id: "show-in-heatmap",
  run: ({ view, panels }, _, { message, ref }) => {
    view.inspect(message, ref);
    if (!view.heatmapDocked) panels.show("inspector");
  },
};

export function tokenMenu(app: App, actions: WindowActions, token: TokenSubject) {
  return menuOf([copyToken, showInHeatmap], app, actions, token);
}
