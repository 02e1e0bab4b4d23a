/** Context menu of a question. */
import type { Message } from "../bindings/Message";
import type { App } from "../state/app.svelte";
import { isImported } from "../state/imports.svelte";
import { menuOf, type SubjectCommand } from "./subject";
import type { WindowActions } from "./command";

type MessageCommand = SubjectCommand<Message>;

const occupied = ({ occupied }: App) => occupied;

const copy: MessageCommand = {
  id: "copy",
  run: (_, actions, { text }) => actions.copy(text),
};

const answer: MessageCommand = {
  id: "answer",
  obstacle: occupied,
  run: ({ reply }, _, { id }) => void reply.regenerate(id),
};

const edit: MessageCommand = {
  id: "edit",
  obstacle: occupied,
  run: ({ view }, _, { id }) => (view.editing = id),
};

/** Starts the model's context at this message. */
const setContextStart: MessageCommand = {
  id: "see-from",
  divided: true,
  obstacle: occupied,
  run: ({ conversations }, _, { id }) => void conversations.setContextStart(id),
};

/** Copies the conversation up to a message into a new one. Also in the menu of replies. */
export const branch: MessageCommand = {
  id: "branch",
  obstacle: occupied,
  run: (app, _, { id, conversation }) => {
    const home = app.conversations.list.find((one) => one.id === conversation);
    if (home) void app.duplicate(home, id);
  },
};

/** Deletes a message and everything after it. Also in the menu of replies. */
export const deleteMessage: MessageCommand = {
  id: "delete",
  divided: true,
  dangerous: true,
  obstacle: occupied,
  run: ({ conversations }, _, message) => void conversations.deleteMessage(message),
};

/** Entries for a question; a question of an imported trace can only be copied. */
export function questionMenu(app: App, actions: WindowActions, message: Message) {
  const unanswered = app.conversations.unanswered?.id === message.id ? [answer] : [];
  const stored = [...unanswered, edit, setContextStart, branch, deleteMessage];
  const commands = isImported(message.conversation) ? [copy] : [copy, ...stored];
  return menuOf(commands, app, actions, message);
}
