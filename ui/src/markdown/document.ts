/** A reply as blocks: what the model thought, then its answer. Follows a text that grows. */
import { Section, type Block } from "./section";
import { thinkingIn, type Thinking } from "./thinking";

export class ReplyDocument {
  /** The thinking with its tags; empty where there is none. */
  thought: readonly Block[] = [];
  answer: readonly Block[] = [];
  thinking: Thinking | null = null;
  #searched = 0;
  #thoughts: Section | null = null;
  #answers = new Section(0);

  /** `text` begins with what it was before; nothing follows when it is `whole`. */
  update(text: string, whole: boolean) {
    if (!this.thinking?.closed) {
      this.#look(text);
      this.#think(text, whole);
    }
    this.#answers.update(text, text.length, whole);
    this.answer = this.#answers.blocks;
  }

  #look(text: string) {
    const found = thinkingIn(text, this.#searched);
    this.#searched = text.length;
    if (!found) return;
    if (!this.thinking) this.#thoughts = new Section(found.from);
    this.thinking = found;
    this.#answers = new Section(found.end);
  }

  #think(text: string, whole: boolean) {
    const { thinking } = this;
    if (!thinking || !this.#thoughts) return;
    this.#thoughts.update(text, thinking.to, thinking.closed || whole);
    const opened = marks(0, thinking.from);
    const closed = marks(thinking.to, thinking.end);
    this.thought = [...opened, ...this.#thoughts.blocks, ...closed];
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
