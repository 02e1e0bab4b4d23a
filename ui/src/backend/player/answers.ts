/** Answers of the player's commands: recorded ones, and types of handlers for all others. */
import type { Commands } from "../../bindings/commands";
import { BackendError } from "../backend";
import type { RecordedCall } from "../recording";
import { callOf } from "../recordings";

export type Args<Name extends keyof Commands> = Commands[Name]["args"];
type Answer<Name extends keyof Commands> = Commands[Name]["returns"] extends null
  ? unknown
  : Commands[Name]["returns"];
/** Commands with state; all others have their recorded answer. */
export type Handlers = {
  [Name in keyof Commands]?: (args: Args<Name>) => Answer<Name> | Promise<Answer<Name>>;
};

export function recorded(command: keyof Commands, args?: object): RecordedCall {
  return callOf(command, args) ?? { command, events: [], at_ms: 0, answer: null };
}

export function recordedAnswer<Name extends keyof Commands>(
  command: Name,
): Commands[Name]["returns"] {
  return structuredClone(recorded(command).answer) as Commands[Name]["returns"];
}

/** The recorded answer of a command after its time, or its error. */
export async function answered<Name extends keyof Commands>(
  command: Name,
  args: object,
): Promise<Commands[Name]["returns"]> {
  const { at_ms, answer, error } = recorded(command, args);
  if (at_ms > 0) await until(performance.now() + at_ms);
  if (error) throw BackendError.from(error);
  return structuredClone(answer) as Commands[Name]["returns"];
}

export function until(moment: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, moment - performance.now())));
}

export function notFound(id: number): never {
  throw new BackendError("not_found", `nothing has the number ${id}: it may have been deleted.`);
}
