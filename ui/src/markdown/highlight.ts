/** Colours for code: a library's tree of its parts, as shapes. The characters stay the same. */
import type { createLowlight } from "lowlight";
import { lazy } from "./lazy";
import { element, type Shape } from "./shapes";

/** Longer code is not coloured: it would hold up the page. */
const LONGEST = 30_000;

type Lowlight = ReturnType<typeof createLowlight>;
type Parts = ReturnType<Lowlight["highlight"]>["children"];

const highlighter = lazy(async () => {
  const { common, createLowlight: create } = await import("lowlight");
  return create(common);
});

/** `whenHere` is called if colours can be had later. */
export function highlighted(code: string, language: string, whenHere: () => void): Shape[] {
  if (language === "" || code.length > LONGEST) return [code];
  const lowlight = highlighter(whenHere);
  const name = language.toLowerCase();
  if (!lowlight?.registered(name)) return [code];
  return shapesOf(lowlight.highlight(name, code).children);
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
