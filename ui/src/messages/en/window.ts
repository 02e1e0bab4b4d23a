/** The window: what is told, and files held over it. */
export const window = {
  "window.replyCopied": "Reply copied.",
  "window.replyNotCopied": "The reply could not be copied.",
  "drop.add": "{count, plural, one {Drop to add a model} other {Drop to add # models}}",
  "drop.what": "A .gguf file, or a folder with safetensors files. It stays where it is.",
  "window.replyWritten": "A reply is being written: stop it or wait until it finishes.",
  "window.replyChecked": "A reply is being checked: stop it or wait until it finishes.",
  "window.arenaRuns": "The arena is running: stop it or wait until it finishes.",
  "window.noReplay": "There is nothing to replay: no trace of this reply is stored.",
  "window.notImported": "“{file}” was not imported: {reason}",
  "window.notRead": "it could not be read ({detail}). Is it still there?",
  "window.openTrace": "To open a trace, use “Import a trace” in the sidebar.",
  "window.replyStopped": "Reply stopped.",
  "window.replyFinished": "Reply finished.",
  "window.phase.loading": "loading",
  "window.phase.ready": "ready",
  "window.phase.failed": "failed",
} as const;
