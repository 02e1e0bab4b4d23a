/**
 * The whole window for tests, with recorded replies and without layout: everything is in view,
 * nothing has a size, and time passes only on request.
 */
import { flushSync, mount, unmount } from "svelte";
import { expect, vi } from "vitest";
import Window from "./Window.svelte";
import type { Backend } from "./backend/backend";
import { player } from "./backend/player";
import { App } from "./state/app.svelte";
import { stubResizeObserver } from "./resizeObserver";

export class WindowFixture {
  private constructor(
    readonly app: App,
    readonly backend: Backend,
    readonly shown: ReturnType<typeof mount>,
  ) {}

  /** Opens the window with its newest conversation. */
  static async open(): Promise<WindowFixture> {
    stubBrowser();
    const backend = player(new URLSearchParams());
    const app = new App(backend);
    await Promise.all([app.settings.load(), app.view.load()]);
    const shown = mount(Window, { target: document.body, props: { app } });
    const fixture = new WindowFixture(app, backend, shown);
    await app.start();
    await fixture.pass(1000);
    const first = app.conversations.list[0] ?? expect.fail("no conversation");
    await app.open(first.id);
    await fixture.pass(100);
    return fixture;
  }

  async close() {
    await unmount(this.shown);
    // Windows share their frames: a pending one must run, or no other would.
    if (vi.isFakeTimers()) await vi.advanceTimersByTimeAsync(50);
    vi.unstubAllGlobals();
    vi.useRealTimers();
  }

  async pass(ms = 50) {
    await vi.advanceTimersByTimeAsync(ms);
    flushSync();
  }

  find(testid: string): HTMLElement | null {
    return document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
  }

  all(testid: string): HTMLElement[] {
    return [...document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`)];
  }

  present(testid: string): HTMLElement {
    return this.find(testid) ?? expect.fail(`no ${testid}`);
  }

  async click(testid: string) {
    this.present(testid).click();
    await this.pass();
  }

  async type(testid: string, value: string) {
    const field = this.present(testid) as HTMLInputElement;
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await this.pass();
  }

  /** Presses keys such as "Ctrl Shift R" or "ArrowDown". */
  async press(keys: string, element: Element = document.activeElement ?? document.body) {
    const names = keys === " " ? [keys] : keys.split(" ");
    const event = new KeyboardEvent("keydown", {
      key: names.at(-1) ?? "",
      ctrlKey: names.includes("Ctrl"),
      shiftKey: names.includes("Shift"),
      bubbles: true,
      cancelable: true,
    });
    element.dispatchEvent(event);
    await this.pass();
  }
}

/** Stubs of browser features that jsdom lacks; time passes only on request. */
export function stubBrowser() {
  vi.useFakeTimers({
    toFake: [
      ...(["setTimeout", "clearTimeout", "requestAnimationFrame", "cancelAnimationFrame"] as const),
      ...(["performance", "Date"] as const),
    ],
  });
  Element.prototype.scrollIntoView = vi.fn();
  Range.prototype.getBoundingClientRect = () => new DOMRect();
  HTMLCanvasElement.prototype.getContext = () => null;
  stubResizeObserver();
  vi.stubGlobal("matchMedia", () => ({
    matches: false,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  }));
  vi.stubGlobal("IntersectionObserver", InView);
  stubDialogs();
}

/** An observer for which everything is in view. */
class InView {
  constructor(readonly callback: (entries: object[]) => void) {}
  observe(target: Element) {
    this.callback([{ target, isIntersecting: true, boundingClientRect: { height: 100 } }]);
  }
  unobserve() {}
  disconnect() {}
}

/** Returns the focus to its previous element, as browsers do. */
function stubDialogs() {
  const before = new WeakMap<HTMLDialogElement, Element | null>();
  HTMLDialogElement.prototype.showModal = function () {
    before.set(this, document.activeElement);
    this.open = true;
    this.querySelector<HTMLElement>("input, button")?.focus();
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
    const opener = before.get(this);
    if (opener instanceof HTMLElement) opener.focus();
    this.dispatchEvent(new Event("close"));
  };
}
