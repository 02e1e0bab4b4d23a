import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BackendError } from "./backend/backend";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
  await window.press("Ctrl ,");
  await window.click("settings-tab-remote");
});
afterEach(() => window.close());

const outcome = () => window.present("remote-outcome").textContent.trim();

async function add() {
  await window.type("remote-name", "gpu");
  await window.type("remote-address", "http://gpu:8000/v1");
  await window.click("remote-add");
  await window.pass();
}

test("the section says which data leave this computer", () => {
  expect(window.present("settings-panel").textContent).toContain("leaves this computer");
});

test("an added server is tested at once, and errors are shown beside it", async () => {
  await add();
  expect(window.app.settings.values.remote_servers).toEqual([
    { name: "gpu", address: "http://gpu:8000/v1", models: [] },
  ]);
  expect(outcome()).toBe("A page in a browser cannot ask a server.");
  await window.click("remote-remove");
  await window.pass();
  expect(window.find("remote-server")).toBeNull();
  expect(window.app.settings.values.remote_servers).toEqual([]);
});

test("the fields are cleared once the server is added, but not text typed after that", async () => {
  const field = (testid: string) => window.present(testid) as HTMLInputElement;
  let answer: () => void = () => undefined;
  const asked = new Promise<never>((_, reject) => (answer = () => reject(new Error("no answer"))));
  vi.spyOn(window.backend, "testServer").mockReturnValue(asked);
  await window.type("remote-key", "secret");
  await add();
  expect(field("remote-key").value).toBe("");
  await window.type("remote-name", "other");
  answer();
  await window.pass();
  expect(field("remote-name").value).toBe("other");
});

test("a server that cannot be removed explains why, without an error at the address", async () => {
  await add();
  vi.spyOn(window.app.servers, "remove").mockResolvedValue("the disk is full");
  await window.click("remote-remove");
  await window.pass();
  expect(document.querySelector('[role="alert"]')?.textContent).toContain("disk is full");
  expect(window.present("remote-address").getAttribute("aria-invalid")).toBe("false");
});

test("the models of a server are listed, and a server without models says so", async () => {
  await add();
  const { settings, servers } = window.app;
  const models = ["Qwen3-8B", "Qwen3-32B"].map((id) => ({ id, context: 0, sees: null }));
  const [server] = settings.values.remote_servers;
  if (!server) throw new Error("no server");
  servers.outcomes = { gpu: { problem: null } };
  await window.pass(0);
  expect(outcome()).toBe("Connected, but the server lists no models");
  settings.values = { ...settings.values, remote_servers: [{ ...server, models }] };
  await window.pass(0);
  expect(outcome()).toBe("2 models: Qwen3-8B, Qwen3-32B");
});

test("a server that cannot be added keeps the typed values for correction", async () => {
  const { servers } = window.app;
  vi.spyOn(servers, "add").mockImplementation(() =>
    Promise.resolve(new BackendError("bad_setting", "this is no address").message),
  );
  await add();
  expect(window.present("remote-problem").textContent.trim()).toBe("This is no address");
  expect((window.present("remote-address") as HTMLInputElement).value).toBe("http://gpu:8000/v1");
  expect(window.find("remote-server")).toBeNull();
});
