/**
 * Checks of recorded replies in an ordinary browser: invented results for a trace. `?check=`
 * selects the result: `identical`, `tie`, `bug`, `ended`, `distribution` or `refused`.
 */
import type { CheckProgress } from "../bindings/CheckProgress";
import type { ReplyCheck } from "../bindings/ReplyCheck";
import type { Round } from "../bindings/Round";
import { emitted, tokenAt } from "../trace/round";
import { tokenRefAt } from "../trace/tokenRef";
import { BackendError } from "./backend";
import type { Desk } from "./replayDesk";

const MS_PER_TOKEN = 0.8;
/** Position of the invented difference. */
const DIFFERS_AT = 40;

export async function checkReply(
  rounds: readonly Round[],
  answer: string | null,
  desk: Desk,
  onProgress: (progress: CheckProgress) => void,
): Promise<ReplyCheck> {
  if (rounds.length === 0) {
    const message =
      "the trace of this reply was not kept, and without it there is nothing to compare with. Settings > Data keeps the traces of later replies.";
    throw new BackendError("not_found", message);
  }
  if (answer === "refused") {
    const message =
      "this reply was written by Qwen3 8B · Q4_K_M, and Starter 8.1M · Q8_0 is loaded: choose Qwen3 8B as the target to check it.";
    throw new BackendError("no_target", message);
  }
  desk.begin(0);
  try {
    const total = rounds.reduce((tokens, round) => tokens + emitted(round), 0);
    for (let done = 0; done <= total; done += 1) {
      if (desk.stopped()) throw new BackendError("cancelled", "the check was stopped.");
      onProgress({ done, total });
      await desk.play(MS_PER_TOKEN);
    }
    return found(rounds, total, answer ?? likely(rounds, desk), desk.settings().sampling.seed);
  } finally {
    desk.end();
  }
}

function likely(rounds: readonly Round[], desk: Desk): string {
  const { temperature, mode } = desk.settings().sampling;
  const drawn = temperature > 0 && mode === "fastest";
  return drawn && rounds.some(({ drafted }) => drafted.length > 0) ? "distribution" : "identical";
}

function found(
  rounds: readonly Round[],
  tokens: number,
  answer: string,
  seed: number | null,
): ReplyCheck {
  if (answer === "distribution") {
    const judged = rounds
      .flatMap(({ drafted }) => drafted)
      .filter(({ outcome }) => outcome !== "discarded").length;
    return { kind: "distribution", judged, different: 0, largest_difference: 0 };
  }
  if (answer === "identical") return { kind: "text", tokens, seed, difference: null };
  const position = Math.min(DIFFERS_AT, tokens - 1);
  const place = tokenRefAt(rounds, position);
  const token = place && tokenAt(rounds[place.round], place.slot);
  const { text = "", token: id = 0 } =
    (token && ("extra" in token ? token.extra : token.drafted)) ?? {};
  const near = answer === "tie";
  const gap = near ? 0.0003 : 2.1714;
  const difference = {
    position,
    with: { token: id, text, logit: 14.0625 - gap },
    without: answer === "ended" ? null : { token: 1166, text: " garden", logit: 14.0625 },
    gap: answer === "ended" ? null : gap,
    near_tie: near,
  };
  return { kind: "text", tokens, seed, difference };
}
