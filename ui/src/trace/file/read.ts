/**
 * Reads a trace file line by line, from an export or from the terminal. Every error is one {@link
 * TraceFileError}; tolerable faults become notices.
 */
import * as v from "valibot";
import type { Round } from "../../bindings/Round";
import { textOf } from "../text";
import { TraceFileError, excerpt, found, issueProblem, lineProblem } from "./problem";
import { DONE, HEADER, ROUND, VERSION, type Done, type Header } from "./schema";
import { t } from "../../messages/say";
import { count } from "../../messages/numbers";

export interface TraceFile {
  /** The first line; null for the terminal's output, which has none. */
  header: Header | null;
  rounds: Round[];
  /** The last line; null for a file that ends before its reply. */
  done: Done | null;
  /** Text of the reply: joined from its rounds, or from the last line if there are none. */
  text: string;
  /** Notices about the file, a sentence each. */
  notices: string[];
}

/** Duration of rounds without recorded times, so that they can be replayed. */
const ASSUMED_MS = 1;

/** Reads a whole file at once. */
export function readTrace(text: string): TraceFile {
  const reader = new TraceReader();
  for (const line of text.split("\n")) reader.take(line);
  return reader.finish();
}

export class TraceReader {
  #line = 0;
  #header: Header | null = null;
  #done: Done | null = null;
  readonly #rounds: Round[] = [];
  #missing = 0;
  #firstMissing = 0;
  #unknown = 0;
  #beyond = false;
  #untimed = false;
  /** A line of invalid JSON: truncated if it is the last one, an error if another follows. */
  #broken: { line: number; text: string } | null = null;

  /** Reads the next line, without its line break. */
  take(text: string) {
    this.#line += 1;
    if (text.trim() === "") return;
    if (this.#broken) throw this.#notJson(this.#broken);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      this.#broken = { line: this.#line, text };
      return;
    }
    this.#takeValue(value);
  }

  finish(): TraceFile {
    const empty = !this.#header && !this.#done && this.#rounds.length === 0;
    if (empty) throw this.#broken ? this.#notJson(this.#broken) : this.#noTrace();
    const joined = textOf(this.#rounds);
    const text = this.#rounds.length > 0 ? joined : (this.#done?.text ?? "");
    const parts = { header: this.#header, rounds: this.#rounds, done: this.#done, text };
    return { ...parts, notices: this.#notices(joined) };
  }

  #takeValue(value: unknown) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw lineProblem(this.#line, "", `expected a JSON object, found ${found(value)}`);
    }
    const type: unknown = "type" in value ? value.type : undefined;
    if (type !== "trace" && type !== "round" && type !== "done") {
      this.#unknown += 1;
    } else if (this.#done || (type === "trace" && (this.#header || this.#rounds.length > 0))) {
      this.#beyond = true;
    } else if (!this.#beyond) {
      if (type === "trace") this.#takeHeader(value);
      else if (type === "round") this.#takeRound(value);
      else this.#done = this.#checked(DONE, value);
    }
  }

  #takeHeader(value: object) {
    // Checked first, since fields of a newer version may have other meanings.
    const version: unknown = "version" in value ? value.version : undefined;
    if (typeof version === "number" && version > VERSION) {
      throw new TraceFileError(
        t("traceFile.newer", { version: String(VERSION), found: String(version) }),
      );
    }
    this.#header = this.#checked(HEADER, value);
  }

  #takeRound(value: object) {
    const round = this.#checked(ROUND, value);
    const last = this.#rounds.at(-1);
    this.#checkParents(round.drafted);
    this.#checkIndex(round.index, last);
    this.#rounds.push({ ...round, at_ms: this.#momentOf(round, last) });
  }

  /** Checks that every draft token follows the text or an earlier draft token of its round. */
  #checkParents(drafted: Round["drafted"]) {
    drafted.forEach(({ parent }, slot) => {
      if (parent === null || parent < slot) return;
      const expected = slot === 0 ? "null" : `null or an earlier place, 0 to ${slot - 1}`;
      const field = `drafted[${slot}].parent`;
      throw lineProblem(this.#line, field, `expected ${expected}, found ${parent}`);
    });
  }

  #checkIndex(index: number, last: Round | undefined) {
    const expected = last ? last.index + 1 : 0;
    if (index < expected) {
      throw lineProblem(this.#line, "index", `expected at least ${expected}, found ${index}`);
    }
    if (index === expected) return;
    if (this.#missing === 0) this.#firstMissing = expected;
    this.#missing += index - expected;
  }

  #momentOf({ at_ms, times }: v.InferOutput<typeof ROUND>, last: Round | undefined): number {
    const before = last?.at_ms ?? 0;
    if (at_ms === undefined) {
      this.#untimed = true;
      const spent = times.draft_ms + times.verify_ms + times.sample_ms + times.rest_ms;
      return before + (spent > 0 ? spent : ASSUMED_MS);
    }
    if (at_ms >= before) return at_ms;
    const wrong = `expected at least ${before}, when the round before it ended, found ${at_ms}`;
    throw lineProblem(this.#line, "at_ms", wrong);
  }

  #checked<Schema extends v.GenericSchema>(schema: Schema, value: object): v.InferOutput<Schema> {
    const result = v.safeParse(schema, value, { abortEarly: true });
    if (result.success) return result.output;
    throw issueProblem(this.#line, result.issues[0]);
  }

  #notices(joined: string): string[] {
    const notices: string[] = [];
    const text = this.#done?.text;
    if (this.#broken) {
      const { line } = this.#broken;
      notices.push(t("traceFile.incomplete", { line: count(line) }));
    } else if (!this.#done) {
      notices.push(t("traceFile.endsEarly"));
    }
    if (this.#rounds.length === 0) notices.push(t("traceFile.noRounds"));
    else if (this.#missing > 0) {
      notices.push(
        t("traceFile.missing", { count: this.#missing, first: count(this.#firstMissing + 1) }),
      );
    } else if (text !== undefined && text !== joined) {
      notices.push(t("traceFile.otherText"));
    }
    if (this.#untimed) {
      notices.push(t("traceFile.noTimes"));
    }
    if (this.#unknown > 0) {
      notices.push(t("traceFile.unknownLines", { count: this.#unknown }));
    }
    if (this.#beyond) notices.push(t("traceFile.more"));
    return notices;
  }

  #notJson({ line, text }: { line: number; text: string }): TraceFileError {
    if (!this.#header && this.#rounds.length === 0 && this.#unknown === 0) {
      return new TraceFileError(t("traceFile.notJson", { found: excerpt(JSON.stringify(text)) }));
    }
    return lineProblem(line, "", `expected JSON, found ${excerpt(JSON.stringify(text))}`);
  }

  #noTrace(): TraceFileError {
    const found =
      this.#unknown === 0
        ? t("traceFile.noLines")
        : t("traceFile.others", { count: count(this.#unknown) });
    return new TraceFileError(t("traceFile.otherTypes", { found }));
  }
}
