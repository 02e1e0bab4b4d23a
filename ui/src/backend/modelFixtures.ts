/** Recorded models and devices for tests. */
import type { Recommendation } from "../bindings/Recommendation";
import { callOf, recordedStatus } from "./recordings";

const { targets, device } = recordedStatus();
const [starter] = targets;
if (!starter) throw new Error("the recorded status lacks the starter");

export const TARGETS = targets;
export const STARTER = starter;
export const CPU = device;
export const RECOMMENDATIONS = callOf("recommendations")?.answer as Recommendation[];
