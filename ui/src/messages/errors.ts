/** Errors of commands in words. */
import type { CommandError } from "../bindings/CommandError";
import { count } from "./numbers";
import { t } from "./say";

/** An error's message by its code, with the shell's sentence as detail. */
export function errorWords({
  code,
  message,
  prompt = null,
}: Pick<CommandError, "code" | "message"> & Partial<CommandError>): string {
  if (prompt === null) return t(`error.${code}`, { detail: message });
  const size = { tokens: count(prompt.tokens), context: count(prompt.context) };
  return t(code === "message_too_long" ? "error.messageSize" : "error.chatSize", size);
}
