/**
 * Locates a reply's thinking and its answer by the tags that the engine detects in chat templates.
 */
import { facts } from "../bindings/facts";

const { thinkingTags: KNOWN } = facts;

/** Offsets in the text: `<think>` from 0 to `from`, thinking to `to`, `</think>` to `end`. */
export interface Thinking {
  /** Start of the thinking after its tag; 0 if the prompt contains the tag. */
  from: number;
  to: number;
  end: number;
  /** Whether the closing tag has arrived. */
  closed: boolean;
}

const LONGEST_TAG = Math.max(...KNOWN.map(({ close }) => close.length));

/**
 * The thinking at the start of a text, or null. If the template opens it in the prompt, there is
 * only a closing tag, on a line of its own. An earlier search found no closing tag that ends before
 * `searched`.
 */
export function thinkingIn(text: string, searched = 0): Thinking | null {
  const since = Math.max(0, searched - LONGEST_TAG);
  const begin = /\S/.exec(text)?.index ?? 0;
  const opened = KNOWN.find(({ open }) => text.startsWith(open, begin));
  if (!opened) return openedByPrompt(text, since);
  const from = begin + opened.open.length;
  const to = text.indexOf(opened.close, Math.max(from, since));
  if (to < 0) return { from, to: text.length, end: text.length, closed: false };
  return { from, to, end: to + opened.close.length, closed: true };
}

function openedByPrompt(text: string, since: number): Thinking | null {
  for (const { open, close } of KNOWN) {
    const to = text.startsWith(close) ? 0 : text.indexOf(`\n${close}`, since) + 1;
    if (to === 0 && !text.startsWith(close)) continue;
    const end = to + close.length;
    const alone = end === text.length || text[end] === "\n";
    if (alone && !text.slice(0, to).includes(open)) return { from: 0, to, end, closed: true };
  }
  return null;
}
