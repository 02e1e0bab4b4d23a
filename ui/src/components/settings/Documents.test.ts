import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Download } from "../../bindings/Download";
import { STARTER } from "../../backend/modelFixtures";
import { App } from "../../state/app.svelte";
import Documents from "./Documents.svelte";

const E5 = "intfloat/multilingual-e5-small";
const ID = "/cache/models--intfloat--multilingual-e5-small/snapshots/abc";
const embedder = {
  ...STARTER,
  id: ID,
  name: E5,
  kind: "downloaded" as const,
  label: "multilingual-e5-small",
  problem: { kind: "embedding_model", reason: "It is an embedding model." } as const,
};
const startDownload = vi.fn();
let app: App;
let shown: ReturnType<typeof mount>;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const all = (testid: string) => [
  ...document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`),
];
const words = (testid: string) => all(testid).map(({ textContent }) => textContent.trim());

beforeEach(() => {
  Element.prototype.scrollIntoView = () => undefined;
  const documentSearchStatus = () => new Promise(() => undefined);
  app = new App({ documentSearchStatus, startDownload } as never);
  shown = mount(Documents, { target: document.body });
  flushSync();
});
afterEach(() => unmount(shown));

test("models to begin with are downloaded, and hidden once they are there", async () => {
  expect(all("embedding-offer")).toHaveLength(2);
  all("embedding-get")[0]?.click();
  await vi.waitFor(() => {
    expect(startDownload).toHaveBeenCalledWith(E5, null);
  });
  const running = { id: E5, state: "running", done_bytes: 1, total_bytes: 4 };
  app.library.downloads = [running as unknown as Download];
  flushSync();
  expect(all("embedding-get")).toHaveLength(1);
  expect(all("embedding-offer")[0]?.textContent).toContain("25%");
  app.engine.status = { ...app.engine.status, targets: [STARTER, embedder] };
  flushSync();
  expect(all("embedding-offer")).toHaveLength(1);
});

test("only embedding models are offered, and a chosen one shows its progress or its problem", async () => {
  app.engine.status = { ...app.engine.status, targets: [STARTER, embedder] };
  flushSync();
  all("settings-embedding_model")[0]?.click();
  flushSync();
  expect(all(`embedding_model-option-${STARTER.id}`)).toEqual([]);
  expect(all("documents-progress")).toEqual([]);
  all(`embedding_model-option-${ID}`)[0]?.click();
  await vi.waitFor(() => {
    expect(app.settings.values.embedding_model).toBe(ID);
  });
  flushSync();
  expect(words("documents-progress")).toEqual([
    "No long files have been attached since the start.",
  ]);
  app.documentSearch.status = { passages: 1200, embedded: 30, problem: null };
  flushSync();
  expect(words("documents-progress")).toEqual(["30 of 1,200 passages can be found by meaning"]);
  app.documentSearch.status = { passages: 0, embedded: 0, problem: "there is no file." };
  flushSync();
  expect(words("documents-problem")).toEqual(["There is no file."]);
});
