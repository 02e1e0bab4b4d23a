// Records the commands of a conversation in the real window, with their events and answers, for the
// page's player: `node scripts/record-ipc.mjs APPLICATION`. Needs Xvfb and WebKitWebDriver. What
// it writes, and what is written by hand, is in ui/src/backend/recordings/index.ts.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [application] = process.argv.slice(2);
if (!application) throw new Error("usage: node scripts/record-ipc.mjs APPLICATION");
const FOLDER = join(import.meta.dirname, "../ui/src/backend/recordings");
const PORT = 7788;
const DISPLAY = ":77";

const LANTERN = "Tell me a story about a fox who finds a lantern.";
const SPECULATION = "What is speculative decoding?";
const COUNT = "Count from one to twenty.";

/** Replies before the one that is kept. */
const WARM_UP = 3;

/** Drafter, temperature, seed and prompt of each recorded reply. */
const REPLIES = {
  lantern: ["starter-draft", 0.7, 3, LANTERN],
  speculation: ["starter-draft", 1, 22, SPECULATION],
  "count-ngram": ["ngram", 0.7, 2, COUNT],
  plain: ["none", 0.7, 3, LANTERN],
};

/** Runs in the page: calls a command, and collects its events with their times. */
function call(command, args, channel, done) {
  const shell = window.__TAURI_INTERNALS__;
  const begin = performance.now();
  const now = () => performance.now() - begin;
  const events = [];
  // The last events may come after the answer.
  const end = (call) => setTimeout(() => done(call), 300);
  const id = shell.transformCallback(({ message }) => {
    if (message === undefined) return;
    for (const event of [message].flat()) events.push({ at_ms: now(), event });
  });
  const all = channel === null ? args : { ...args, [channel]: `__CHANNEL__:${id}` };
  shell.invoke(command, all).then(
    (answer) => end({ command, args, events, at_ms: now(), answer }),
    (error) => done({ command, args, error }),
  );
}

const data = mkdtempSync(join(tmpdir(), "record-ipc-"));
const display = spawn("Xvfb", [DISPLAY, "-screen", "0", "1400x900x24"], { stdio: "ignore" });
const driver = spawn("WebKitWebDriver", [`--port=${PORT}`], {
  stdio: "ignore",
  env: {
    ...process.env,
    DISPLAY,
    DBUS_SESSION_BUS_ADDRESS: "unix:path=/nonexistent",
    TAURI_AUTOMATION: "true",
    TAURI_WEBVIEW_AUTOMATION: "true",
    FORETOKEN_DATA_DIR: data,
    XDG_DATA_HOME: join(data, "webview"),
    FORETOKEN_SMOLLM2_DIR: "/nonexistent",
    WGPU_BACKEND: "noop",
  },
});

async function driven(method, path, body) {
  const address = `http://127.0.0.1:${PORT}${path}`;
  const options = { method, body: body && JSON.stringify(body) };
  const { value } = await (await fetch(address, options)).json();
  if (value?.error) throw new Error(`${value.error}: ${value.message}`);
  return value;
}

/** JSON with numbers rounded to four decimals. */
const json = (value) =>
  JSON.stringify(value, (_, part) =>
    typeof part === "number" ? Math.round(part * 10_000) / 10_000 : part,
  );

/** A call as lines: the command, each event, and the answer. */
function lines({ command, args, events, at_ms, answer, error }) {
  if (error) throw new Error(`${command}: ${json(error)}`);
  const all = [{ command, args }, ...events, { at_ms, answer }];
  return all.map((line) => `${json(line)}\n`).join("");
}

const write = (name, ...calls) =>
  writeFileSync(join(FOLDER, `${name}.jsonl`), calls.map(lines).join(""));

try {
  await sleep(1500);
  const browser = { "webkitgtk:browserOptions": { binary: application, args: [] } };
  const capabilities = { alwaysMatch: browser };
  const { sessionId } = await driven("POST", "/session", { capabilities });
  const session = `/session/${sessionId}`;
  await driven("POST", `${session}/timeouts`, { script: 300_000 });
  const record = (command, args = {}, channel = null) => {
    const script = `(${call})(...arguments)`;
    return driven("POST", `${session}/execute/async`, { script, args: [command, args, channel] });
  };
  let status = {};
  while (status.phase !== "ready") {
    await sleep(500);
    const { events } = await record("watch_engine", {}, "onChange");
    status = events.at(0)?.event ?? {};
  }
  const { answer: usual } = await record("settings");
  const messages = {};
  for (const [name, [draft, temperature, seed, text]] of Object.entries(REPLIES)) {
    const settings = structuredClone(usual);
    Object.assign(settings.sampling, { temperature, seed, top_p: 0.95, mode: "reproducible" });
    Object.assign(settings, { target: "starter", drafts: { starter: draft } });
    if (draft === "starter-draft") settings.speculation.drafter = "model";
    else settings.speculation.length = { type: "fixed", tokens: 4 };
    await record("save_settings", { settings });
    const sent = { text, kept: [], attached: [] };
    const send = () => record("send", { conversation: null, sent }, "onEvents");
    // The governor measures during the first ones.
    for (let at = 0; at < WARM_UP; at += 1) await send();
    const reply = await send();
    const message = (messages[name] = reply.answer.reply.id);
    write(name, reply, await record("speedups", { message }));
  }
  await record("save_settings", { settings: usual });
  const setup = { draft: "starter-draft", speculation: usual.speculation, mode: "reproducible" };
  const setups = [setup, { ...setup, draft: "none" }];
  const request = { prompt: LANTERN, setups, pairs: 2, max_tokens: 64 };
  const message = messages["count-ngram"];
  write("check", await record("check_reply", { message }, "onProgress"));
  write("arena", await record("run_arena", { request }, "onEvents"));
  const events = [{ at_ms: 0, event: status }];
  const watched = { command: "watch_engine", args: {}, events, at_ms: 0, answer: null };
  write("engine", watched, await record("built_in_presets"));
  await driven("DELETE", session);
} finally {
  driver.kill();
  display.kill();
  rmSync(data, { recursive: true, force: true });
}
