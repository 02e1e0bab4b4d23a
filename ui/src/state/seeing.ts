/** Ways to a model that sees pictures, for pictures that wait for one that does not. */
import type { CatalogueFamily } from "../bindings/CatalogueFamily";
import type { CatalogueModel } from "../bindings/CatalogueModel";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { ModelEntry } from "../bindings/ModelEntry";

export interface WaysToSee {
  /** The loaded model in the catalogue, if its repository has the vision file that it lacks. */
  complete: CatalogueModel | null;
  /** The largest model on this computer that sees and fits. */
  use: ModelEntry | null;
}

export function waysToSee(
  { target, targets }: Pick<EngineStatus, "target" | "targets">,
  families: readonly CatalogueFamily[],
): WaysToSee {
  const seeing = families.filter(({ uses }) => uses.includes("pictures"));
  const models = seeing.flatMap((family) => [...family.targets, ...family.drafts]);
  const name = target?.kind === "downloaded" ? target.name : null;
  const usable = targets.filter(({ sees, fits, problem }) => sees && fits && problem === null);
  return {
    complete: models.find(({ id }) => id === name) ?? null,
    use: usable.toSorted((a, b) => b.parameters - a.parameters)[0] ?? null,
  };
}
