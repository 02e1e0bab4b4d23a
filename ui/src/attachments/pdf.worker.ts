/** pdf.js's worker with the memory limit of {@link limitArrays}. */
import "pdfjs-dist/legacy/build/pdf.worker.min.mjs";
import { limitArrays, TOO_LONG } from "./pdfLimits";

limitArrays(globalThis, () => postMessage(TOO_LONG));
