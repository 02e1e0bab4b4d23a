/** What is looked for among the settings, and which of them have it. */
import { wordsOf } from "../search/words";
import { settingsWith, type SettingId } from "../settings/words";

export class SettingSearch {
  query = $state("");
  readonly words = $derived(wordsOf(this.query));
  /** Null while nothing is looked for. */
  readonly found = $derived(this.words.length > 0 ? settingsWith(this.query) : null);
  /** The one to be brought into view with the keyboard at it, until that is done. */
  wanted = $state<SettingId | null>(null);

  /** Whether a setting is on the page, once its section is. */
  shows(id: SettingId): boolean {
    return this.found?.has(id) ?? true;
  }
}
