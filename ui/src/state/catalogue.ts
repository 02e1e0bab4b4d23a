/** Filters the catalogue by words of the models' names and by kinds of use. */
import type { CatalogueFamily } from "../bindings/CatalogueFamily";
import type { CatalogueModel } from "../bindings/CatalogueModel";
import type { Use } from "../bindings/Use";

/** Size limit of the filter "small". */
const SMALL_BYTES = 3e9;

export const FILTERS = ["fits", "small", "code", "reasoning", "languages", "pictures"] as const;
export type Filter = (typeof FILTERS)[number];

/**
 * Families with matching models, and only those models; families with targets that fit come first.
 */
export function chosen(
  families: readonly CatalogueFamily[],
  query: string,
  filters: readonly Filter[],
): CatalogueFamily[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = families
    .filter(({ uses }) => filters.every((filter) => !isUse(filter) || uses.includes(filter)))
    .map((family) => {
      const those = (models: CatalogueModel[]) =>
        models.filter((model) => isNamed(family, model, words) && suits(model, filters));
      const [targets, drafts, heads] = [
        those(family.targets),
        those(family.drafts),
        those(family.heads),
      ];
      return { ...family, targets, drafts, heads };
    })
    .filter(({ targets, drafts, heads }) =>
      words.length > 0 ? targets.length + drafts.length + heads.length > 0 : targets.length > 0,
    );
  const fits = ({ targets }: CatalogueFamily) => targets.some((model) => suits(model, ["fits"]));
  return [...shown.filter(fits), ...shown.filter((family) => !fits(family))];
}

function isUse(filter: Filter): filter is Use {
  return filter !== "fits" && filter !== "small";
}

function isNamed(
  { name }: CatalogueFamily,
  model: CatalogueModel,
  words: readonly string[],
): boolean {
  const names = `${name} ${model.label} ${model.id}`.toLowerCase();
  return words.every((word) => names.includes(word));
}

function suits(model: CatalogueModel, filters: readonly Filter[]): boolean {
  return (
    (!filters.includes("fits") || (model.fits && model.has_disk)) &&
    (!filters.includes("small") || model.size_bytes <= SMALL_BYTES)
  );
}
