/** Commands for one conversation, message or token, as entries of its context menu. */
import type { App } from "../state/app.svelte";
import { t, type Key } from "../messages/say";
import type { WindowActions } from "./command";
import { shortcut, type Keys } from "./keys";

type MenuId = Extract<Key, `menu.${string}`> extends `menu.${infer Id}` ? Id : never;

export interface SubjectCommand<Subject> {
  /** Key of the command's message; on the page the test id is `menu-ID`. */
  id: MenuId | ((subject: Subject) => MenuId);
  keys?: Keys;
  /** Whether a line separates the command from the one before. */
  divided?: boolean;
  /** Whether the command destroys something. */
  dangerous?: boolean;
  /** Why the command is unavailable; null if it is available. */
  obstacle?: (app: App, subject: Subject) => string | null;
  run: (app: App, actions: WindowActions, subject: Subject) => void;
}

/** Entries of the context menu of `subject`, see `Action` in components/ui/action.ts. */
export function menuOf<Subject>(
  commands: readonly SubjectCommand<Subject>[],
  app: App,
  actions: WindowActions,
  subject: Subject,
) {
  return commands.map(({ id, keys, divided, dangerous, obstacle, run }) => {
    const name = typeof id === "function" ? id(subject) : id;
    const title = obstacle?.(app, subject) ?? null;
    return {
      label: t(`menu.${name}`),
      title,
      testid: `menu-${name}`,
      disabled: title !== null,
      keys: keys ? shortcut(keys) : null,
      divided: divided ?? false,
      dangerous: dangerous ?? false,
      run: () => run(app, actions, subject),
    };
  });
}
