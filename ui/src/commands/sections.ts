/** Sections of the library; those of the settings are listed with their texts. */
import { t } from "../messages/say";

const IDS = ["installed", "get", "downloads", "advisor", "token"] as const;

export type LibrarySectionId = (typeof IDS)[number];

export interface LibrarySection {
  id: LibrarySectionId;
  readonly name: string;
}

const section = (id: LibrarySectionId): LibrarySection => ({
  id,
  get name() {
    return t(`library.${id}`);
  },
});
const [first, ...others] = IDS;

export const LIBRARY_SECTIONS = [section(first), ...others.map(section)] as const;
