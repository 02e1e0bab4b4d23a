/** Reads a trace file in slices, so that the page stays responsive. */
import { pause } from "./pause";
import { TraceFileError } from "./problem";
import { TraceReader, type TraceFile } from "./read";
import { t } from "../../messages/say";
import { count } from "../../messages/numbers";

/** Largest file that a page can hold; larger ones are refused. */
const MAX_BYTES = 500e6;
/** Longest line: a round takes a few thousand characters, the text of a long reply a million. */
const MAX_LINE = 16_000_000;
const CHUNK_BYTES = 1 << 20;
/** Longest time without a pause: less than a frame. */
const SLICE_MS = 8;

/** The interface of a file, or of any other blob. */
export interface Source {
  size: number;
  slice(from: number, to: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

/**
 * Reads a trace; `onProgress` receives the share read so far.
 *
 * @throws TraceFileError
 */
export async function openTrace(
  file: Source,
  onProgress: (share: number) => void = () => undefined,
): Promise<TraceFile> {
  refuse(file);
  const reader = new TraceReader();
  // Invalid bytes become replacement characters, which the reader rejects as invalid JSON.
  const decoder = new TextDecoder();
  let rest = "";
  let since = performance.now();
  for (let offset = 0; offset < file.size; offset += CHUNK_BYTES) {
    const part = file.slice(offset, offset + CHUNK_BYTES);
    const bytes = new Uint8Array(await part.arrayBuffer());
    if (offset === 0 && bytes.includes(0)) throw binary();
    const lines = decoder.decode(bytes, { stream: true }).split("\n");
    lines[0] = rest + (lines[0] ?? "");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE) throw tooLong();
    for (const line of lines) {
      reader.take(line);
      if (performance.now() - since < SLICE_MS) continue;
      onProgress(offset / file.size);
      await pause();
      since = performance.now();
    }
  }
  reader.take(rest + decoder.decode());
  return reader.finish();
}

function refuse({ size }: Source) {
  if (size === 0) {
    throw new TraceFileError(t("traceFile.empty"));
  }
  if (size <= MAX_BYTES) return;
  const found = count(Math.ceil(size / 1e6));
  throw new TraceFileError(t("traceFile.tooLarge", { found }));
}

function binary(): TraceFileError {
  return new TraceFileError(t("traceFile.binary"));
}

function tooLong(): TraceFileError {
  return new TraceFileError(t("traceFile.longLine"));
}
