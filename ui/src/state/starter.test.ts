import { expect, test } from "vitest";
import { STARTER } from "../backend/replayModels";
import { withoutStarter } from "./starter";

const smollm2 = { ...STARTER, id: "smollm2" };
const draft = { ...STARTER, id: "starter-draft" };
const ids = (target: typeof STARTER, targets: (typeof STARTER)[]) =>
  withoutStarter(targets, { target, targets }).map(({ id }) => id);

test("the starter pair stands in no picker beside SmolLM2", () => {
  expect(ids(smollm2, [smollm2, STARTER, draft])).toEqual(["smollm2"]);
});

test("the starter pair can be chosen where it is in use, and where SmolLM2 is missing", () => {
  expect(ids(STARTER, [smollm2, STARTER, draft])).toEqual(["smollm2", "starter", "starter-draft"]);
  expect(ids({ ...STARTER, id: "other" }, [STARTER, draft])).toEqual(["starter", "starter-draft"]);
});
