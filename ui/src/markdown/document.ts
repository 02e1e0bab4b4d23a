/** A reply as blocks: what the model thought, then its answer. Follows a text that grows. */
import { Section, type Block } from "./section";
import { atOnce } from "./slices";
import { thinkingIn, type Thinking } from "./thinking";

export class ReplyDocument {
  /** The thinking with its tags; empty where there is none. */
  thought: readonly Block[] = [];
  answer: readonly Block[] = [];
  thinking: Thinking | null = null;
  readonly #longest: number | undefined;
  #searched = 0;
  #thoughts: Section | null = null;
  #answers: Section;

  /** Longer blocks are cut into some of about `longest` characters. */
  constructor(longest?: number) {
    this.#longest = longest;
    this.#answers = new Section(0, longest);
  }

  /** `text` begins with what it was before; nothing follows when it is `whole`. */
  update(text: string, whole: boolean) {
    atOnce(this.steps(text, whole));
  }

  /**
   * Does the same in steps, between which it yields. The last of them must be done before others
   * begin.
   */
  *steps(text: string, whole: boolean): Generator<void> {
    if (!this.thinking?.closed) {
      this.#look(text);
      yield* this.#think(text, whole);
    }
    yield* this.#answers.steps(text, text.length, whole);
    this.answer = this.#answers.blocks;
  }

  /** Where the text begins that is read next. */
  unread(whole: boolean): number {
    const grows = this.thinking?.closed === false ? this.#thoughts : this.#answers;
    return (grows ?? this.#answers).unread(whole);
  }

  /** While steps are under way: gives what is parsed so far, and the rest of the text as it is. */
  showSoFar(text: string) {
    const { thinking } = this;
    if (thinking && this.#thoughts) {
      this.thought = this.#framed(thinking, this.#thoughts.soFar(text, thinking.to));
    }
    this.answer = this.#answers.soFar(text, text.length);
  }

  #look(text: string) {
    const found = thinkingIn(text, this.#searched);
    this.#searched = text.length;
    if (!found) return;
    if (!this.thinking) this.#thoughts = new Section(found.from, this.#longest);
    this.thinking = found;
    this.#answers = new Section(found.end, this.#longest);
  }

  *#think(text: string, whole: boolean): Generator<void> {
    const { thinking } = this;
    if (!thinking || !this.#thoughts) return;
    yield* this.#thoughts.steps(text, thinking.to, thinking.closed || whole);
    this.thought = this.#framed(thinking, this.#thoughts.blocks);
  }

  #framed({ from, to, end }: Thinking, blocks: readonly Block[]): Block[] {
    return [...marks(0, from), ...blocks, ...marks(to, end)];
  }

  /** Need not keep what stands before a place of the text. */
  forget(text: string, before: number) {
    const grows = this.thinking?.closed === false ? this.#thoughts : this.#answers;
    grows?.forget(text, before);
    this.thought = this.thought.filter(({ to }) => to > before);
  }
}

function marks(from: number, to: number): Block[] {
  if (from >= to) return [];
  return [{ branch: { tag: "marks", children: [{ kind: "syntax", from, to }] }, from, to }];
}
