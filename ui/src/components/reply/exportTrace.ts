/** Saves a reply's trace and says where it is. */
import type { Message } from "../../bindings/Message";
import type { App } from "../../state/app.svelte";
import { copyText } from "../ui/clipboard";

export async function exportTrace(app: App, reply: Message) {
  const path = await app.exportTrace(reply);
  if (path === null) return;
  app.toasts.show(`Trace saved: ${path}`, { label: "Copy path", run: () => void copyText(path) });
}
