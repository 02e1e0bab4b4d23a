/** All messages in English, which define the types of messages. */
import { arena } from "./arena";
import { attachments } from "./attachments";
import { check } from "./check";
import { commands } from "./commands";
import { common } from "./common";
import { conversation } from "./conversation";
import { desktop } from "./desktop";
import { devices } from "./devices";
import { errors } from "./errors";
import { inspector } from "./inspector";
import { library } from "./library";
import { menu } from "./menu";
import { models } from "./models";
import { presets } from "./presets";
import { reply } from "./reply";
import { settings } from "./settings";
import { sidebar } from "./sidebar";
import { tools } from "./tools";
import { trace } from "./trace";
import { traceFile } from "./traceFile";
import { updates } from "./updates";
import { window } from "./window";

export const en = {
  ...arena,
  ...attachments,
  ...check,
  ...commands,
  ...common,
  ...conversation,
  ...desktop,
  ...devices,
  ...errors,
  ...inspector,
  ...library,
  ...menu,
  ...models,
  ...presets,
  ...reply,
  ...settings,
  ...sidebar,
  ...tools,
  ...trace,
  ...traceFile,
  ...updates,
  ...window,
} as const;
