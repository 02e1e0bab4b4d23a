/** The replay backend as seen by its parts: exclusive use of the engine, settings and status. */
import type { EngineStatus } from "../bindings/EngineStatus";
import type { Settings } from "../bindings/Settings";

export interface Desk {
  /** Occupies the engine for a prompt of about `tokens` tokens, or throws why it cannot. */
  begin(tokens: number): void;
  end(): void;
  stopped(): boolean;
  settings(): Settings;
  status(): EngineStatus;
  /** Waits for a duration, scaled by the speed of replies. */
  play(ms: number): Promise<void>;
}
