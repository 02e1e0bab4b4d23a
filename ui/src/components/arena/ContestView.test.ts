import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test, vi } from "vitest";
import { arena, drafted, plain, run } from "../../arena/fixtures";
import { App } from "../../state/app.svelte";
import { Contest } from "../../state/contest.svelte";
import ContestView from "./ContestView.svelte";
import { stubResizeObserver } from "../../resizeObserver";

const app = new App({} as never);
let shown: ReturnType<typeof mount>;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));
// jsdom has no canvas.
vi.mock("../ui/plot/Plot.svelte", () => ({ default: () => undefined }));

const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);

function show(contest: Contest | undefined) {
  stubResizeObserver();
  shown = mount(ContestView, {
    target: document.body,
    props: { contest: contest ?? expect.fail() },
  });
  flushSync();
}

afterEach(() => unmount(shown));

test("a finished contest shows the winner, its lead, and that the texts are equal", () => {
  show(Contest.of(arena()));
  expect(find("arena-verdict")?.dataset["winner"]).toBe("0");
  expect(find("arena-verdict")?.textContent).toContain("Starter draft is 2× as fast as no draft");
  expect(find("arena-verdict")?.textContent).toContain("1.9× to 2.1× over 2 pairs");
  expect(find("arena-texts")?.dataset["texts"]).toBe("identical");
  expect(find("arena-dots")?.querySelectorAll("circle")).toHaveLength(2);
  expect(find("arena-dots")?.getAttribute("aria-label")).toContain(
    "pair 1: Starter draft 1.9× as fast as no draft",
  );
});

test("different texts are marked in both columns, and markup in them stays text", () => {
  const evil = "<img src=x onerror=alert(1)>";
  const texts = [`<u>It</u> is dark ${evil}`, `<u>It</u> is old ${evil}`];
  show(Contest.of(arena({ texts, first_difference: 3 })));
  const marks = [...document.querySelectorAll('[data-testid="arena-parting"]')];
  expect(marks.map(({ textContent }) => textContent)).toEqual(["dark", "old"]);
  expect(document.querySelector(".text :is(img, u)")).toBeNull();
  expect(find("arena-text-1")?.textContent).toContain(texts[1]);
  expect(find("arena-texts")?.textContent).toContain("diverge at token 4");
});

test("markup in equal texts, in the prompt and in the names stays text", () => {
  const evil = "<img src=x onerror=alert(1)>";
  const setups = [drafted, plain].map((setup) => ({ draft: evil, setup }));
  show(Contest.of(arena({ texts: [evil, evil], prompt: evil, setups })));
  expect(document.querySelector("img")).toBeNull();
  expect(find("arena-text-0")?.textContent).toContain(evil);
});

test("a shorter text is marked at its end", () => {
  show(Contest.of(arena({ texts: ["It is", "It is dark"], first_difference: 2 })));
  expect(find("arena-text-0")?.textContent).toContain("ends here");
});

test("a failed contest shows the reason, and the verdict so far", () => {
  const contest = new Contest(
    { prompt: "x".repeat(20_000), setups: [drafted, plain], pairs: 3, max_tokens: 64 },
    ["a", "b"],
    "Starter",
  );
  contest.take({ type: "run", pair: 0, setup: 0 });
  contest.take({ type: "finished", run: run(0, 0, 100) });
  contest.fail({ code: "internal", message: "the computation failed." } as never);
  show(contest);
  expect(find("arena-ended")?.textContent).toContain("The computation failed.");
  expect(find("arena-verdict")?.textContent).toContain("Nothing to compare");
  expect(find("arena-figures")?.textContent).toContain("1,000");
  expect(find("arena-export")).toBeNull();
});

test("the set-up that is running is marked, and the contest can be stopped", () => {
  const contest = new Contest(
    { prompt: "x", setups: [drafted, plain], pairs: 5, max_tokens: 64 },
    ["a", "b"],
    "Starter",
  );
  contest.take({ type: "run", pair: 1, setup: 1 });
  show(contest);
  expect(find("arena-progress")?.textContent).toContain("Pair 2 of 5");
  expect(find("arena-text-1")?.textContent).toContain("writing");
  expect(find("arena-text-0")?.textContent).not.toContain("writing");
  expect(find("arena-stop")).not.toBeNull();
});
