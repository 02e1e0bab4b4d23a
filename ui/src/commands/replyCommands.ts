/** Commands for the newest reply of the open conversation, and for what runs. */
import type { Message } from "../bindings/Message";
import type { App } from "../state/app.svelte";
import { isImported } from "../state/imports.svelte";
import type { Command } from "./command";

/** Why nothing can be done with the newest reply; null when there is one and it is whole. */
function noReply(app: App): string | null {
  const reply = app.newestReply;
  if (reply === null) return "There is no reply yet: ask something first.";
  if (app.reply.message?.id !== reply.id) return null;
  return "This reply is being written: stop it or wait until it finishes.";
}

/** The same for what needs its conversation, which an imported trace does not bring along. */
function noConversation(app: App, words: string): string | null {
  const imported = isImported(app.conversations.current);
  return noReply(app) ?? (imported ? `An imported trace cannot be ${words}.` : app.occupied);
}

/** Does it where it can be seen. */
function withReply(app: App, act: (reply: Message) => void) {
  app.view.arenaOpen = false;
  if (app.newestReply) act(app.newestReply);
}

export const REPLY_COMMANDS: readonly Command[] = [
  {
    id: "close-arena",
    group: "Window",
    name: "Close the arena",
    more: "back to the conversation",
    keys: [{ key: "Escape" }],
    applies: ({ view }) => view.arenaOpen,
    run: ({ view }) => (view.arenaOpen = false),
  },
  {
    id: "close-replay",
    group: "Reply",
    name: "Close the replay",
    keys: [{ key: "Escape" }],
    applies: ({ playback }) => playback.message !== null,
    run: ({ playback }) => playback.close(),
  },
  {
    id: "stop",
    group: "Reply",
    name: "Stop the reply or the check",
    more: "cancel",
    keys: [{ key: "Escape" }],
    applies: ({ reply, check }) => reply.active || check.running !== null,
    run: ({ reply, check }) => void (check.running === null ? reply : check).stop(),
  },
  {
    id: "stop-arena",
    group: "Window",
    name: "Stop the arena",
    more: "cancel",
    applies: ({ arena }) => arena.running,
    run: ({ arena }) => void arena.stop(),
  },
  {
    id: "regenerate",
    group: "Reply",
    name: "Regenerate the last reply",
    more: "again retry",
    keys: [{ key: "R", command: true, shift: true }],
    obstacle: (app) => noConversation(app, "written again"),
    run: (app) => withReply(app, ({ id }) => void app.reply.regenerate(id)),
  },
  {
    id: "check",
    group: "Reply",
    name: "Check the last reply",
    more: "compare prove without drafts",
    obstacle: (app) => noConversation(app, "checked"),
    run: (app) => withReply(app, ({ id }) => void app.check.start(id)),
  },
  {
    id: "tokens",
    group: "Reply",
    name: "Show the last reply as tokens or as text",
    more: "token view outcomes markdown",
    keys: [{ key: "T", command: true, shift: true }],
    obstacle: ({ newestReply }) =>
      newestReply ? null : "There is no reply yet: ask something first.",
    run: (app) => withReply(app, ({ id }) => app.view.toggleTokens(id)),
  },
  {
    id: "replay",
    group: "Reply",
    name: "Replay the last reply",
    more: "watch play round by round",
    applies: ({ playback }) => playback.message === null,
    obstacle: noReply,
    run: (app) => withReply(app, (reply) => void app.replay(reply)),
  },
  {
    id: "copy",
    group: "Reply",
    name: "Copy the last reply",
    more: "clipboard text",
    obstacle: noReply,
    run: (app, desk) => withReply(app, desk.copyReply),
  },
  {
    id: "export",
    group: "Reply",
    name: "Export the trace of the last reply",
    more: "save file jsonl",
    obstacle: (app) =>
      noReply(app) ??
      (isImported(app.conversations.current) ? "This trace comes from a file already." : null),
    run: (app, desk) => withReply(app, desk.exportTrace),
  },
];
