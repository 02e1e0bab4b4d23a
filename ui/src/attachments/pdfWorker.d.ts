/** Types that pdf.js does not declare. */
declare module "pdfjs-dist/legacy/build/pdf.worker.mjs" {
  export const WorkerMessageHandler: { initializeFromPort(port: MessagePort): void };
}

declare module "pdfjs-dist/legacy/build/pdf.worker.min.mjs";
