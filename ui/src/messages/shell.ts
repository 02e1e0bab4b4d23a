/**
 * Translations of the shell's English messages: the page translates known terms. Sentences of the
 * shell follow a translated one that names the kind of problem.
 */
import type { CommandError } from "../bindings/CommandError";
import { count, decimal } from "./numbers";
import { t } from "./say";

/** Known terms of the shell; `shell.test.ts` looks for them in its source. */
export const TERMS = {
  Automatic: "shell.automatic",
  software: "shell.software",
  "bit-identical to the CPU": "shell.sameBits",
  "rounds in its own way": "shell.ownRounding",
  "one tile for all rows": "shell.oneTile",
} as const;

/** Sentences with variable parts, such as a model's name. */
const SENTENCES = [
  { pattern: tokenTimes("The", "GPU"), key: "shell.gpuFaster" },
  { pattern: tokenTimes("The", "CPU"), key: "shell.cpuFaster" },
  { pattern: tokenTimes("For drafts the", "GPU"), key: "shell.draftGpuFaster" },
  { pattern: tokenTimes("For drafts the", "CPU"), key: "shell.draftCpuFaster" },
  {
    pattern: /^The GPU that was chosen is not there: (?<gpu>.+)\. Choosing automatically\.$/,
    key: "shell.gpuGoneAutomatic",
  },
  { pattern: /^The GPU that was chosen is not there: (?<gpu>.+)\.$/, key: "shell.gpuGone" },
] as const;

/** Pattern of a comparison of a GPU with the CPU, with the device chosen. */
function tokenTimes(begin: string, used: string): RegExp {
  const times = String.raw`takes (?<there>[\d.]+) ms a token, the CPU (?<here>[\d.]+) ms`;
  return new RegExp(String.raw`^${begin} GPU \((?<gpu>.+)\) ${times}: using the ${used}\.$`);
}

/** Whether a text is a term of the shell, unlike a model's name. */
export function isTerm(words: string): boolean {
  return Object.hasOwn(TERMS, words);
}

/** Translates a known term or sentence of the shell; others stay as they are. */
export function shellWords(words: string): string {
  const known = Object.entries(TERMS).find(([english]) => english === words);
  if (known) return t(known[1]);
  for (const { pattern, key } of SENTENCES) {
    const found = pattern.exec(words)?.groups;
    if (found)
      return t(key, {
        gpu: "",
        there: "",
        here: "",
        ...inLocale(found),
      });
  }
  return words;
}

/** Localises decimals: "8.8 MB", "8,8 MB". */
function inLocale(found: Record<string, string>): Record<string, string> {
  const written = (text: string) =>
    text.replace(/(?<= |^)\d+\.(\d+)(?= |$)/g, (digits, places: string) =>
      decimal(Number(digits), places.length),
    );
  return Object.fromEntries(
    Object.entries(found).map(([name, text]) => [name, name === "gpu" ? text : written(text)]),
  );
}

/**
 * Translates the known parts of a device's label: "Vulkan, AMD Radeon 780M, bit-identical to the
 * CPU".
 */
export function deviceWords(label: string): string {
  return label.split(", ").map(factWords).join(", ");
}

/** A device's short label: "CPU · 2 threads", or the name of a GPU. */
export function shortDevice(label: string): string {
  const [first = "", second] = label.split(", ").map(factWords);
  if (second === undefined) return first;
  return first === "CPU" ? `${first} · ${second}` : second;
}

function factWords(fact: string): string {
  const threads = /^(\d+) threads?$/.exec(fact)?.[1];
  return threads === undefined ? shellWords(fact) : t("shell.threads", { count: Number(threads) });
}

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
