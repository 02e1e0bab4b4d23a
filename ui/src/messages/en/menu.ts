/** Context menus. */
export const menu = {
  "menu.label": "Context menu",
  "menu.copySelection": "Copy selected text",
  "menu.copy": "Copy",
  "menu.copy-token": "Copy token",
  "menu.show-in-heatmap": "Show in heatmap",
  "menu.answer": "Answer this",
  "menu.edit": "Edit",
  "menu.see-from": "Forget everything above",
  "menu.branch": "New chat from here",
  "menu.delete": "Delete",
  "menu.rename": "Rename",
  "menu.pin": "Pin",
  "menu.unpin": "Unpin",
  "menu.duplicate": "Duplicate",
  "menu.export-markdown": "Export as Markdown",
  "menu.export-json": "Export as JSON",
} as const;
