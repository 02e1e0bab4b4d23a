/** Errors of trace files: a sentence with what was expected, what was found, and what to do. */
import type { BaseIssue } from "valibot";
import { t } from "../../messages/say";

/** Longest quotation of a file in a message, in characters. */
const EXCERPT = 40;

export class TraceFileError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TraceFileError";
  }
}

/** The error for a line; `field` is empty if it concerns the whole line. */
export function lineProblem(line: number, field: string, wrong: string): TraceFileError {
  const given = { line: String(line), wrong };
  return new TraceFileError(
    field === "" ? t("traceFile.line", given) : t("traceFile.field", { ...given, field }),
  );
}

/** The error for an issue of the schema, whose message names the expected value. */
export function issueProblem(line: number, issue: BaseIssue<unknown>): TraceFileError {
  const field = (issue.path ?? []).reduce(
    (path, { key }) =>
      typeof key === "number" ? `${path}[${key}]` : `${path}${path && "."}${String(key)}`,
    "",
  );
  const expected = issue.received === "undefined" ? "it" : issue.message;
  return lineProblem(line, field, `expected ${expected}, found ${found(issue.input)}`);
}

/** A value as quoted in a message. */
export function found(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value === "number") return String(value);
  return excerpt(JSON.stringify(value));
}

export function excerpt(text: string): string {
  return text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text;
}
