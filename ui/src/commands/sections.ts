/** The sections of the library: those of the settings are beside their words. */
export const LIBRARY_SECTIONS = [
  { id: "installed", name: "Installed" },
  { id: "get", name: "Get models" },
  { id: "downloads", name: "Downloads" },
  { id: "advisor", name: "Draft advisor" },
  { id: "token", name: "Access token" },
] as const;

export type LibrarySectionId = (typeof LIBRARY_SECTIONS)[number]["id"];
