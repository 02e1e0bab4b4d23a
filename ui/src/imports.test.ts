import { expect, test } from "vitest";

/** Folders that features may import: all except the backend and other features. */
const SHOWN = [
  ...["bindings", "messages", "trace", "arena", "check", "speculation", "heatmap", "markdown"],
  ...["attachments", "search", "settings", "commands", "state", "components/ui"],
  "composing.ts",
];

/** Permitted imports of each folder besides itself; a new folder needs a line here. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  // The table of commands uses the type of their channel.
  bindings: ["backend"],
  messages: ["bindings"],
  trace: ["bindings", "messages"],
  arena: ["bindings", "messages", "trace"],
  check: ["bindings", "messages"],
  speculation: ["bindings", "messages"],
  heatmap: ["bindings", "messages", "trace"],
  markdown: ["bindings", "messages", "trace"],
  backend: ["bindings", "trace", "arena"],
  "frames.ts": [],
  search: [],
  settings: ["messages", "search"],
  attachments: ["bindings", "messages"],
  state: [
    "bindings",
    "messages",
    "attachments",
    "trace",
    "arena",
    "search",
    "settings",
    "backend",
    "markdown",
    "frames.ts",
  ],
  "composing.ts": [],
  commands: ["bindings", "messages", "search", "settings", "state", "composing.ts"],
  // General controls depend only on their arguments, the language, and input methods.
  "components/ui": ["messages", "composing.ts"],
  "components/attachments": SHOWN,
  // Replies list the excerpts that they cite.
  "components/reply": [...SHOWN, "components/attachments"],
  "components/sidebar": SHOWN,
  "components/library": SHOWN,
  "components/settings": SHOWN,
  "components/commands": SHOWN,
  "components/drop": SHOWN,
  // Replies and the heatmap share the card of a token.
  "components/inspector": [...SHOWN, "components/reply"],
  // Screens beside a hidden sidebar have the button to show it.
  "components/arena": [...SHOWN, "components/sidebar"],
  // The welcome page offers models.
  "components/conversation": [
    ...SHOWN,
    ...["components/attachments", "components/reply", "components/sidebar", "components/library"],
  ],
};

const sources = import.meta.glob<string>(["./**/*.{css,ts,svelte}", "!./**/*.test.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});
const IMPORT =
  /^\s*(?:import|export)\s(?:[^"';]*?\sfrom\s)?\s*"([^"]+)"|import\(\s*"([^"]+)"\s*\)/gm;

/** Module names of static and dynamic imports. */
function namesIn(source: string): string[] {
  return [...source.matchAll(IMPORT)].flatMap(([, name, later]) => name ?? later ?? []);
}

/** The file of a module name; null for packages and recordings. */
function fileOf(name: string, importer: string): string | null {
  if (!name.startsWith(".")) return null;
  const path = `.${new URL(name, `file://${importer.slice(1)}`).pathname}`;
  const ends = ["", ".ts", "/index.ts"];
  return ends.map((end) => path + end).find((file) => file in sources) ?? null;
}

const files = Object.keys(sources);
const imports = new Map(
  Object.entries(sources).map(([file, source]) => [
    file,
    namesIn(source).flatMap((name) => fileOf(name, file) ?? []),
  ]),
);

/** The folder of a file in the rules; null for files that assemble the page. */
function folderOf(file: string): string | null {
  const [, first = "", second = ""] = file.split("/");
  if (first === "components") return `${first}/${second}`;
  return ["frames.ts", "composing.ts"].includes(first) || file.split("/").length > 2 ? first : null;
}

/** All direct and indirect imports of a file. */
function reachedFrom(file: string): Set<string> {
  const reached = new Set<string>();
  const next = [...(imports.get(file) ?? [])];
  for (let at = next.pop(); at !== undefined; at = next.pop()) {
    if (reached.has(at)) continue;
    reached.add(at);
    next.push(...(imports.get(at) ?? []));
  }
  return reached;
}

test("every folder has a rule", () => {
  const folders = files.map(folderOf).filter((folder) => folder !== null);
  expect([...new Set(folders)].sort()).toEqual(Object.keys(MAY_IMPORT).sort());
});

test("components depend on the state, the state on the backend, and general controls on neither", () => {
  const wrong = files.flatMap((file) => {
    const folder = folderOf(file);
    if (folder === null) return [];
    const others = (imports.get(file) ?? []).filter((used) => folderOf(used) !== folder);
    const allowed = MAY_IMPORT[folder] ?? [];
    return others
      .filter((used) => !allowed.includes(folderOf(used) ?? ""))
      .map((used) => `${file} imports ${used}`);
  });
  expect(wrong).toEqual([]);
});

test("only one file imports Tauri", () => {
  const knowing = files.filter((file) =>
    namesIn(sources[file] ?? "").some((name) => name.startsWith("@tauri-apps/")),
  );
  expect(knowing).toEqual(["./backend/tauri.ts"]);
});

test("no cycle of imports has more than two files", () => {
  const reached = new Map(files.map((file) => [file, reachedFrom(file)]));
  const circles = files
    .map((file) => [...(reached.get(file) ?? [])].filter((at) => reached.get(at)?.has(file)))
    .filter((circle) => circle.length > 2);
  expect(circles).toEqual([]);
});
