/** Prints a conversation: lays it out beside the window, then opens the system's dialog. */
import { mount, unmount } from "svelte";
import type { Conversation } from "../../bindings/Conversation";
import type { App } from "../../state/app.svelte";
import PrintedConversation from "./PrintedConversation.svelte";

/** Time without a change after which the layout is complete, and the longest wait for it. */
const QUIET_MS = 300;
const PATIENCE_MS = 5000;

let leave: (() => void) | null = null;

export async function printConversation(app: App, { id }: Conversation) {
  if (app.conversations.current !== id) await app.open(id);
  const conversation = app.conversations.list.find((one) => one.id === id);
  if (app.conversations.current !== id || !conversation) return;
  leave?.();
  const { messages } = app.conversations;
  const load = (attachment: number) => app.conversations.attachment(attachment);
  const target = document.body.appendChild(document.createElement("div"));
  const shown = mount(PrintedConversation, { target, props: { conversation, messages, load } });
  const title = document.title;
  leave = () => {
    leave = null;
    removeEventListener("afterprint", done);
    document.title = title;
    void unmount(shown);
    target.remove();
  };
  const done = leave;
  addEventListener("afterprint", done);
  await settled(target);
  // Another one may be printed meanwhile.
  if (leave !== done) return;
  // Systems propose it as the name of the PDF file.
  document.title = conversation.title;
  await app.print();
}

/** Waits for highlighting, formulas, pictures and fonts. */
async function settled(root: HTMLElement) {
  await new Promise<void>((resolve) => {
    let quiet = setTimeout(finish, QUIET_MS);
    const longest = setTimeout(finish, PATIENCE_MS);
    const observer = new MutationObserver(() => {
      clearTimeout(quiet);
      quiet = setTimeout(finish, QUIET_MS);
    });
    observer.observe(root, { childList: true, subtree: true });
    function finish() {
      clearTimeout(quiet);
      clearTimeout(longest);
      observer.disconnect();
      resolve();
    }
  });
  await (document as Partial<Document>).fonts?.ready;
}
