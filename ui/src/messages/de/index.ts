/** Alle Meldungen auf Deutsch. */
import { arena } from "./arena";
import { attachments } from "./attachments";
import { check } from "./check";
import { commands } from "./commands";
import { common } from "./common";
import { conversation } from "./conversation";
import { inspector } from "./inspector";
import { library } from "./library";
import { menu } from "./menu";
import { models } from "./models";
import { presets } from "./presets";
import { reply } from "./reply";
import { settings } from "./settings";
import { shell } from "./shell";
import { sidebar } from "./sidebar";
import { trace } from "./trace";
import { traceFile } from "./traceFile";
import { window } from "./window";

export const de = {
  ...arena,
  ...attachments,
  ...check,
  ...commands,
  ...common,
  ...conversation,
  ...inspector,
  ...library,
  ...menu,
  ...models,
  ...presets,
  ...reply,
  ...settings,
  ...shell,
  ...sidebar,
  ...trace,
  ...traceFile,
  ...window,
} as const;
