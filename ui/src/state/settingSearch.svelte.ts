/** The search in the settings and its results. */
import { wordsOf } from "../search/words";
import { settingsWith, type SettingId } from "../settings/words";

export class SettingSearch {
  query = $state("");
  readonly words = $derived(wordsOf(this.query));
  /** Matching settings; null without a query. */
  readonly found = $derived(this.words.length > 0 ? settingsWith(this.query) : null);
  /** The setting to scroll to and focus; null once done. */
  wanted = $state<SettingId | null>(null);

  /** Whether a setting is visible in its section. */
  shows(id: SettingId): boolean {
    return this.found?.has(id) ?? true;
  }
}
