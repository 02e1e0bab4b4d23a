/** A finished reply drawn at once, for paper. */
import { ReplyDocument } from "./document";
import type { Branch } from "./nodes";
import { patch, type ElementShape } from "./shapes";
import { TextShapes } from "./textShapes";

/**
 * Draws a reply's answer in `root` without its thinking, with wrapped code. Highlighting and
 * formulas follow once they are available.
 */
export function drawWhole(root: HTMLElement, text: string) {
  const reply = new ReplyDocument();
  reply.update(text, true);
  for (const { branch } of reply.answer) drawBlock(root, text, branch);
}

function drawBlock(root: HTMLElement, text: string, branch: Branch) {
  const block = root.appendChild(document.createElement("div"));
  let drawn: readonly ElementShape[] = [];
  function draw() {
    const shape = new TextShapes(text, draw, true).of(branch);
    const next = shape ? [shape] : [];
    patch(block, drawn, next);
    drawn = next;
  }
  draw();
}
