/** Actions on a reply: the entries of its menu and context menu. */
import type { Message } from "../bindings/Message";
import type { App } from "../state/app.svelte";
import { isImported } from "../state/imports.svelte";
import { t } from "../messages/say";
import type { WindowActions } from "./command";
import { shortcut } from "./keys";
import { branch, deleteMessage } from "./questionMenu";
import { menuOf } from "./subject";
import { keysOf } from "./table";

function isEmpty(parts: readonly Message[]): boolean {
  return parts.every(({ text }) => text === "");
}

/** The most frequent actions, in the order of the buttons below a reply. */
export function mainReplyActions(app: App, actions: WindowActions, parts: readonly Message[]) {
  const [first, last] = [parts[0], parts.at(-1)];
  if (!first || !last) return [];
  const streaming = app.reply.message?.id === last.id;
  const traceless = app.lacksTrace(last);
  const empty = !streaming && isEmpty(parts);
  // A search is in the text.
  const find = app.chatOf(last.conversation)?.find;
  const isTokens = app.view.viewOf(first.id) === "tokens" && !traceless && !find?.open;
  const regenerate = {
    label: t("reply.regenerate"),
    title: app.occupied ?? t("reply.regenerateTitle"),
    testid: "regenerate",
    disabled: app.occupied !== null,
    pressed: null,
    run: () => void app.reply.regenerate(last.id),
  };
  const copy = {
    label: t("common.copy"),
    title: null,
    testid: "copy-reply",
    disabled: false,
    pressed: null,
    run: () => actions.copyReply(last, "markdown"),
  };
  const tokens = {
    label: t("reply.tokens"),
    title: traceless ? t("reply.noTrace") : t(isTokens ? "reply.asText" : "reply.asTokens"),
    testid: "toggle-tokens",
    disabled: traceless,
    pressed: isTokens,
    run: () => {
      find?.close();
      app.view.shownAs.set(first.id, isTokens ? "text" : "tokens");
      app.view.inspect(last.id);
    },
  };
  return [
    ...(empty ? [] : [copy]),
    ...(streaming || isImported(last.conversation) ? [] : [regenerate]),
    ...(empty ? [] : [tokens]),
  ];
}

/** The other actions for a part of a reply; actions on the whole reply are at its last part. */
export function moreReplyActions(
  app: App,
  actions: WindowActions,
  message: Message,
  parts: readonly Message[],
) {
  const imported = isImported(message.conversation);
  const isLast = parts.at(-1)?.id === message.id;
  if (app.reply.message?.id === message.id) return [];
  const replaying = app.playback.message === message.id;
  const replay = {
    label: replaying ? t("replay.close") : t("reply.replay"),
    title: t("reply.replayTitle"),
    testid: "replay-open",
    disabled: app.lacksTrace(message),
    run: () => {
      if (replaying) app.playback.close();
      else void app.replay(message);
    },
  };
  const obstacle = app.check.obstacleTo(message);
  const check = {
    label: t("reply.check"),
    title: obstacle ?? t("reply.checkTitle"),
    testid: "check-reply",
    disabled: obstacle !== null,
    run: () => void app.check.start(message.id),
  };
  const drafts = {
    label: t(app.view.showDrafts ? "reply.hideDrafts" : "reply.showDrafts"),
    title: t("reply.showDraftsTitle"),
    testid: "show-drafts",
    disabled: false,
    keys: shortcut(keysOf("drafts")),
    run: () => app.view.unfoldDrafts(!app.view.showDrafts),
  };
  const copyText = {
    label: t("reply.copyText"),
    title: t("reply.copyTextTitle"),
    testid: "copy-text",
    disabled: false,
    run: () => actions.copyReply(message, "text"),
  };
  const exporting = {
    label: t("reply.export"),
    title: t("reply.exportTitle"),
    testid: "trace-export",
    disabled: app.lacksTrace(message),
    run: () => actions.exportTrace(message),
  };
  const [branching, deleting] = menuOf([branch, deleteMessage], app, actions, message);
  return [
    replay,
    ...(imported ? [] : [check]),
    ...(isLast && !isEmpty(parts) ? [drafts, copyText] : []),
    ...(imported || !branching ? [] : [{ ...branching, testid: "new-chat-from-here" }]),
    ...(imported ? [] : [exporting]),
    ...(imported || !deleting ? [] : [{ ...deleting, testid: "delete-reply" }]),
  ];
}
