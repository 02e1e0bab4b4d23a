/** What the replay backend's parts ask of it: whether they may begin, and what it holds. */
import type { EngineStatus } from "../bindings/EngineStatus";
import type { Settings } from "../bindings/Settings";

export interface Desk {
  /** Takes the engine, or throws why it cannot; for a prompt of about so many tokens. */
  begin(tokens: number): void;
  end(): void;
  stopped(): boolean;
  settings(): Settings;
  status(): EngineStatus;
  /** Waits for as long as this takes at the speed replies are played with. */
  play(ms: number): Promise<void>;
}
