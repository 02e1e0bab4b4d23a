/** Draws pages of a PDF as JPEG pictures. */
import type { PDFPageProxy } from "pdfjs-dist";

/** Pixels per point: 150 per inch, enough for small print. */
const SCALE = 150 / 72;

/** Longest side in pixels. */
const SIDE = 2048;

const QUALITY = 0.9;

/** Draws the pages with these numbers; pages without any mark are left out. */
export async function drawnPages(
  numbers: readonly number[],
  page: (number: number) => Promise<PDFPageProxy>,
): Promise<Uint8Array[]> {
  const drawn: Uint8Array[] = [];
  for (const number of numbers) {
    const picture = await drawnPage(await page(number));
    if (picture) drawn.push(picture);
  }
  return drawn;
}

async function drawnPage(page: PDFPageProxy): Promise<Uint8Array | null> {
  const size = page.getViewport({ scale: 1 });
  const scale = Math.min(SCALE, SIDE / Math.max(size.width, size.height));
  const viewport = page.getViewport({ scale });
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.ceil(viewport.width));
  canvas.height = Math.max(1, Math.ceil(viewport.height));
  const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
  if (!context) return null;
  // Intent "print" does not wait for frames, which a hidden window does not have.
  await page.render({ canvas, canvasContext: context, viewport, intent: "print" }).promise;
  page.cleanup();
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  if (isBlank(new Uint32Array(data.buffer))) return null;
  const blob = await new Promise<Blob | null>((resolve) =>
    canvas.toBlob(resolve, "image/jpeg", QUALITY),
  );
  return blob && new Uint8Array(await blob.arrayBuffer());
}

function isBlank(pixels: Uint32Array): boolean {
  return pixels.every((pixel) => pixel === pixels[0]);
}
