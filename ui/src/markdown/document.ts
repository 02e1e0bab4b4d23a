/** A reply as blocks: its thinking and its answer. Follows a growing text. */
import { Section, type Block } from "./section";
import { atOnce } from "./slices";
import { thinkingIn, type Thinking } from "./thinking";

export class ReplyDocument {
  /** The thinking with its tags; empty without any. */
  thought: readonly Block[] = [];
  answer: readonly Block[] = [];
  thinking: Thinking | null = null;
  readonly #longest: number | undefined;
  #searched = 0;
  #thoughts: Section | null = null;
  #answers: Section;

  /** Blocks longer than `longest` characters are split. */
  constructor(longest?: number) {
    this.#longest = longest;
    this.#answers = new Section(0, longest);
  }

  /** Parses a text, which may only grow; `whole` means that it is complete. */
  update(text: string, whole: boolean) {
    atOnce(this.steps(text, whole));
  }

  /**
   * Parses a text like {@link update}, and yields between steps. All steps must be done before the
   * next call.
   */
  *steps(text: string, whole: boolean): Generator<void> {
    if (!this.thinking?.closed) {
      this.#findThinking(text);
      yield* this.#parseThinking(text, whole);
    }
    yield* this.#answers.steps(text, text.length, whole);
    this.answer = this.#answers.blocks;
  }

  /** Offset at which the next update starts to parse. */
  unread(whole: boolean): number {
    const grows = this.thinking?.closed === false ? this.#thoughts : this.#answers;
    return (grows ?? this.#answers).unread(whole);
  }

  /** Shows the blocks parsed so far and the rest as plain text, while steps are under way. */
  showSoFar(text: string) {
    const { thinking } = this;
    if (thinking && this.#thoughts) {
      this.thought = this.#framed(thinking, this.#thoughts.soFar(text, thinking.to));
    }
    this.answer = this.#answers.soFar(text, text.length);
  }

  #findThinking(text: string) {
    const found = thinkingIn(text, this.#searched);
    this.#searched = text.length;
    if (!found) return;
    if (!this.thinking) this.#thoughts = new Section(found.from, this.#longest);
    this.thinking = found;
    this.#answers = new Section(found.end, this.#longest);
  }

  *#parseThinking(text: string, whole: boolean): Generator<void> {
    const { thinking } = this;
    if (!thinking || !this.#thoughts) return;
    yield* this.#thoughts.steps(text, thinking.to, thinking.closed || whole);
    this.thought = this.#framed(thinking, this.#thoughts.blocks);
  }

  #framed({ from, to, end }: Thinking, blocks: readonly Block[]): Block[] {
    return [...marks(0, from), ...blocks, ...marks(to, end)];
  }

  /** Drops blocks before an offset. */
  dropBefore(text: string, before: number) {
    const grows = this.thinking?.closed === false ? this.#thoughts : this.#answers;
    grows?.dropBefore(text, before);
    this.thought = this.thought.filter(({ to }) => to > before);
  }
}

function marks(from: number, to: number): Block[] {
  if (from >= to) return [];
  return [{ branch: { tag: "marks", children: [{ kind: "syntax", from, to }] }, from, to }];
}
