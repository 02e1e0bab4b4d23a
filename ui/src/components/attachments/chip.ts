/** Chips of stored attachments, and of excerpts. */
import { placeWords } from "../../attachments/excerpts";
import { byteWords } from "../../attachments/words";
import type { Attachment } from "../../bindings/Attachment";
import type { Excerpt } from "../../bindings/Excerpt";

/** Characters of Base64 for three bytes. */
const BASE64 = 4 / 3;

export function chipOf({ id, name, kind, bytes }: Attachment) {
  const picture = kind === "picture";
  return { id, name, words: byteWords(picture ? bytes / BASE64 : bytes), busy: false, picture };
}

/** Chip of the excerpt with this number, from 1. */
export function chipOfExcerpt(excerpt: Excerpt, number: number) {
  const name = `[${number}] ${excerpt.name}`;
  return { id: number, name, words: placeWords(excerpt), busy: false, picture: false };
}
