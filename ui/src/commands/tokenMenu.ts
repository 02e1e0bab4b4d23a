/** Context menu of a reply's token. */
import type { App } from "../state/app.svelte";
import type { Desk } from "./command";
import { menuOf, type SubjectCommand } from "./subject";

/** A token with its place in a message's trace. */
export interface TokenSubject {
  message: number;
  place: NonNullable<App["view"]["selected"]>;
  text: string;
}

type TokenCommand = SubjectCommand<TokenSubject>;

const copyToken: TokenCommand = {
  id: "copy-token",
  run: (_, desk, { text }) => desk.copy(text),
};

/**
 * Selects the token, and shows the inspector unless the heatmap is docked below the conversation.
 */
const showInHeatmap: TokenCommand = {
  id: "show-in-heatmap",
  run: ({ view, panels }, _, { message, place }) => {
    view.inspect(message, place);
    if (!view.heatmapDocked) panels.show("inspector");
  },
};

export function tokenMenu(app: App, desk: Desk, token: TokenSubject) {
  return menuOf([copyToken, showInHeatmap], app, desk, token);
}
