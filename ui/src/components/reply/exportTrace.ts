/** Saves a reply's trace and shows its path. */
import type { Message } from "../../bindings/Message";
import type { App } from "../../state/app.svelte";
import { copyText } from "../ui/clipboard";
import { t } from "../../messages/say";

export async function exportTrace(app: App, reply: Message) {
  const path = await app.exportTrace(reply);
  if (path === null) return;
  app.toasts.show(t("reply.traceSaved", { path }), {
    label: t("common.copyPath"),
    run: () => void copyText(path),
  });
}
