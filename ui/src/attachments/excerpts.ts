/** Excerpts of documents that are too long for the context. */
import type { Attached } from "../bindings/Attached";
import type { Excerpt } from "../bindings/Excerpt";
import type { TokenCount } from "../bindings/TokenCount";
import { count } from "../messages/numbers";
import { t } from "../messages/say";

interface WaitingFile {
  id: number;
  file: Attached | null;
  count: TokenCount | null;
}

/** Ids of waiting files that do not fit into `left` tokens with those before them. */
export function searchedFiles(waiting: readonly WaitingFile[], left: number | null): Set<number> {
  const searched = new Set<number>();
  let rest = left ?? Infinity;
  for (const { id, file, count: size } of waiting) {
    if (file === null || file.kind === "picture" || size === null) continue;
    if (size.tokens <= rest) rest -= size.tokens;
    else searched.add(id);
  }
  return searched;
}

/** "page 12, Results"; empty without a place. */
export function placeWords({ page, heading }: Excerpt): string {
  const parts = [page === null ? "" : t("attach.page", { page: count(page) }), heading ?? ""];
  return parts.filter((part) => part !== "").join(", ");
}

/** An excerpt as a file, whose text can be shown. */
export function excerptFile({ name, text }: Excerpt): Attached {
  return { name, kind: "text", text };
}

/** Numbers, from 1, of the excerpts that a text cites as "[2]", in the order of their numbers. */
export function citedIn(text: string, excerpts: readonly Excerpt[]): number[] {
  const cited = new Set(
    Array.from(text.matchAll(/\[(\d{1,2})\]/g), ([, number]) => Number(number)),
  );
  return excerpts.map((_, index) => index + 1).filter((number) => cited.has(number));
}
