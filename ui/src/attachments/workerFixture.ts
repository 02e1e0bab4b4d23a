/** pdf.js's real worker code on the test's own thread. */
import { limitArrays, TOO_LONG } from "./pdfLimits";
import { WorkerMessageHandler } from "pdfjs-dist/legacy/build/pdf.worker.mjs";

export class LocalWorker {
  /** Number of workers that were not terminated. */
  static alive = 0;

  readonly #channel = new MessageChannel();

  readonly #unlimit: () => void;

  constructor() {
    LocalWorker.alive += 1;
    this.#unlimit = limitArrays(globalThis, () => this.#channel.port2.postMessage(TOO_LONG));
    WorkerMessageHandler.initializeFromPort(this.#channel.port2);
    this.#channel.port2.start();
    this.#channel.port1.start();
  }

  postMessage(message: unknown, transfer: Transferable[] = []) {
    this.#channel.port1.postMessage(message, transfer);
  }

  addEventListener(type: string, listen: (event: Event) => void) {
    this.#channel.port1.addEventListener(type, listen);
  }

  removeEventListener(type: string, listen: (event: Event) => void) {
    this.#channel.port1.removeEventListener(type, listen);
  }

  terminate() {
    LocalWorker.alive -= 1;
    this.#unlimit();
    this.#channel.port1.close();
    this.#channel.port2.close();
  }
}
