/** Commands for the newest messages of the open conversation and for running tasks. */
import type { Message } from "../bindings/Message";
import type { App } from "../state/app.svelte";
import { siblingOf, hasBranches, wasCut } from "../state/branches";
import { isImported } from "../state/imports.svelte";
import { t } from "../messages/say";
import { named, type Command } from "./command";

/** Why commands for the newest reply are unavailable; null if there is a complete reply. */
function noReply(app: App): string | null {
  const reply = app.newestReply;
  if (reply === null) return t("command.noReply");
  if (app.reply.message?.id !== reply.id) return null;
  return t("command.unfinished");
}

/** Like {@link noReply}, for commands that need a stored conversation. */
function noConversation(app: App, act: "regenerate" | "continue" | "check"): string | null {
  const imported = isImported(app.conversations.current);
  return noReply(app) ?? (imported ? t(`command.${act}.imported`) : app.occupied);
}

/** Why no reply can be continued; null if one can. */
function notCut(app: App): string | null {
  const reply = app.newestReply;
  const cut = reply !== null && wasCut(reply) && app.conversations.messages.at(-1) === reply;
  return noConversation(app, "continue") ?? (cut ? null : t("command.continue.whole"));
}

/** The last question of a stored conversation. */
function lastQuestion({ conversations }: App): Message | undefined {
  return conversations.stored === null
    ? undefined
    : conversations.messages.findLast(({ role }) => role === "user");
}

/** The last message with siblings. */
function lastWithBranches({ conversations }: App): Message | undefined {
  return conversations.messages.findLast(hasBranches);
}

/** Shows the branch before (-1) or after (1) that of the last message with siblings. */
function branchCommand(id: "previous-branch" | "next-branch", step: -1 | 1): Command {
  const end = () => t(step < 0 ? "command.firstBranch" : "command.lastBranch");
  return named({
    id,
    group: "conversations",
    obstacle: (app) => {
      const message = lastWithBranches(app);
      if (!message) return t("command.noBranches");
      return app.occupied ?? (siblingOf(message, step) === null ? end() : null);
    },
    run: (app) => {
      const message = lastWithBranches(app);
      const beside = message ? siblingOf(message, step) : null;
      app.view.arenaOpen = false;
      if (beside !== null) void app.conversations.choose(beside);
    },
  });
}

/** Runs an action on the newest reply, with the conversation visible. */
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
    id: "close-find",
    group: "conversations",
    keys: [{ key: "Escape" }],
    applies: ({ find }) => find.open,
    run: ({ find }) => find.close(),
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
    obstacle: (app) =>
      app.conversations.unanswered ? app.occupied : noConversation(app, "regenerate"),
    run: (app) => {
      app.view.arenaOpen = false;
      const message = app.conversations.unanswered ?? app.newestReply;
      if (message) void app.reply.regenerate(message.id);
    },
  }),
  named({
    id: "continue",
    group: "reply",
    keys: [{ key: "Enter", command: true, shift: true }],
    obstacle: notCut,
    run: (app) => withReply(app, ({ id }) => void app.reply.continue(id)),
  }),
  named({
    id: "edit",
    group: "conversations",
    keys: [{ key: "E", command: true, shift: true }],
    obstacle: (app) => (lastQuestion(app) ? app.occupied : t("command.edit.none")),
    run: (app) => {
      app.view.arenaOpen = false;
      app.view.editing = lastQuestion(app)?.id ?? null;
    },
  }),
  branchCommand("previous-branch", -1),
  branchCommand("next-branch", 1),
  named({
    id: "check",
    group: "reply",
    obstacle: (app) =>
      noConversation(app, "check") ?? (app.newestReply && app.check.obstacleTo(app.newestReply)),
    run: (app) => withReply(app, ({ id }) => void app.check.start(id)),
  }),
  named({
    id: "tokens",
    group: "reply",
    keys: [{ key: "T", command: true, shift: true }],
    run: ({ view }) => view.showAllAs(view.replyView === "tokens" ? "text" : "tokens"),
  }),
  named({
    id: "drafts",
    group: "reply",
    keys: [{ key: "D", command: true, shift: true }],
    run: ({ view }) => view.unfoldDrafts(!view.showDrafts),
  }),
  named({
    id: "key",
    group: "reply",
    applies: ({ view }) => view.keyDismissed,
    run: ({ view }) => view.showKey(),
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
    run: (app, actions) => withReply(app, (reply) => actions.copyReply(reply, "markdown")),
  }),
  named({
    id: "copy-text",
    group: "reply",
    obstacle: noReply,
    run: (app, actions) => withReply(app, (reply) => actions.copyReply(reply, "text")),
  }),
  named({
    id: "export",
    group: "reply",
    obstacle: (app) =>
      noReply(app) ?? (isImported(app.conversations.current) ? t("command.export.imported") : null),
    run: (app, actions) => withReply(app, actions.exportTrace),
  }),
];
