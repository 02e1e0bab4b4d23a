import { expect, test } from "vitest";
import type { CatalogueModel } from "../bindings/CatalogueModel";
import type { Download } from "../bindings/Download";
import type { ModelEntry } from "../bindings/ModelEntry";
import { RECOMMENDATIONS, STARTER } from "../backend/modelFixtures";
import { fetchOf, type TargetAndDraft } from "./pairFetch";

const PAIR = RECOMMENDATIONS[0] ?? expect.fail();
const { target } = PAIR;
const draft = PAIR.draft ?? expect.fail();

function download(model: CatalogueModel, change: Partial<Download>): Download {
  const { id, repository, file, size_bytes: total_bytes } = model;
  const still = { done_bytes: 0, bytes_per_second: 0, reason: null };
  return { id, repository, file, total_bytes, state: "running", ...still, ...change };
}

function stateOf(
  downloads: Download[],
  here: CatalogueModel[] = [],
  asked: string[] = [],
  pair: TargetAndDraft = PAIR,
) {
  const installed = (id: string): ModelEntry | undefined =>
    here.some((model) => model.id === id)
      ? { ...STARTER, id: `/models/${id}`, name: id }
      : undefined;
  return fetchOf(pair, {
    asked,
    installed,
    download: (id) => downloads.find((one) => one.id === id),
  });
}

test("a pair that is not installed shows only the bytes to download", () => {
  const whole = target.size_bytes + draft.size_bytes;
  expect(stateOf([])).toEqual({ state: "missing", bytes: whole });
  expect(stateOf([], [draft])).toEqual({ state: "missing", bytes: target.size_bytes });
  expect(stateOf([], [], [target.id])).toEqual({ state: "starting" });
});

test("a target that brings its own draft is one download", () => {
  const alone = { target, draft: null };
  expect(stateOf([], [], [], alone)).toEqual({ state: "missing", bytes: target.size_bytes });
  const coming = stateOf([download(target, { done_bytes: 7 })], [], [], alone);
  expect(coming).toMatchObject({ state: "coming", done: 7, total: target.size_bytes });
  expect(stateOf([], [target], [], alone)).toMatchObject({ state: "here", draft: null });
});

test("two downloads are shown as one, with the sum of bytes and speeds", () => {
  const both = [
    download(target, { done_bytes: 1e9, bytes_per_second: 5e6 }),
    download(draft, { done_bytes: 2e8, bytes_per_second: 3e6 }),
  ];
  const total = target.size_bytes + draft.size_bytes;
  const expected = { state: "coming", done: 1.2e9, total, speed: 8e6, verifying: false };
  expect(stateOf(both)).toEqual(expected);
  const [first = expect.fail()] = both;
  const half = { ...expected, done: 1e9 + draft.size_bytes, speed: 5e6 };
  expect(stateOf([first], [draft]), "one of the two is here").toEqual(half);
  const paused = download(draft, { state: "paused", done_bytes: 2e8 });
  expect(stateOf([first, paused]).state, "one that still runs").toBe("coming");
});

test("a draft downloading for another target does not affect this pair", () => {
  const draftOnly = [download(draft, { done_bytes: 2e8, bytes_per_second: 3e6 })];
  expect(stateOf(draftOnly)).toEqual({ state: "missing", bytes: target.size_bytes });
  expect(stateOf([download(target, {})])).toMatchObject({ state: "coming" });
});

test("downloads being verified, or finished and not yet listed, have no bytes left", () => {
  const done = (model: CatalogueModel, state: Download["state"]) =>
    download(model, { state, done_bytes: model.size_bytes });
  expect(stateOf([done(target, "verifying"), done(draft, "done")])).toMatchObject({
    state: "coming",
    verifying: true,
  });
  expect(stateOf([done(target, "done"), done(draft, "done")])).toMatchObject({ verifying: true });
});

test("an automatic pause shows its reason, and one failure fails the pair", () => {
  const reason = "the network is gone";
  const paused = [
    download(target, { state: "paused", done_bytes: 5 }),
    download(draft, { state: "paused", reason }),
  ];
  expect(stateOf(paused)).toMatchObject({ state: "paused", done: 5, reason });
  const failed = download(draft, { state: "failed", reason: "is gated" });
  expect(stateOf([download(target, {}), failed])).toEqual({ state: "failed", reason: "is gated" });
});

test("a pair is installed once both models are listed, whatever the downloads' state", () => {
  const both = stateOf([download(target, { state: "done" })], [target, draft]);
  expect(both).toMatchObject({
    state: "here",
    target: { name: target.id },
    draft: { name: draft.id },
  });
});
