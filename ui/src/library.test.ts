import { flushSync, mount, unmount, type Component } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BackendError, type Backend } from "./backend/backend";
import { RECOMMENDATIONS } from "./backend/modelFixtures";
import { player } from "./backend/player";
import { App } from "./state/app.svelte";
import Advisor from "./components/library/Advisor.svelte";
import Downloads from "./components/library/Downloads.svelte";
import GetModels from "./components/library/GetModels.svelte";
import Installed from "./components/library/Installed.svelte";
import Recommendations from "./components/library/Recommendations.svelte";
import Token from "./components/library/Token.svelte";

let app: App;
let backend: Backend;
let shown: ReturnType<typeof mount> | undefined;

vi.mock("./state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const scrolled = vi.fn();

beforeEach(() => {
  vi.useFakeTimers();
  scrolled.mockClear();
  Element.prototype.scrollIntoView = scrolled;
});
afterEach(async () => {
  if (shown) await unmount(shown);
  vi.useRealTimers();
});

async function show(section: Component, options = "", change: Partial<Backend> = {}) {
  backend = { ...player(new URLSearchParams(options)), ...change };
  app = new App(backend);
  await app.settings.load();
  await app.start();
  await app.library.load();
  await pass(1000);
  shown = mount(section, { target: document.body });
  // Wait for the requests of the opened library.
  await pass(10);
}

async function pass(ms: number) {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
}

const all = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)];
const find = (testid: string, within = document.body) =>
  within.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
const row = (testid: string, words: string) =>
  all(`[data-testid="${testid}"]`).find(({ textContent }) => textContent.includes(words)) ??
  expect.fail(`no ${testid} with ${words}`);

function click(element: HTMLElement | null) {
  (element ?? expect.fail("nothing to click")).click();
  flushSync();
}

function type(testid: string, value: string) {
  const field = find(testid) as HTMLInputElement;
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  flushSync();
}

test("deleting a model asks first, with the model's name and size", async () => {
  await show(Installed);
  click(find("model-delete", row("installed-model", "Qwen3 0.6B")));
  const asked = document.querySelector("[role=alertdialog]");
  expect(asked?.textContent).toContain("That frees 639.2\u00a0MB");
  click(find("confirm-no"));
  expect(row("installed-model", "Qwen3 0.6B")).toBeTruthy();
  click(find("model-delete", row("installed-model", "Qwen3 0.6B")));
  click(find("confirm-yes"));
  await pass(10);
  expect(document.body.textContent).not.toContain("Qwen3 0.6B");
});

test("a model in use stays loaded when it is deleted, and the question says so", async () => {
  await show(Installed);
  click(find("use-draft", row("installed-model", "Storyteller")));
  await pass(10);
  click(find("model-delete", row("installed-model", "Storyteller")));
  expect(document.querySelector("[role=alertdialog]")?.textContent).toContain("keeps working");
});

test("the embedded pair cannot be deleted, and deleting an added model keeps its file", async () => {
  await show(Installed);
  expect(find("model-delete", row("installed-model", "Starter draft"))).toBeNull();
  const added = row("installed-model", "mamba");
  expect(find("model-delete", added)).toBeNull();
  const refusal = find("refusal", added);
  expect(refusal?.querySelector("summary")?.textContent).toBe(
    "Cannot be used: unsupported architecture",
  );
  expect(refusal?.textContent).toContain("The architecture 'mamba'");
  click(find("model-remove", added));
  await pass(10);
  expect(document.body.textContent).not.toContain("mamba");
});

test("a draft that cannot be a target says that it only drafts", async () => {
  await show(Installed);
  const id = row("installed-model", "mamba").dataset.model ?? expect.fail();
  const drafts = [{ id, label: "mamba", detail: null, merit: null, problem: null }];
  app.engine.status = { ...app.engine.status, drafts };
  flushSync();
  const summary = find("refusal", row("installed-model", "mamba"))?.querySelector("summary");
  expect(summary?.textContent).toBe("Drafts only");
});

test("one click downloads a pair, and another one uses it", async () => {
  await show(GetModels);
  const offer = () => row("offer", "Llama 3.1 8B");
  click(find("offer-pair", offer()));
  await pass(1000);
  expect(app.library.downloads.map(({ file }) => file)).toEqual([
    "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
    "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
  ]);
  expect(find("offer-get", offer())).toBeNull();
  await pass(60_000);
  expect(find("offer-pair", offer())?.textContent.trim()).toBe("Use with draft");
  click(find("offer-pair", offer()));
  await pass(10);
  const { target, drafts } = app.settings.values;
  expect(target).toContain("Meta-Llama-3.1-8B");
  expect(drafts[target]).toContain("Llama-3.2-1B");
});

test("a model that does not fit in memory shows its requirement, and can still be downloaded", async () => {
  await show(GetModels);
  const large = row("offer", "Qwen3 32B");
  expect(large.textContent).toContain("needs 22.3\u00a0GB of memory");
  expect(find("offer-get", large)).not.toBeNull();
});

test("a repository is opened by its name, and clearing the field clears a problem", async () => {
  await show(GetModels);
  type("repository-name", "someone/offline");
  click(find("repository-find"));
  expect(find("repository-asking")).not.toBeNull();
  await pass(1000);
  const problem = find("repository-problem");
  expect(problem?.querySelector("p")?.textContent).toBe(
    "No connection to Hugging Face. Check your internet connection.",
  );
  expect(problem?.querySelector("details")?.textContent).toContain("failed to lookup address");
  click(find("hub-retry"));
  expect(find("repository-asking")).not.toBeNull();
  await pass(1000);
  expect(find("repository-problem")).not.toBeNull();
  expect(scrolled, "when it is asked, and when it has answered").toHaveBeenCalledTimes(2);
  type("repository-name", "");
  expect(find("repository-problem")).toBeNull();
  type("repository-name", "someone/Model-GGUF");
  click(find("repository-find"));
  await pass(1000);
  const found = find("repository-found") ?? expect.fail();
  expect(found.querySelectorAll("[data-testid=offer]")).toHaveLength(5);
  expect(found.textContent).toContain("Q4_K_M/Model-Q4_K_M.gguf");
  type("repository-name", "someone/empty");
  click(find("repository-find"));
  await pass(1000);
  expect(find("repository-found")?.textContent).toContain("No model here runs in Foretoken");
});

test("a download shows its progress, can be paused and resumed, and asks before much is discarded", async () => {
  await show(Downloads);
  expect(document.body.textContent).toContain("No downloads yet");
  const [, , family] = app.library.families ?? [];
  void app.library.get(family?.targets[0] ?? expect.fail());
  await pass(3000);
  const download = () => find("download") ?? expect.fail();
  expect(download().textContent).toMatch(/MB of 4\.9\u00a0GB, 180\.0\u00a0MB\/s, \d+ s left/);
  click(find("download-pause"));
  expect(download().textContent).toContain("Paused at");
  const here = app.library.downloads[0]?.done_bytes;
  await pass(3000);
  expect(app.library.downloads[0]?.done_bytes).toBe(here);
  click(find("download-resume"));
  await pass(1000);
  expect(download().dataset["state"]).toBe("running");
  click(find("download-cancel"));
  expect(app.library.downloads).toHaveLength(1);
  click(find("confirm-yes"));
  await pass(10);
  expect(app.library.downloads).toHaveLength(0);
});

test("each state of a download offers its actions", async () => {
  await show(Downloads, "downloads=sample");
  const offered = all("[data-testid=download]").map((download) => [
    download.dataset["state"],
    ...["pause", "resume", "again", "cancel", "dismiss"].filter((act) =>
      find(`download-${act}`, download),
    ),
  ]);
  expect(offered).toEqual([
    ["running", "pause", "cancel"],
    ["queued", "pause", "cancel"],
    ["verifying", "cancel"],
    ["paused", "resume", "cancel"],
    ["paused", "resume", "cancel"],
    ["failed", "again", "dismiss"],
    ["done", "dismiss"],
  ]);
  expect(row("download", "Failed").textContent).toContain("is gated");
  expect(row("download", "disk is full").textContent).toContain(
    "Paused at 2.8\u00a0GB of 9.0\u00a0GB",
  );
  expect(row("download", "Queued").textContent).toContain("Queued, 4.0\u00a0GB");
});

test("a token can be stored and removed, and its text is never shown again", async () => {
  await show(Token);
  expect(find("token-remove")).toBeNull();
  type("token-field", "hf_secret");
  expect((find("token-field") as HTMLInputElement).type).toBe("password");
  click(find("token-set"));
  await pass(1000);
  expect(find("token-source")?.dataset["source"]).toBe("keyring");
  expect((find("token-field") as HTMLInputElement).value).toBe("");
  click(find("token-remove"));
  await pass(1000);
  expect(find("token-source")?.dataset["source"]).toBe("none");
});

test("a refused token stays in its field", async () => {
  await show(Token);
  type("token-field", "wrong");
  click(find("token-set"));
  await pass(1000);
  expect(app.library.problem?.code).toBe("needs_token");
  expect((find("token-field") as HTMLInputElement).value).toBe("wrong");
});

test("a probe fills in its measurements, best first, and one click applies one", async () => {
  await show(Advisor);
  click(find("probe"));
  await pass(6000);
  const order = all("[data-testid=advice]").map(({ dataset }) => dataset["draft"]);
  expect(order.at(0)).toBe("starter-draft");
  const second = row("advice", "Storyteller");
  expect(second.textContent).toContain("1.4× faster");
  click(find("advice-use", second));
  await pass(10);
  expect(app.settings.values.drafts["starter"]).toContain("storyteller");
});

test("drafts that do not fit are folded into one line, each with a reason, in full on demand", async () => {
  await show(Advisor);
  const unfit = find("advice-unfit") as HTMLDetailsElement;
  expect(unfit.open).toBe(false);
  expect(unfit.querySelector("summary")?.textContent.replace(/\s+/g, " ").trim()).toBe(
    "2 incompatible",
  );
  const refusal = find("refusal", unfit) as HTMLDetailsElement;
  expect([refusal.open, refusal.querySelector("summary")?.textContent]).toEqual([
    false,
    "Other vocabulary",
  ]);
  expect(refusal.textContent).toContain("The vocabularies differ at token 259");
  expect(
    all("[data-testid=advice]").some(({ dataset }) => dataset["draft"]?.includes("tiny")),
  ).toBe(false);
});

test("a probe can be stopped, and its measurements stay", async () => {
  await show(Advisor);
  click(find("probe"));
  await pass(2000);
  click(find("probe-stop"));
  await pass(2000);
  expect(find("probe")).not.toBeNull();
  expect(app.library.advice.filter(({ probe }) => probe !== null)).toHaveLength(1);
});

/** The card of the best pair. */
const card = () =>
  document.querySelector<HTMLElement>("[data-kind=best]") ?? expect.fail("no card");

test("a recommended pair shows the facts for a decision", async () => {
  await show(Recommendations);
  const words = all("[data-testid=pair]").map(({ textContent }) =>
    textContent.replace(/\s+/g, " "),
  );
  expect(words).toHaveLength(3);
  for (const fact of [
    "Best here",
    "Qwen3 8B",
    "about 6.4 tokens/s here",
    "5.7 GB download, 6.4 GB memory",
    "Download 5.7 GB",
  ])
    expect(words[0]).toContain(fact);
  const fast = document.querySelector<HTMLElement>("[data-kind=code] .fast");
  expect(fast?.dataset["tooltip"]).toBe("1.1× to 1.5× the speed elsewhere");
  expect(all("[data-testid=pair-get]")).toHaveLength(3);
});

test("one click downloads target and draft as one, which can be paused, resumed and used", async () => {
  await show(Recommendations);
  click(find("pair-get", card()));
  await pass(3000);
  expect(app.library.downloads).toHaveLength(2);
  expect(card().dataset["state"]).toBe("coming");
  expect(card().textContent).toMatch(/MB of 5\.7\u00a0GB, 180\.0\u00a0MB\/s, \d+ s left/);
  click(find("pair-pause", card()));
  await pass(10);
  expect(card().textContent).toContain("Paused at");
  expect(app.library.downloads.map(({ state }) => state)).toEqual(["paused", "paused"]);
  click(find("pair-resume", card()));
  await pass(60_000);
  expect(card().dataset["state"]).toBe("here");
  expect(app.settings.values.target, "nobody has said to use it").toBe("starter");
  click(find("pair-use", card()));
  await pass(2000);
  const { target, drafts } = app.settings.values;
  expect(target).toContain("Qwen3-8B");
  expect(drafts[target]).toContain("Qwen3-0.6B");
});

test("a model that brings its own draft is one download, and is used with its best draft", async () => {
  const [first = expect.fail()] = RECOMMENDATIONS;
  const alone = { ...first, draft: null };
  await show(Recommendations, "", { recommendations: () => Promise.resolve([alone]) });
  expect(card().textContent).toMatch(/5\.0\sGB download/);
  expect(find("unrun", card())).not.toBeNull();
  click(find("pair-get", card()));
  await pass(60_000);
  expect(app.library.downloads).toHaveLength(1);
  click(find("pair-use", card()));
  await pass(1000);
  expect(app.settings.values.target).toContain("Qwen3-8B");
  expect(Object.keys(app.settings.values.drafts)).not.toContain(app.settings.values.target);
});

test("cancelling a pair with much downloaded data asks first", async () => {
  await show(Recommendations);
  click(find("pair-get", card()));
  await pass(3000);
  click(find("pair-cancel", card()));
  expect(document.querySelector("[role=alertdialog]")?.textContent).toContain("Cancel Qwen3 8B");
  click(find("confirm-no"));
  expect(app.library.downloads).toHaveLength(2);
  click(find("pair-cancel", card()));
  click(find("confirm-yes"));
  await pass(10);
  expect(app.library.downloads).toHaveLength(0);
  expect(card().dataset["state"]).toBe("missing");
});

test("a draft shared by two pairs is downloaded once, and continues if one is cancelled", async () => {
  await show(Recommendations);
  const faster = () => document.querySelector<HTMLElement>("[data-kind=faster]") ?? expect.fail();
  click(find("pair-get", card()));
  await pass(400);
  expect(faster().dataset["state"], "nobody asked for it").toBe("missing");
  click(find("pair-get", faster()));
  await pass(400);
  expect(app.library.downloads).toHaveLength(3);
  click(find("pair-cancel", card()));
  if (find("confirm-yes")) click(find("confirm-yes"));
  await pass(10);
  expect(app.library.downloads.map(({ file }) => file)).toEqual(
    expect.arrayContaining(["Qwen3-0.6B-Q8_0.gguf", "Qwen3-4B-Q4_K_M.gguf"]),
  );
  expect(app.library.downloads).toHaveLength(2);
});

test("a pair that cannot be downloaded explains why, and that the chat continues", async () => {
  await show(Recommendations);
  const offline = new BackendError(
    "internal",
    "The hub could not be reached. Check the connection.",
  );
  backend.startDownload = () => Promise.reject(offline);
  click(find("pair-get", card()));
  await pass(10);
  expect(find("pair-problem")?.textContent).toContain("could not be reached");
  expect(find("pair-problem")?.textContent).toContain("keep chatting");
  expect(card().dataset["state"]).toBe("missing");
});

test("a pair with one failed download explains why, and can be retried or cancelled", async () => {
  await show(Recommendations);
  click(find("pair-get", card()));
  await pass(1000);
  const [, draft] = app.library.downloads;
  app.library.downloads = app.library.downloads.map((one) =>
    one.id === draft?.id ? { ...one, state: "failed", reason: "the checksum differs" } : one,
  );
  flushSync();
  expect(card().dataset["state"]).toBe("failed");
  expect(card().textContent).toContain("the checksum differs");
  expect(find("pair-again", card())).not.toBeNull();
});

test("recommendations wait for the measured speed of this computer, but not for long", async () => {
  await show(Recommendations);
  const { status } = app.engine;
  app.engine.status = { ...status, target: status.target && { ...status.target, speed: null } };
  flushSync();
  expect(find("pairs")).toBeNull();
  await pass(4000);
  expect(find("pairs")).not.toBeNull();
});

test("a computer that suits no pair gets no recommendations", async () => {
  await show(Recommendations, "", { recommendations: () => Promise.resolve([]) });
  expect(find("pairs")).toBeNull();
});

test("a name is searched in the catalogue at once and on the hub after a pause", async () => {
  await show(GetModels);
  type("repository-name", "qwen3-8b");
  expect(all("[data-testid=family] h3").map(({ textContent }) => textContent)).toEqual(["Qwen3"]);
  expect(all("[data-testid=offer] .name").length).toBeGreaterThan(0);
  expect(find("hub"), "the hub is not asked at every key").toBeNull();
  await pass(600);
  expect(find("hub")?.textContent).toContain("Searching Hugging Face");
  await pass(1000);
  const hits = all("[data-testid=hub-hit]");
  expect(hits.map((hit) => hit.querySelector(".name")?.textContent)).toEqual([
    "unsloth/Qwen3-8B-GGUF",
    "bartowski/Qwen3-8B-GGUF",
    "someone/Qwen3-8B-Story-GGUF",
  ]);
  const words = hits.map(({ textContent }) => textContent.replace(/\s+/g, " "));
  for (const fact of [
    "8.2B parameters",
    "5 quantisations",
    "182,000 downloads a month",
    "about 5.0 GB as Q4_K_M",
    "fits",
    "about 6.4 tokens/s here",
    "Draft heads: EAGLE-3, DFlash",
  ])
    expect(words[0]).toContain(fact);
  expect(words[2]).toContain("does not run this architecture: storyllm");
  expect(words[2]).not.toContain("parameters");
  click(find("hub-open", hits[0]));
  await pass(1000);
  const found = () => find("repository-found") ?? expect.fail();
  expect(found().querySelectorAll("[data-testid=offer]")).toHaveLength(5);
  expect(found().textContent).toContain("about 4.8 tokens/s here");
  // A head is opened like any other repository.
  click(find("hub-open", find("hub-head", found()) ?? undefined));
  await pass(1000);
  expect(found().querySelector("h4")?.textContent).toBe("AngelSlim/Qwen3-8B_eagle3");
});

test("without a connection the catalogue is still searched, and one problem is shown", async () => {
  await show(GetModels);
  type("repository-name", "offline");
  expect(find("catalogue-none")).not.toBeNull();
  click(find("repository-find"));
  await pass(1000);
  expect(all("[role=alert]")).toHaveLength(1);
  type("repository-name", "gemma");
  expect(all("[data-testid=family] h3").map(({ textContent }) => textContent)).toEqual(["Gemma 3"]);
});

test("filters narrow the catalogue by use and size", async () => {
  await show(GetModels);
  const families = () => all("[data-testid=family] h3").map(({ textContent }) => textContent);
  expect(families()).toContain("Llama 3");
  click(find("filter-languages"));
  expect(families()).toEqual(["Qwen3", "Gemma 3"]);
  click(find("filter-small"));
  const names = all("[data-testid=offer] .name").map(({ textContent }) => textContent);
  expect(names).toContain("Qwen3 4B · Q4_K_M");
  expect(names.some((name) => name.includes("8B · Q4_K_M"))).toBe(false);
});

test("each family has a sentence about its purpose", async () => {
  await show(GetModels);
  for (const family of all("[data-testid=family]"))
    expect(family.querySelector("p")?.textContent).toMatch(/\.$/);
});

test("a model chosen as the target shows in its row that it is loading", async () => {
  await show(Installed);
  const saveSettings = backend.saveSettings.bind(backend);
  let save: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => (save = resolve));
  backend.saveSettings = async (settings) => {
    await asked;
    return saveSettings(settings);
  };
  click(find("use-target", row("installed-model", "Qwen3 0.6B")));
  expect(find("target-loading", row("installed-model", "Qwen3 0.6B"))?.textContent).toContain(
    "Loading",
  );
  save();
  await pass(5000);
  expect(find("target-loading")).toBeNull();
  expect(row("installed-model", "Qwen3 0.6B").textContent).toContain("target");
});

test("adding a model comes first, and changing the path clears its problem", async () => {
  await show(Installed);
  const form = find("model-path")?.closest("form") ?? expect.fail();
  const first = find("installed-model") ?? expect.fail();
  expect(form.compareDocumentPosition(first)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
  backend.addModel = () =>
    Promise.reject(new BackendError("bad_model", "there is no file at /gone.gguf."));
  type("model-path", "/gone.gguf");
  click(find("model-add"));
  await pass(10);
  expect(find("model-problem")?.textContent).toContain("There is no file at /gone.gguf.");
  type("model-path", "");
  expect(find("model-problem")).toBeNull();
});

test("the filter for this computer shows only what fits", async () => {
  await show(GetModels);
  const names = () => all("[data-testid=offer] .name").map(({ textContent }) => textContent);
  expect(names().some((name) => name.includes("32B"))).toBe(true);
  expect(row("offer", "Qwen3 32B").textContent).toContain("on disk; less is free");
  expect(row("offer", "Qwen3 8B").textContent).toContain("about 6.4 tokens/s here");
  click(find("filter-fits"));
  expect(names().some((name) => name.includes("32B"))).toBe(false);
  expect(names().some((name) => name.includes("8B"))).toBe(true);
});

test("an installed model shows its speed here and its speed-up over all replies", async () => {
  await show(Installed);
  await app.library.loadPairSpeedups();
  flushSync();
  const facts = find("model-facts", row("installed-model", "Starter 8.1M"));
  expect(facts?.textContent).toMatch(
    /^3,100 tokens\/s here · 1\.\d× faster with Starter draft 1\.1M, 4 replies · licence apache-2\.0$/,
  );
});

test("a deleted model is no longer listed as downloaded", async () => {
  await show(Installed, "downloads=sample");
  const downloaded = () => app.library.downloads.some(({ id }) => id.includes("Qwen3-0.6B"));
  expect(downloaded()).toBe(true);
  click(find("model-delete", row("installed-model", "Qwen3 0.6B")));
  click(find("confirm-yes"));
  await pass(10);
  expect(downloaded()).toBe(false);
});
