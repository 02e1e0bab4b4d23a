/** Actions of the buttons above a code block (markdown/codeHead.ts). */
import { copyText } from "../ui/clipboard";
import { t } from "../../messages/say";

const COPIED_MS = 1500;

/**
 * Handles a click on a button; false for other elements. `codeOf` returns the code below a button.
 */
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
