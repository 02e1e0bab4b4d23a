/**
 * The words of every setting: its name, one line of explanation, its default, and the section that it
 * is in. Rows show them, and the search and the palette find settings by them. Also of what stands
 * beside the settings and is looked for there, such as the data folder.
 */
import { narrow, type Found } from "../search/words";

export const SECTIONS = [
  { id: "speculation", name: "Speculation" },
  { id: "sampling", name: "Sampling" },
  { id: "device", name: "Device" },
  { id: "system-prompt", name: "System prompt" },
  { id: "appearance", name: "Appearance" },
  { id: "server", name: "Local server" },
  { id: "data", name: "Data" },
] as const;

export type SectionId = (typeof SECTIONS)[number]["id"];

export interface SettingWords {
  section: SectionId;
  label: string;
  explanation: string;
  /** The default in words; what is no setting has none. */
  standard?: string;
}

/** In the order in which they are shown. */
const words = {
  draft: {
    section: "speculation",
    label: "Draft model",
    explanation:
      "Guesses the next tokens for the target model to check. Applies from the next reply, and is remembered for each target model.",
    standard: "the best fit for the target model",
  },
  drafter: {
    section: "speculation",
    label: "Drafting method",
    explanation: "Which methods may guess tokens, of those the draft model offers.",
    standard: "combined",
  },
  draft_length: {
    section: "speculation",
    label: "Draft length",
    explanation:
      "How many tokens to guess per round (K). Auto uses what is expected to be fastest, which may be none.",
    standard: "auto",
  },
  mode: {
    section: "speculation",
    label: "Sampling mode",
    explanation:
      "Fastest accepts the most tokens. Reproducible: the same seed always gives the same text, with or without drafts.",
    standard: "fastest",
  },
  learn_from_earlier: {
    section: "speculation",
    label: "Learn from earlier conversations",
    explanation: "Lets the n-gram drafter also repeat text from your other conversations.",
    standard: "off",
  },
  threshold: {
    section: "speculation",
    label: "Threshold",
    explanation:
      "Stops drafting when the chance that the whole draft is accepted falls below this. Auto stops where another token would cost more time than it saves.",
    standard: "off",
  },
  tree: {
    section: "speculation",
    label: "Tree",
    explanation:
      "Drafts several alternatives for the same position, so that one wrong guess does not end the draft. Width is the maximum number of alternatives.",
    standard: "auto",
  },
  staged: {
    section: "speculation",
    label: "Staged drafting",
    explanation:
      "Uses repetition to speed up the draft model, as the draft model speeds up the target model. Auto does so where it is faster.",
    standard: "auto",
  },
  verification: {
    section: "speculation",
    label: "Verification",
    explanation:
      "Block judges the draft as a whole and accepts at least as many tokens. Both keep the target model's probabilities exactly.",
    standard: "block",
  },
  temperature: {
    section: "sampling",
    label: "Temperature",
    explanation: "0 always picks the most likely token. Higher values give more varied text.",
    standard: "0.7",
  },
  top_k: {
    section: "sampling",
    label: "Top-k",
    explanation: "Considers only this many of the most likely tokens. 0 considers all.",
    standard: "0",
  },
  top_p: {
    section: "sampling",
    label: "Top-p",
    explanation: "Considers only the most likely tokens that together reach this probability.",
    standard: "0.95",
  },
  min_p: {
    section: "sampling",
    label: "Min-p",
    explanation: "Ignores tokens less likely than this fraction of the most likely one.",
    standard: "0",
  },
  repetition_penalty: {
    section: "sampling",
    label: "Repetition penalty",
    explanation: "Makes tokens that are already in the context less likely. 1 turns it off.",
    standard: "1",
  },
  seed: {
    section: "sampling",
    label: "Seed",
    explanation:
      "The same seed gives the same text again in the reproducible sampling mode. Leave empty for a new seed with each reply.",
    standard: "empty",
  },
  max_tokens: {
    section: "sampling",
    label: "Maximum length",
    explanation: "Longest reply in tokens. Leave empty to allow the whole context window.",
    standard: "empty",
  },
  device: {
    section: "device",
    label: "Target model",
    explanation: "Where the target model runs. Changing it reloads the model.",
    standard: "automatic",
  },
  draft_device: {
    section: "device",
    label: "Draft model",
    explanation: "Where the draft model runs.",
    standard: "automatic",
  },
  system_prompt: {
    section: "system-prompt",
    label: "System prompt",
    explanation: "Instructions at the start of every conversation. Applies from the next reply.",
    standard: "empty",
  },
  theme: {
    section: "appearance",
    label: "Theme",
    explanation: "Light, dark, or the same as the system.",
    standard: "system",
  },
  text_size: {
    section: "appearance",
    label: "Text size",
    explanation: "In percent of the normal size.",
    standard: "100",
  },
  motion: {
    section: "appearance",
    label: "Motion",
    explanation: "Reduced turns off all animations.",
    standard: "same as the system",
  },
  server_enabled: {
    section: "server",
    label: "Local server",
    explanation: "Lets other programs use the loaded model, by OpenAI’s protocol.",
    standard: "off",
  },
  server_host: {
    section: "server",
    label: "Address",
    explanation:
      "127.0.0.1 is for this computer alone. 0.0.0.0 lets other computers connect, and needs a key.",
    standard: "127.0.0.1",
  },
  server_port: {
    section: "server",
    label: "Port",
    explanation: "The number that programs connect to at this address.",
    standard: "8642",
  },
  server_key: {
    section: "server",
    label: "Key",
    explanation: "Programs must send it as their API key. Leave empty for none.",
    standard: "empty",
  },
  keep_traces: {
    section: "data",
    label: "Save traces",
    explanation:
      "A trace records what happened in each round. Token view, heatmap, replay and check need it.",
    standard: "on",
  },
  stored_traces: {
    section: "data",
    label: "Stored traces",
    explanation: "How much space the traces take, and deleting them.",
  },
  data_folder: {
    section: "data",
    label: "Data folder",
    explanation: "Conversations, traces and settings are stored here and nowhere else.",
  },
  version: { section: "data", label: "Version", explanation: "Foretoken" },
} as const satisfies Record<string, SettingWords>;

export type SettingId = keyof typeof words;

export const SETTINGS: Readonly<Record<SettingId, SettingWords>> = words;

export const SETTING_IDS = Object.keys(words) as SettingId[];

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
