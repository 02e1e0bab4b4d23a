/** Errors of commands and of the engine in words. */
import type { CommandError } from "../bindings/CommandError";
import type { EngineMessage } from "../bindings/EngineMessage";
import { remarkWords } from "./devices";
import { count } from "./numbers";
import { t } from "./say";
import { sentence } from "./sentence";

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

/** A problem of the models or their devices, in whole sentences. */
export function engineWords(message: EngineMessage): string {
  switch (message.kind) {
    case "error":
      return errorWords({ code: message.code, message: sentence(message.detail) });
    case "device":
      return remarkWords(message.remark);
    case "shorter_context":
      return t("engine.shorter_context", { tokens: count(message.tokens) });
    default:
      return t(`engine.${message.kind}`);
  }
}
