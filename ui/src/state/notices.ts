/** Notifications of the system about a long reply or a download that ended unwatched. */
import type { Backend } from "../backend/backend";
import type { Download } from "../bindings/Download";
import type { Reply as Stored } from "../bindings/Reply";
import { plainText } from "../markdown/plainText";
import { sentence } from "../messages/sentence";
import { t } from "../messages/say";

/** Time from which a reply is long. */
const LONG_MS = 10_000;
/** Longest title and body, in characters. */
const LONGEST_TITLE = 80;
const LONGEST_BODY = 160;

export class Notices {
  readonly #backend: Backend;
  readonly #isOn: () => boolean;

  /** `isOn` returns whether notifications are switched on. */
  constructor(backend: Backend, isOn: () => boolean) {
    this.#backend = backend;
    this.#isOn = isOn;
  }

  /** Shows a reply's first words, if it took `ms` and was not stopped. */
  replyEnded({ conversation, reply }: Stored, ms: number) {
    if (ms < LONG_MS || reply.finish === "cancelled") return;
    const words = reply.problem === null ? plainText(reply.text) : sentence(reply.problem);
    this.#show(conversation.title, words === "" ? t("window.replyFinished") : words);
  }

  /** Shows the downloads that ended between two lists. */
  downloadsChanged(before: readonly Download[], after: readonly Download[]) {
    for (const { id, repository, file, state, reason } of after) {
      const known = before.find((one) => one.id === id);
      if (!known || known.state === state) continue;
      const name = file ?? repository;
      if (state === "done") this.#show(t("window.downloaded"), name);
      if (state === "failed") this.#show(t("window.downloadFailed"), `${name}: ${reason ?? ""}`);
    }
  }

  #show(title: string, body: string) {
    const isWatched = !document.hidden && document.hasFocus();
    if (isWatched || !this.#isOn()) return;
    // A system without notifications changes nothing else.
    void this.#backend
      .notify(shortened(title, LONGEST_TITLE), shortened(body, LONGEST_BODY))
      .catch(() => undefined);
  }
}

/** A text in one line, cut at a word. */
function shortened(text: string, longest: number): string {
  const line = text
    .slice(0, 4 * longest)
    .replace(/\s+/g, " ")
    .trim();
  if (line.length <= longest) return line;
  const cut = line.slice(0, longest);
  const end = cut.lastIndexOf(" ");
  return `${(end > longest / 2 ? cut.slice(0, end) : cut.replace(/[\ud800-\udbff]$/, "")).trimEnd()}…`;
}
