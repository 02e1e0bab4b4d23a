/** Worker that highlights one piece of code after another. */
import { common, createLowlight } from "lowlight";
import { element, type Shape } from "./shapes";

export interface Uncoloured {
  language: string;
  code: string;
}

const lowlight = createLowlight(common);
type Parts = ReturnType<typeof lowlight.highlight>["children"];

/** Highlighted code; null for a language without a grammar. */
export function coloured({ language, code }: Uncoloured): Shape[] | null {
  return lowlight.registered(language)
    ? shapesOf(lowlight.highlight(language, code).children)
    : null;
}

function shapesOf(parts: Parts): Shape[] {
  return parts.flatMap((part): Shape[] => {
    if (part.type === "text") return [part.value];
    if (part.type !== "element") return [];
    const names = part.properties["className"];
    const name = Array.isArray(names) ? names.join(" ") : undefined;
    return [element("span", name, shapesOf(part.children))];
  });
}
