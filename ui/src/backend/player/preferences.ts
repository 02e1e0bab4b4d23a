/** Choices of a person in the player: the view, unsent texts, servers, presets and set-ups. */
import type { ConversationSetup } from "../../bindings/ConversationSetup";
import type { Preset } from "../../bindings/Preset";
import type { PresetValues } from "../../bindings/PresetValues";
import type { Settings } from "../../bindings/Settings";
import type { ToolsStatus } from "../../bindings/ToolsStatus";
import type { Unsent } from "../../bindings/Unsent";
import { viewDefaults } from "../../bindings/defaults";
import { recordedAnswer, type Handlers } from "./answers";
import type { Engine } from "./engine";

type Own = Pick<ConversationSetup, "preset" | "values">;

export class Preferences {
  readonly #engine: Engine;
  #view = viewDefaults;
  readonly #unsent = new Map<number | null, Unsent>();
  readonly #own = new Map<number | null, Own>();
  /** Target of each conversation's last reply. */
  readonly #targets = new Map<number, string>();
  #open: number | null = null;
  /** A browser runs no servers. */
  readonly #tools: ToolsStatus = {
    servers: [],
    tools: [],
    has_search_key: false,
    problem: null,
  };

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  readonly handlers: Handlers = {
    view_state: () => this.#view,
    save_view_state: ({ state }) => (this.#view = state),
    unsent: () => [...this.#unsent.values()],
    save_unsent: ({ unsent }) =>
      unsent.text === ""
        ? this.#unsent.delete(unsent.conversation)
        : this.#unsent.set(unsent.conversation, unsent),
    server_status: () => {
      const { enabled } = this.#engine.settings.server;
      const problem = enabled ? "A page in a browser cannot listen on a port." : null;
      return { url: null, problem };
    },
    watch_updates: ({ onChange }) =>
      onChange.onmessage({
        support: "find",
        phase: "unchecked",
        found: null,
        done_bytes: 0,
        total_bytes: null,
        problem: null,
      }),
    desktop: () => ({ tray: false, shortcut: null, screenshots: false }),
    tools_status: () => this.#tools,
    switch_tool_server: () => this.#tools,
    add_tool_servers: () => this.#tools,
    remove_tool_server: () => this.#tools,
    import_tool_servers: () => this.#tools,
    importable_tool_servers: () => [],
    set_tool_rule: () => null,
    server_contents: () => ({ prompts: [], resources: [], is_starting: false, problems: [] }),
    set_search_key: () => this.#tools,
    document_search_status: () => ({ passages: 0, embedded: 0, problem: null }),
    word_tokens: ({ word }) => (word.includes(" ") ? [] : [word]),
    decide_call: () => null,
    add_server: ({ name, address }) => this.#changeServer(name, [{ name, address, models: [] }]),
    remove_server: ({ name }) => this.#changeServer(name, []),
    built_in_presets: () => [...this.#recommended(), ...recordedAnswer("built_in_presets")],
    setup: ({ conversation }) => this.#read(conversation),
    open_setup: ({ conversation }) => this.#setup(conversation),
    save_setup: ({ conversation, preset, values }) => {
      this.#setup(conversation);
      if (values) this.#own.set(conversation, structuredClone({ preset, values }));
      else this.#own.delete(conversation);
      return this.#setup(conversation);
    },
  };

  /** Stores the set-up of a conversation's reply with it. */
  keepSetup(conversation: number) {
    const { own, preset, values } = this.#setup(this.#open === null ? null : conversation);
    if (own) this.#own.set(conversation, { preset, values });
    this.#targets.set(conversation, this.#engine.settings.target);
    this.#open = conversation;
  }

  /** The preset with the publisher's values, if the target has any. */
  #recommended(): Preset[] {
    const { recommended } = this.#engine.target;
    const stated = Object.entries(recommended ?? {}).filter(([, value]) => value !== null);
    if (stated.length === 0) return [];
    const sampling = { ...this.#engine.settings.sampling, ...Object.fromEntries(stated) };
    return [{ id: "recommended", name: "", values: { ...this.#values(), sampling } }];
  }

  #setup(conversation: number | null): ConversationSetup {
    if (conversation !== this.#open) this.#own.delete(null);
    this.#open = conversation;
    return this.#read(conversation);
  }

  #read(conversation: number | null): ConversationSetup {
    const own = this.#own.get(conversation);
    const rest = own ?? { preset: null, values: this.#values() };
    const target = conversation === null ? null : (this.#targets.get(conversation) ?? null);
    return structuredClone({ target, draft: null, own: own !== undefined, ...rest });
  }

  #values(): PresetValues {
    const { system_prompt, sampling, speculation, max_tokens, stop, word_bias, tools } =
      this.#engine.settings;
    return { system_prompt, sampling, speculation, max_tokens, stop, word_bias, tools };
  }

  #changeServer(name: string, changed: Settings["remote_servers"]) {
    const { settings } = this.#engine;
    const others = settings.remote_servers.filter((server) => server.name !== name);
    return this.#engine.configure({ ...settings, remote_servers: [...others, ...changed] });
  }
}
