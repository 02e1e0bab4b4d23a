/** Entries of the menu that moves a conversation: folders, no folder, and a new folder. */
import type { Conversation } from "../bindings/Conversation";
import { t } from "../messages/say";
import type { App } from "../state/app.svelte";

/** See `Action` in components/ui/action.ts; `onmoved` runs once the conversation is moved. */
export function destinations(
  { conversations: { folders } }: App,
  conversation: Conversation,
  onmoved: () => void,
) {
  const move = (folder: number | null) => void folders.move(conversation, folder).then(onmoved);
  const entry = (label: string, testid: string, run: () => void) => {
    return { label, testid, disabled: false, divided: false, run };
  };
  const into = folders.list.map(({ id, name }) => ({
    ...entry(name, `move-to-${id}`, () => move(id)),
    disabled: conversation.folder === id,
  }));
  const create = entry(t("menu.newFolder"), "move-to-new", () => {
    folders.adding = { conversation };
  });
  const out = entry(t("menu.noFolder"), "move-out", () => move(null));
  const others = conversation.folder === null ? [create] : [out, create];
  return [...into, ...others.map((other, index) => ({ ...other, divided: index === 0 }))];
}
