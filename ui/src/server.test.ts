import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ServerRequest } from "./bindings/ServerRequest";
import { defaults } from "./bindings/defaults";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;

beforeEach(async () => {
  window = await WindowFixture.open();
  await window.press("Ctrl ,");
  await window.click("settings-tab-server");
});
afterEach(() => window.close());

const status = () => window.present("server-status").textContent.trim();

test("the switch explains why the server does not run, and shows nothing while it is off", async () => {
  expect(status()).toBe("");
  window.app.settings.changeServer({ enabled: true });
  await window.app.settings.save();
  await window.pass();
  expect(status()).toBe("A page in a browser cannot listen on a port.");
  window.app.settings.changeServer({ enabled: false });
  await window.app.settings.save();
  await window.pass();
  expect(status()).toBe("");
});

test("the switch follows one that the tray icon's menu has changed, and other changes stay", async () => {
  const { settings } = window.app;
  const { server } = await window.backend.settings();
  settings.changeServer({ key: "secret" });
  const stored = { ...defaults, server: { ...server, enabled: true } };
  vi.spyOn(window.backend, "settings").mockResolvedValue(stored);
  await settings.refreshServer();
  expect(settings.values.server).toEqual({ ...server, enabled: true, key: "secret" });
});

test("the address of a running server can be copied", async () => {
  window.app.server.status = { url: "http://127.0.0.1:8642/v1", problem: null };
  await window.pass(0);
  expect(status()).toContain("http://127.0.0.1:8642/v1");
  expect(window.present("server-status").querySelector("button")?.textContent.trim()).toBe("Copy");
});

test("a request to a running server can be copied with its key", async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  expect(window.find("server-example")).toBeNull();
  window.app.settings.changeServer({ key: "secret" });
  await window.pass();
  window.app.server.status = { url: "http://127.0.0.1:9001/v1", problem: null };
  await window.pass(0);
  const example = window.present("server-example").textContent;
  expect(example).toContain("curl http://127.0.0.1:9001/v1/chat/completions");
  expect(example).toContain("'Authorization: Bearer secret'");
  await window.click("copy-server-example");
  expect(writeText).toHaveBeenCalledWith(example);
  expect(window.present("copy-server-example").textContent.trim()).toBe("Copied");
});

const REQUEST: ServerRequest = {
  number: 0,
  started_at: 0,
  method: "POST",
  path: "/v1/chat/completions",
  model: "starter",
  status: 200,
  prompt_tokens: 12,
  tokens: 340,
  tokens_per_second: 41.7,
  elapsed_ms: 8000,
};
const rows = () =>
  [...window.present("server-requests").querySelectorAll("tbody tr")].map((row) =>
    [...row.querySelectorAll("td")]
      .slice(1)
      .map((cell) => cell.textContent.replace(/\s+/g, " ").trim()),
  );

test("the latest requests to a running server are listed, and kept current", async () => {
  const requests = vi.spyOn(window.backend, "serverRequests").mockResolvedValue([]);
  await window.pass(2000);
  expect(requests).not.toHaveBeenCalled();
  window.app.server.status = { url: "http://127.0.0.1:8642/v1", problem: null };
  await window.pass();
  expect(window.find("server-requests")).toBeNull();
  const open = { ...REQUEST, number: 1, status: 200, tokens: null, tokens_per_second: null };
  requests.mockResolvedValue([
    { ...open, elapsed_ms: null },
    { ...open, number: 2 },
    { ...open, number: 3, model: null, method: "GET", path: "/v1/models" },
    { ...open, number: 4, model: null, status: 401 },
    REQUEST,
  ]);
  await window.pass(1100);
  expect(rows()).toEqual([
    ["POST /v1/chat/completions starter", "", "", "running"],
    ["POST /v1/chat/completions starter", "", "", "aborted"],
    ["GET /v1/models", "", "", "200"],
    ["POST /v1/chat/completions", "", "", "401"],
    ["POST /v1/chat/completions starter", "340", "42", "200"],
  ]);
  await window.click("settings-close");
  requests.mockClear();
  await window.pass(3000);
  expect(requests).not.toHaveBeenCalled();
});

test("each new key is long and different", async () => {
  const newKey = async () => {
    await window.click("settings-server-new-key");
    return window.app.settings.values.server.key;
  };
  const [first, second] = [await newKey(), await newKey()];
  expect(second).not.toBe(first);
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second).toMatch(/^[0-9a-f]{32}$/);
  expect(window.app.settings.values.server).toEqual({ ...defaults.server, key: second });
});
