/** Commands for the newest reply of the open conversation, and for what runs. */
import type { Message } from "../bindings/Message";
import type { App } from "../state/app.svelte";
import { isImported } from "../state/imports.svelte";
import { t } from "../messages/say";
import { named, type Command } from "./command";

/** Why nothing can be done with the newest reply; null when there is one and it is whole. */
function noReply(app: App): string | null {
  const reply = app.newestReply;
  if (reply === null) return t("command.noReply");
  if (app.reply.message?.id !== reply.id) return null;
  return t("command.unfinished");
}

/** The same for what needs its conversation, which an imported trace does not bring along. */
function noConversation(app: App, act: "regenerate" | "check"): string | null {
  const imported = isImported(app.conversations.current);
  return noReply(app) ?? (imported ? t(`command.${act}.imported`) : app.occupied);
}

/** Does it where it can be seen. */
function withReply(app: App, act: (reply: Message) => void) {
  app.view.arenaOpen = false;
  if (app.newestReply) act(app.newestReply);
}

export const REPLY_COMMANDS: readonly Command[] = [
  named({
    id: "close-arena",
    group: "window",
    keys: [{ key: "Escape" }],
    applies: ({ view }) => view.arenaOpen,
    run: ({ view }) => (view.arenaOpen = false),
  }),
  named({
    id: "close-replay",
    group: "reply",
    keys: [{ key: "Escape" }],
    applies: ({ playback }) => playback.message !== null,
    run: ({ playback }) => playback.close(),
  }),
  named({
    id: "stop",
    group: "reply",
    keys: [{ key: "Escape" }],
    applies: ({ reply, check }) => reply.active || check.running !== null,
    run: ({ reply, check }) => void (check.running === null ? reply : check).stop(),
  }),
  named({
    id: "stop-arena",
    group: "window",
    applies: ({ arena }) => arena.running,
    run: ({ arena }) => void arena.stop(),
  }),
  named({
    id: "regenerate",
    group: "reply",
    keys: [{ key: "R", command: true, shift: true }],
    obstacle: (app) => noConversation(app, "regenerate"),
    run: (app) => withReply(app, ({ id }) => void app.reply.regenerate(id)),
  }),
  named({
    id: "check",
    group: "reply",
    obstacle: (app) => noConversation(app, "check"),
    run: (app) => withReply(app, ({ id }) => void app.check.start(id)),
  }),
  named({
    id: "tokens",
    group: "reply",
    keys: [{ key: "T", command: true, shift: true }],
    obstacle: ({ newestReply }) => (newestReply ? null : t("command.noReply")),
    run: (app) => withReply(app, ({ id }) => app.view.toggleTokens(id)),
  }),
  named({
    id: "replay",
    group: "reply",
    applies: ({ playback }) => playback.message === null,
    obstacle: noReply,
    run: (app) => withReply(app, (reply) => void app.replay(reply)),
  }),
  named({
    id: "copy",
    group: "reply",
    obstacle: noReply,
    run: (app, desk) => withReply(app, desk.copyReply),
  }),
  named({
    id: "export",
    group: "reply",
    obstacle: (app) =>
      noReply(app) ?? (isImported(app.conversations.current) ? t("command.export.imported") : null),
    run: (app, desk) => withReply(app, desk.exportTrace),
  }),
];
