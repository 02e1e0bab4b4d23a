/**
 * Texts of all settings: name, explanation, default, and section. Used by rows, the search and the
 * palette. Includes entries beside the settings that can be searched, such as the data folder.
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
  "tools",
  "documents",
  "data",
  "updates",
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

/** Sections with settings that a conversation can override. */
export const SCOPED: readonly SectionId[] = ["speculation", "sampling", "system-prompt"];

export interface SettingWords {
  section: SectionId;
  readonly label: string;
  /** Empty if the name and the control are clear enough. */
  readonly explanation: string;
  /** The default in words; undefined for entries that are no settings. */
  readonly standard: string | undefined;
}

/** Sections and their settings, in the order shown. */
const sections = {
  theme: "appearance",
  language: "appearance",
  text_size: "appearance",
  wide_chat: "appearance",
  motion: "appearance",
  reply_view: "appearance",
  send_key: "appearance",
  notifications: "appearance",
  start_at_login: "appearance",
  tray_icon: "appearance",
  keep_in_tray: "appearance",
  quick_shortcut: "appearance",
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
  presence_penalty: "sampling",
  frequency_penalty: "sampling",
  word_bias: "sampling",
  stop_loops: "sampling",
  seed: "sampling",
  max_tokens: "sampling",
  stop: "sampling",
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
  context_length: "device",
  int8_kv_cache: "device",
  context_memory: "device",
  context_disk: "device",
  server_enabled: "server",
  server_host: "server",
  server_port: "server",
  server_key: "server",
  remote_servers: "remote",
  tool_servers: "tools",
  tool_calculate: "tools",
  tool_now: "tools",
  tool_read_page: "tools",
  tool_web_search: "tools",
  tool_read_attachment: "tools",
  tool_search_conversations: "tools",
  tool_rules: "tools",
  embedding_model: "documents",
  write_titles: "data",
  export: "data",
  import: "data",
  keep_traces: "data",
  stored_traces: "data",
  data_folder: "data",
  version: "updates",
  check_for_updates: "updates",
} as const satisfies Record<string, SectionId>;

export type SettingId = keyof typeof sections;

export const SETTING_IDS = Object.keys(sections) as SettingId[];

/** A message that only some settings have. */
function optional(id: SettingId, part: "explanation" | "standard"): string | undefined {
  const key = `setting.${id}.${part}` as const;
  return isKey(key) ? t(key) : undefined;
}

/** Texts of a setting in the current language. */
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

/** Searchable texts of a setting: its name and its explanation. */
export function foundBy(id: SettingId): Found {
  const { label, explanation } = SETTINGS[id];
  return { name: label, more: explanation };
}

/** Settings that match all words of a query. */
export function settingsWith(query: string): ReadonlySet<SettingId> {
  return new Set(narrow(SETTING_IDS, query, foundBy));
}

/** Name of a setting's section. */
export function sectionOf(id: SettingId): string {
  return SECTIONS.find((section) => section.id === SETTINGS[id].section)?.name ?? "";
}
