/** pdf.js's worker, which may decode no more than {@link limitArrays} allows. */
import "pdfjs-dist/legacy/build/pdf.worker.min.mjs";
import { limitArrays, TOO_LONG } from "./pdfLimits";

limitArrays(globalThis, () => postMessage(TOO_LONG));
