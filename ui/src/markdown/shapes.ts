/**
 * Elements described as plain objects, and the update of real elements to match. Elements are
 * created one by one and markup is never parsed, so that no text can become markup.
 */

export type Shape = string | ElementShape;

export interface ElementShape {
  readonly tag: string;
  readonly class?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly children: readonly Shape[];
  /** Identity among siblings: a list whose beginning was dropped is matched by its first key. */
  readonly key?: string;
  /** Draws the contents instead of `children`; runs again when `key` changes. */
  readonly fill?: Fill;
}

export interface Fill {
  readonly key: string;
  readonly draw: (into: HTMLElement) => void;
}

export function element(
  tag: string,
  name: string | undefined,
  children: readonly Shape[],
  attributes?: Readonly<Record<string, string>>,
): ElementShape {
  return {
    tag,
    children,
    ...(name !== undefined && { class: name }),
    ...(attributes && { attributes }),
  };
}

export function make(shape: Shape): Node {
  if (typeof shape === "string") return document.createTextNode(shape);
  const made = document.createElement(shape.tag);
  if (shape.class !== undefined) made.className = shape.class;
  for (const name in shape.attributes) made.setAttribute(name, shape.attributes[name] ?? "");
  if (shape.fill) shape.fill.draw(made);
  else for (const child of shape.children) made.appendChild(make(child));
  return made;
}

/**
 * Updates the children of an element from one list of shapes to another, and touches only
 * differences.
 */
export function patch(parent: Node, old: readonly Shape[], next: readonly Shape[]) {
  let child = parent.firstChild;
  const lost = lostBefore(old, next);
  for (let at = 0; at < lost && child; at += 1) child = removed(child);
  for (let at = 0; at < next.length; at += 1) {
    const [before, after] = [old[at + lost], next[at]];
    if (after === undefined) continue;
    if (before === undefined || !child) {
      parent.appendChild(make(after));
      continue;
    }
    const following: ChildNode | null = child.nextSibling;
    change(child, before, after);
    child = following;
  }
  while (child) child = removed(child);
}

/** Removes a node and returns the next one. */
export function removed(child: ChildNode): ChildNode | null {
  const following = child.nextSibling;
  child.remove();
  return following;
}

/** Number of shapes dropped from the beginning. */
function lostBefore(old: readonly Shape[], next: readonly Shape[]): number {
  const key = keyOf(next[0]);
  if (key === undefined || keyOf(old[0]) === undefined || keyOf(old[0]) === key) return 0;
  return Math.max(
    0,
    old.findIndex((shape) => keyOf(shape) === key),
  );
}

function keyOf(shape: Shape | undefined): string | undefined {
  return typeof shape === "object" ? shape.key : undefined;
}

/** Updates an element from one shape to another. */
export function change(node: ChildNode, before: Shape, after: Shape) {
  if (before === after) return;
  if (typeof before === "string" || typeof after === "string") {
    if (typeof before === typeof after) node.nodeValue = after as string;
    else node.replaceWith(make(after));
    return;
  }
  if (!(node instanceof HTMLElement) || before.tag !== after.tag) {
    node.replaceWith(make(after));
    return;
  }
  if (before.fill?.key !== after.fill?.key) {
    node.replaceWith(make(after));
    return;
  }
  if (before.class !== after.class) {
    if (after.class === undefined) node.removeAttribute("class");
    else node.className = after.class;
  }
  changeAttributes(node, before.attributes, after.attributes);
  if (!after.fill) patch(node, before.children, after.children);
}

type Attributes = Readonly<Record<string, string>> | undefined;

function changeAttributes(node: HTMLElement, before: Attributes, after: Attributes) {
  if (before === after) return;
  for (const name in before) {
    if (after?.[name] === undefined) node.removeAttribute(name);
  }
  for (const name in after) {
    const value = after[name];
    if (value !== undefined && before?.[name] !== value) node.setAttribute(name, value);
  }
}
