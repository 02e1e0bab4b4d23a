import { expect, test } from "vitest";
import type { CatalogueFamily } from "../bindings/CatalogueFamily";
import type { ModelEntry } from "../bindings/ModelEntry";
import { waysToSee } from "./seeing";

const model = (id: string, change: Partial<ModelEntry> = {}) =>
  ({
    id,
    name: id,
    kind: "local",
    sees: false,
    fits: true,
    problem: null,
    parameters: 1,
    ...change,
  }) as ModelEntry;

const family = (id: string, uses: CatalogueFamily["uses"]) =>
  ({ uses, targets: [{ id }], drafts: [] }) as unknown as CatalogueFamily;

test("the largest model that sees and fits is offered", () => {
  const targets = [
    model("blind", { parameters: 9 }),
    model("small", { sees: true }),
    model("large", { sees: true, parameters: 4 }),
    model("huge", { sees: true, parameters: 70, fits: false }),
    model("damaged", { sees: true, parameters: 8, problem: { kind: "damaged_file", reason: "" } }),
  ];
  const ways = waysToSee({ target: model("blind"), targets }, []);
  expect([ways.use?.id, ways.complete]).toEqual(["large", null]);
  expect(waysToSee({ target: null, targets: targets.slice(0, 1) }, []).use).toBe(null);
});

test("a downloaded model whose repository has a vision file can be completed", () => {
  const families = [family("a/code:m.gguf", ["code"]), family("a/sees:m.gguf", ["pictures"])];
  const complete = (target: ModelEntry) =>
    waysToSee({ target, targets: [] }, families).complete?.id ?? null;
  expect(complete(model("1", { kind: "downloaded", name: "a/sees:m.gguf" }))).toBe("a/sees:m.gguf");
  expect(complete(model("2", { kind: "downloaded", name: "a/code:m.gguf" }))).toBe(null);
  expect(complete(model("3", { kind: "added", name: "a/sees:m.gguf" }))).toBe(null);
});
