/** Actions on a conversation: its context menu, and commands for the open one. */
import type { Conversation } from "../bindings/Conversation";
import { REGION_KEYS } from "./regionKeys";
import type { SubjectCommand } from "./subject";

type ConversationCommand = SubjectCommand<Conversation>;

export const rename: ConversationCommand = {
  id: "rename",
  keys: REGION_KEYS.conversations.rename.keys[0],
  run: ({ view }, actions, { id, folder }) => {
    actions.showConversations();
    if (folder !== null) view.folders.open(folder);
    view.renaming = id;
  },
};

export const openBeside: ConversationCommand = {
  id: "open-beside",
  run: (app, actions, { id }) => {
    void app.openBeside(id);
    actions.focusComposer();
  },
};

export const pin: ConversationCommand = {
  id: ({ pinned }) => (pinned ? "unpin" : "pin"),
  run: ({ conversations }, _, conversation) => void conversations.togglePin(conversation),
};

export const move: ConversationCommand = {
  id: "move",
  keys: REGION_KEYS.conversations.move.keys[0],
  run: ({ view }, actions, { id, folder }) => {
    actions.showConversations();
    if (folder !== null) view.folders.open(folder);
    view.moving = id;
  },
};

export const duplicate: ConversationCommand = {
  id: "duplicate",
  obstacle: ({ occupied }) => occupied,
  run: (app, _, conversation) => void app.duplicate(conversation),
};

export const exportMarkdown: ConversationCommand = {
  id: "export-markdown",
  divided: true,
  run: ({ exchange }, _, { id }) => void exchange.export(id, "markdown"),
};

export const exportJson: ConversationCommand = {
  id: "export-json",
  run: ({ exchange }, _, { id }) => void exchange.export(id, "json"),
};

export const print: ConversationCommand = {
  id: "print",
  obstacle: ({ occupied }) => occupied,
  run: (_, actions, conversation) => actions.print(conversation),
};

export const remove: ConversationCommand = {
  id: "delete",
  keys: REGION_KEYS.conversations.delete.keys[0],
  divided: true,
  dangerous: true,
  run: (app, _, conversation) => void app.delete(conversation),
};

export const CONVERSATION_MENU = [
  rename,
  pin,
  move,
  openBeside,
  duplicate,
  exportMarkdown,
  exportJson,
  print,
  remove,
];
