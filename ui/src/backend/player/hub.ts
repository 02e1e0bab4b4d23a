/** Hub of the player: searches, downloads and the token. */
import type { Download } from "../../bindings/Download";
import type { ModelEntry } from "../../bindings/ModelEntry";
import type { Repository } from "../../bindings/Repository";
import type { TokenSource } from "../../bindings/TokenSource";
import { BackendError } from "../backend";
import { recordedStatus } from "../recordings";
import { answered, notFound, recorded, recordedAnswer, until, type Handlers } from "./answers";
import { Downloads, offered } from "./downloads";

/** Time until the hub answers. */
const ANSWER_MS = 350;

export class Hub {
  readonly #downloads: Downloads;
  #token: TokenSource = "none";

  constructor(hasSample: boolean, onModel: (model: ModelEntry) => void) {
    const sample = hasSample ? recorded("watch_downloads").events[0]?.event : [];
    this.#downloads = new Downloads(sample as Download[], (done) => onModel(downloaded(done)));
  }

  readonly handlers: Handlers = {
    search_hub: async ({ words }) => {
      const found = await answered("search_hub", { words });
      return found.filter(({ id }) => id.toLowerCase().includes(words.toLowerCase()));
    },
    find_repository: async ({ name }) => {
      const found = JSON.stringify(await answered("find_repository", { name }));
      const model = (name.split("/").at(-1) ?? name).replace(/-GGUF$/i, "");
      return JSON.parse(found.replaceAll("NAME", name).replaceAll("MODEL", model)) as Repository;
    },
    watch_downloads: ({ onChange }) => this.#downloads.watch((all) => onChange.onmessage(all)),
    start_download: ({ repository, file }) => this.#startDownload(repository, file),
    pause_download: ({ id }) => this.#downloads.pause(id),
    resume_download: ({ id }) => this.#downloads.resume(id),
    cancel_download: ({ id }) => this.#downloads.remove(id),
    dismiss_download: ({ id }) => this.#downloads.remove(id),
    hub_token: () => this.#token,
    set_hub_token: async ({ token }) => (this.#token = await answered("set_hub_token", { token })),
  };

  async #startDownload(repository: string, file: string | null): Promise<Download> {
    await until(performance.now() + ANSWER_MS);
    const id = file === null ? repository : `${repository}:${file}`;
    const families = recordedAnswer("catalogue");
    const model = offered(id, families, recordedAnswer("recommendations"));
    if (model?.gated && this.#token === "none") {
      const address = `https://huggingface.co/${repository}`;
      const message = `${repository} is gated: accept its licence at ${address} and set a token.`;
      throw new BackendError("needs_token", message);
    }
    return this.#downloads.start(repository, file, model?.size_bytes);
  }
}

/** The model of a finished download. */
function downloaded({ id, file, repository, total_bytes }: Download): ModelEntry {
  const model = recordedStatus().targets.find(({ kind }) => kind === "downloaded");
  return {
    ...(model ?? notFound(0)),
    id: `/home/me/.cache/huggingface/hub/${id}`,
    label: file?.split("/").at(-1)?.replace(".gguf", "") ?? repository,
    name: id,
    size_bytes: total_bytes,
    memory_bytes: 1.125 * total_bytes,
    parameters: total_bytes * 1.6,
  };
}
