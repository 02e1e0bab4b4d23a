/** Commands for one conversation, message or token: the entries of its context menu. */
import type { App } from "../state/app.svelte";
import { t, type Key } from "../messages/say";
import type { Desk } from "./command";
import { shortcut, type Keys } from "./keys";

type MenuId = Extract<Key, `menu.${string}`> extends `menu.${infer Id}` ? Id : never;

export interface SubjectCommand<Subject> {
  /** Its message, and in the page the test id `menu-ID`. */
  id: MenuId | ((subject: Subject) => MenuId);
  keys?: Keys;
  /** Whether a line separates it from the command before. */
  divided?: boolean;
  /** Why it cannot be done now; null when it can. */
  obstacle?: (app: App, subject: Subject) => string | null;
  run: (app: App, desk: Desk, subject: Subject) => void;
}

/**
 * The entries of the context menu of `subject`, as `Action` in components/ui/action.ts has them.
 */
export function menuOf<Subject>(
  commands: readonly SubjectCommand<Subject>[],
  app: App,
  desk: Desk,
  subject: Subject,
) {
  return commands.map(({ id, keys, divided, obstacle, run }) => {
    const name = typeof id === "function" ? id(subject) : id;
    const title = obstacle?.(app, subject) ?? null;
    return {
      label: t(`menu.${name}`),
      title,
      testid: `menu-${name}`,
      disabled: title !== null,
      keys: keys ? shortcut(keys) : null,
      divided: divided ?? false,
      run: () => run(app, desk, subject),
    };
  });
}
