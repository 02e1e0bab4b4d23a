/** Files dropped on the page in a browser, which has no paths: names stand in for them. */
import type { FileDrag } from "../../bindings/FileDrag";
import type { FileKind } from "../../bindings/FileKind";
import { BackendError } from "../backend";
import type { Handlers } from "./answers";

export class Drops {
  #dropped: File[] = [];

  readonly handlers: Handlers = {
    watch_file_drags: ({ onDrag }) => this.#watch((drag) => onDrag.onmessage(drag)),
    dropped_file: ({ path }) => this.#file(path).arrayBuffer(),
    clipboard_picture: () => {
      throw new BackendError("not_found", "A browser shows no clipboard.");
    },
  };

  #watch(onDrag: (drag: FileDrag) => void) {
    window.addEventListener("dragenter", (event) => {
      if (event.relatedTarget !== null) return;
      // A browser reveals names only after the drop.
      const kinds = [...(event.dataTransfer?.items ?? [])].map((): FileKind => "attachment");
      onDrag({ type: "over", kinds });
    });
    window.addEventListener("dragover", (event) => event.preventDefault());
    window.addEventListener("dragleave", (event) => {
      if (event.relatedTarget === null) onDrag({ type: "left" });
    });
    window.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#dropped = [...(event.dataTransfer?.files ?? [])];
      const files = this.#dropped.map(({ name }) => ({
        path: `/dropped/${name}`,
        kind: kind(name),
      }));
      onDrag({ type: "dropped", files });
      onDrag({ type: "left" });
    });
  }

  #file(path: string): File {
    const found = this.#dropped.find(({ name }) => path === `/dropped/${name}`);
    if (found) return found;
    throw new BackendError("not_found", "This file was not dropped here.");
  }
}

/** The kind of a file by its name, as in the shell. */
function kind(name: string): FileKind {
  const end = name.toLowerCase().split(".").at(-1);
  if (end === "gguf" || end === "safetensors") return "model";
  return end === "jsonl" ? "trace" : "attachment";
}
