import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { beside, closeOnOutsidePress, dropdown, type Anchor, type Placement } from "./popover";

const WINDOW = { innerWidth: 800, innerHeight: 600 };
const CARD = { width: 200, height: 100 };

beforeEach(() => Object.assign(window, WINDOW));
afterEach(() => document.body.replaceChildren());

function element(box: Partial<Anchor> = {}): HTMLElement {
  const made = document.createElement("div");
  const { left = 0, top = 0, width = 0, height = 0 } = box;
  made.getBoundingClientRect = () => new DOMRect(left, top, width, height);
  document.body.append(made);
  return made;
}

function cardBeside(anchor: Anchor, placement: Placement) {
  const card = element(CARD);
  beside(() => anchor, placement)(card);
  return [card.style.left, card.style.top];
}

test("a card stands over the middle of its anchor, and under it where there is no room", () => {
  const placement = { side: "above", align: "middle", gap: 8 } as const;
  const anchor = { left: 300, top: 116, width: 40, height: 20 };
  expect(cardBeside(anchor, placement)).toEqual(["220px", "8px"]);
  expect(cardBeside({ ...anchor, top: 115 }, placement)).toEqual(["220px", "143px"]);
});

test("a menu ends where its button does, and stands over it where there is no room below", () => {
  const placement = { side: "below", align: "end", gap: 4 } as const;
  const anchor = { left: 300, top: 472, width: 40, height: 20 };
  expect(cardBeside(anchor, placement)).toEqual(["140px", "496px"]);
  expect(cardBeside({ ...anchor, top: 473 }, placement)).toEqual(["140px", "369px"]);
});

test("a floating element stays inside the window", () => {
  const placement = { side: "above", align: "middle", gap: 8 } as const;
  const at = (left: number) =>
    cardBeside({ left, top: 300, width: 10, height: 10 }, placement).at(0);
  expect([at(0), at(790)]).toEqual(["8px", "592px"]);
});

test("a list has the height available below its button, or opens above it", () => {
  const list = (top: number) => {
    const [opener, list] = [element({ left: 500, top, width: 100, height: 30 }), element()];
    dropdown(() => opener, 380)(list);
    const { left, width, maxHeight, top: under, bottom } = list.style;
    return { left, width, maxHeight, under, bottom };
  };
  const across = { left: "412px", width: "380px" };
  expect(list(354)).toEqual({ ...across, maxHeight: "200px", under: "390px", bottom: "" });
  expect(list(355)).toEqual({ ...across, maxHeight: "339px", under: "", bottom: "251px" });
});

test("a press elsewhere closes a floating element once", () => {
  const [opener, floating] = [element(), element()];
  const close = vi.fn();
  const press = (target: Element) =>
    target.dispatchEvent(new Event("pointerdown", { bubbles: true }));
  const end = closeOnOutsidePress(() => opener, close)(floating);
  press(opener);
  press(floating.appendChild(document.createElement("span")));
  window.dispatchEvent(new Event("resize"));
  expect(close).not.toHaveBeenCalled();
  press(document.body);
  expect(close).toHaveBeenCalledOnce();
  end();
  press(document.body);
  expect(close).toHaveBeenCalledOnce();
});

test("scrolling or resizing closes a floating element", () => {
  const close = vi.fn();
  const end = closeOnOutsidePress(() => document.head, close, ["resize", "scroll"])(element());
  element().dispatchEvent(new Event("scroll"));
  window.dispatchEvent(new Event("resize"));
  expect(close).toHaveBeenCalledTimes(2);
  end();
});
