/** Chips of stored attachments. */
import { byteWords } from "../../attachments/words";
import type { Attachment } from "../../bindings/Attachment";

/** Characters of Base64 for three bytes. */
const BASE64 = 4 / 3;

export function chipOf({ id, name, kind, bytes }: Attachment) {
  const picture = kind === "picture";
  return { id, name, words: byteWords(picture ? bytes / BASE64 : bytes), busy: false, picture };
}
