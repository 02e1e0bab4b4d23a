/** Actions on a folder: its context menu. */
import type { ConversationFolder } from "../bindings/ConversationFolder";
import { REGION_KEYS } from "./regionKeys";
import type { SubjectCommand } from "./subject";

type FolderCommand = SubjectCommand<ConversationFolder>;

const newChat: FolderCommand = {
  id: "new-chat-here",
  run: (app, actions, { id }) => {
    app.startNew(id);
    actions.focusComposer();
  },
};

const rename: FolderCommand = {
  id: "rename",
  keys: REGION_KEYS.conversations.rename.keys[0],
  run: ({ conversations }, _, { id }) => {
    conversations.folders.renaming = id;
  },
};

const remove: FolderCommand = {
  id: "delete-folder",
  keys: REGION_KEYS.conversations.delete.keys[0],
  divided: true,
  dangerous: true,
  run: ({ conversations }, _, folder) => void conversations.folders.delete(folder),
};

export const FOLDER_MENU = [newChat, rename, remove];
