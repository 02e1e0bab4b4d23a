import { expect, test } from "vitest";
import { STARTER } from "../backend/modelFixtures";
import { withoutStarter } from "./starter";

const smollm2 = { ...STARTER, id: "smollm2" };
const draft = { ...STARTER, id: "starter-draft" };
const ids = (target: typeof STARTER, targets: (typeof STARTER)[]) =>
  withoutStarter(targets, { target, targets }).map(({ id }) => id);

test("the starter pair is hidden in pickers beside SmolLM2", () => {
  expect(ids(smollm2, [smollm2, STARTER, draft])).toEqual(["smollm2"]);
});

test("the starter pair can be chosen if it is in use, or if SmolLM2 is missing", () => {
  expect(ids(STARTER, [smollm2, STARTER, draft])).toEqual(["smollm2", "starter", "starter-draft"]);
  expect(ids({ ...STARTER, id: "other" }, [STARTER, draft])).toEqual(["starter", "starter-draft"]);
});
