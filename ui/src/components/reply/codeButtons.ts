/** The buttons above a block of code (markdown/codeHead.ts) do what they say. */
import { copyText } from "../ui/clipboard";
import { t } from "../../messages/say";

const COPIED_MS = 1500;

/** Handles a click on such a button; false for one elsewhere. `codeOf` returns the code below a button. */
export function pressCodeButton(
  target: Element,
  wrap: () => void,
  codeOf: (copy: HTMLElement) => string,
): boolean {
  const copy = target.closest<HTMLElement>("[data-copy]");
  if (copy) void copyCode(copy, codeOf(copy));
  else if (target.closest("[data-wrap]")) wrap();
  else return false;
  return true;
}

async function copyCode(button: HTMLElement, code: string) {
  button.textContent = (await copyText(code)) ? t("common.copied") : t("reply.notCopied");
  setTimeout(() => (button.textContent = t("common.copy")), COPIED_MS);
}
