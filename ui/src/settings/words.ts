/**
 * The words of every setting: its name, one line of explanation, its default, and the section that it
 * is in. Rows show them, and the search and the palette find settings by them. Also of what stands
 * beside the settings and is looked for there, such as the data folder.
 */
import { isKey, t } from "../messages/say";
import { narrow, type Found } from "../search/words";

const SECTION_IDS = [
  "appearance",
  "system-prompt",
  "sampling",
  "presets",
  "speculation",
  "device",
  "server",
  "remote",
  "data",
] as const;

export type SectionId = (typeof SECTION_IDS)[number];

export interface Section {
  id: SectionId;
  readonly name: string;
}

const section = (id: SectionId): Section => ({
  id,
  get name() {
    return t(`settings.${id}`);
  },
});
const [first, ...others] = SECTION_IDS;

export const SECTIONS = [section(first), ...others.map(section)] as const;

/** Those with settings that a conversation has for itself. */
export const SCOPED: readonly SectionId[] = ["speculation", "sampling", "system-prompt"];

export interface SettingWords {
  section: SectionId;
  readonly label: string;
  /** Empty where the name and the control say enough. */
  readonly explanation: string;
  /** The default in words; what is no setting has none. */
  readonly standard: string | undefined;
}

/** In the order in which they are shown, with their sections. */
const sections = {
  theme: "appearance",
  language: "appearance",
  text_size: "appearance",
  motion: "appearance",
  reply_view: "appearance",
  send_key: "appearance",
  system_prompt: "system-prompt",
  temperature: "sampling",
  top_k: "sampling",
  top_p: "sampling",
  min_p: "sampling",
  automatic_penalties: "sampling",
  repetition_penalty: "sampling",
  repeat_last_n: "sampling",
  dry_multiplier: "sampling",
  dry_base: "sampling",
  dry_allowed_length: "sampling",
  dry_penalty_last_n: "sampling",
  dry_sequence_breakers: "sampling",
  stop_loops: "sampling",
  seed: "sampling",
  max_tokens: "sampling",
  context_overflow: "sampling",
  thinking: "sampling",
  model_preset: "presets",
  presets: "presets",
  draft: "speculation",
  drafter: "speculation",
  draft_length: "speculation",
  mode: "speculation",
  learn_from_earlier: "speculation",
  threshold: "speculation",
  tree: "speculation",
  staged: "speculation",
  verification: "speculation",
  device: "device",
  draft_device: "device",
  server_enabled: "server",
  server_host: "server",
  server_port: "server",
  server_key: "server",
  remote_servers: "remote",
  write_titles: "data",
  export: "data",
  import: "data",
  keep_traces: "data",
  stored_traces: "data",
  data_folder: "data",
} as const satisfies Record<string, SectionId>;

export type SettingId = keyof typeof sections;

export const SETTING_IDS = Object.keys(sections) as SettingId[];

/** A message that only some settings have. */
function optional(id: SettingId, part: "explanation" | "standard"): string | undefined {
  const key = `setting.${id}.${part}` as const;
  return isKey(key) ? t(key) : undefined;
}

/** Its words in the language of the moment. */
function wordsOf(id: SettingId): SettingWords {
  return {
    section: sections[id],
    get label() {
      return t(`setting.${id}`);
    },
    get explanation() {
      return optional(id, "explanation") ?? "";
    },
    get standard() {
      return optional(id, "standard");
    },
  };
}

export const SETTINGS = Object.fromEntries(SETTING_IDS.map((id) => [id, wordsOf(id)])) as Readonly<
  Record<SettingId, SettingWords>
>;

/** What a setting is found by: its name, and what explains it. */
export function foundBy(id: SettingId): Found {
  const { label, explanation } = SETTINGS[id];
  return { name: label, more: explanation };
}

/** The settings that have all words of a query. */
export function settingsWith(query: string): ReadonlySet<SettingId> {
  return new Set(narrow(SETTING_IDS, query, foundBy));
}

/** The section's name of a setting. */
export function sectionOf(id: SettingId): string {
  return SECTIONS.find((section) => section.id === SETTINGS[id].section)?.name ?? "";
}
