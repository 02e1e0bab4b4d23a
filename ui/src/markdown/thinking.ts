/**
 * Where a reply's thinking ends and its answer begins, by the tags its model was taught. The tags
 * are those the engine knows from chat templates.
 */
import { facts } from "../bindings/facts";

const { thinkingTags: KNOWN } = facts;

/** Places in the text: `<think>` from 0 to `from`, thought to `to`, `</think>` to `end`. */
export interface Thinking {
  /** Where the thinking begins, behind its tag; 0 where the prompt had the tag. */
  from: number;
  to: number;
  end: number;
  /** Whether the closing tag has come. */
  closed: boolean;
}

const LONGEST_TAG = Math.max(...KNOWN.map(({ close }) => close.length));

/**
 * The thinking at the start of a text; null where there is none. Some templates open it in the
 * prompt: then there is a closing tag only, on a line of its own. No closing tag ends before
 * `searched`, as an earlier search of this text's beginning has shown.
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
