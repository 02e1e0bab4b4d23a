/** Picture files as data URLs. The engine decodes them; other kinds become PNG here. */
import type { Attached } from "../bindings/Attached";
import { facts } from "../bindings/facts";
import { count } from "../messages/numbers";
import { t } from "../messages/say";
import { Refusal } from "./refusal";

/** File names of pictures. SVG is text. */
const NAME = /\.(png|jpe?g|gif|webp|bmp|tiff?|heic|avif|ico)$/i;

/** First bytes of the formats that the engine reads, as Latin-1, and their types. */
const FORMATS: readonly [RegExp, string][] = [
  [/^\x89PNG/, "png"],
  [/^\xff\xd8\xff/, "jpeg"],
  [/^GIF8/, "gif"],
  [/^RIFF....WEBP/s, "webp"],
  [/^BM/, "bmp"],
];

/** Bytes per call of `String.fromCharCode`. */
const PIECE = 0x8000;

export function isPicture(name: string, head: Uint8Array): boolean {
  return NAME.test(name) || (format(head) !== null && format(head) !== "bmp");
}

function format(head: Uint8Array): string | null {
  const start = String.fromCharCode(...head.subarray(0, 16));
  return FORMATS.find(([magic]) => magic.test(start))?.[1] ?? null;
}

/**
 * Returns a picture file as an attachment.
 *
 * @throws Refusal
 */
export async function pictureFile(name: string, bytes: Uint8Array): Promise<Attached> {
  const type = format(bytes);
  const known = type === null ? await converted(name, bytes) : bytes;
  if (known.length > facts.pictureBytes) throw new Refusal(t("attach.pictureTooLarge", { name }));
  const text = `data:image/${type ?? "png"};base64,${base64(known)}`;
  return { name, kind: "picture", text };
}

/** A page of a scanned PDF, for which the model looks at small print. */
export function pagePicture(name: string, page: number, jpeg: Uint8Array): Attached {
  const file: Attached = {
    name: t("attach.pageOf", { name, page: count(page) }),
    kind: "picture",
    text: `data:image/jpeg;base64,${base64(jpeg)}`,
  };
  return withDetail(file, "high");
}

export const DETAILS = ["normal", "high"] as const;
/** How closely the model looks at a picture. */
export type Detail = (typeof DETAILS)[number];

/** Parameter of a picture's data URL. */
const HIGH = ";detail=high";

export function detailOf({ text }: Attached): Detail {
  return text.slice(0, text.indexOf(",")).includes(HIGH) ? "high" : "normal";
}

export function withDetail(file: Attached, detail: Detail): Attached {
  const plain = file.text.replace(HIGH, "");
  const text = detail === "high" ? plain.replace(";base64,", `${HIGH};base64,`) : plain;
  return { ...file, text };
}

/** A picture of another kind as PNG, if this web view can show it: HEIC on a Mac, AVIF. */
async function converted(name: string, bytes: Uint8Array): Promise<Uint8Array> {
  try {
    const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext("2d")?.drawImage(image, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/png" });
    return new Uint8Array(await blob.arrayBuffer());
  } catch {
    throw new Refusal(t("attach.image", { name }));
  }
}

/** Bytes in Base64. */
export function base64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += PIECE) {
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + PIECE)));
  }
  return btoa(pieces.join(""));
}
