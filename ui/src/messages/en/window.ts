/** The window: notices and dragged files. */
export const window = {
  "window.replyCopied": "Reply copied.",
  "window.replyNotCopied": "The reply could not be copied.",
  "drop.add": "{count, plural, one {Drop to add a model} other {Drop to add # models}}",
  "drop.attach": "{count, plural, one {Drop to attach a file} other {Drop to attach # files}}",
  "drop.attachWhat": "Text, code, pictures, PDF or Office files",
  "drop.trace": "{count, plural, one {Drop to open a trace} other {Drop to open # traces}}",
  "drop.traceWhat": "You can view and replay it. It stays where it is.",
  "drop.conversations":
    "{count, plural, one {Drop to import conversations} other {Drop to import conversations from # files}}",
  "drop.conversationsWhat": "They are added to those that are here. Nothing is replaced.",
  "dialog.model": "Choose a model",
  "dialog.models": "GGUF models",
  "dialog.modelFolder": "Choose a folder with a model",
  "dialog.conversations": "Choose conversations to import",
  "dialog.allFiles": "All files",
  "drop.what": "A .gguf file, or a folder with safetensors files. It stays where it is.",
  "window.downloaded": "Download finished",
  "window.downloadFailed": "Download failed",
  "window.replyWritten": "A reply is being written: stop it or wait until it finishes.",
  "window.replyChecked": "A reply is being checked: stop it or wait until it finishes.",
  "window.arenaRuns": "The arena is running: stop it or wait until it finishes.",
  "window.noReplay": "There is nothing to replay: no trace of this reply is stored.",
  "window.exported": "Saved to {path}",
  "window.imported":
    "{count, plural, one {# conversation imported} other {# conversations imported}}",
  "window.known": "{count, plural, one {# was here already} other {# were here already}}",
  "window.allKnown":
    "{count, plural, one {Nothing was imported: its conversation is here already.} other {Nothing was imported: all # conversations are here already.}}",
  "window.instructed":
    "{count, plural, one {# has its own instructions for the model} other {# have their own instructions for the model}}",
  "window.conversationsLost":
    "{count, plural, one {# conversation could not be read} other {# conversations could not be read}}",
  "window.messagesLost":
    "{count, plural, one {# message could not be read} other {# messages could not be read}}",
  "window.notImported": "“{file}” was not imported: {reason}",
  "window.notRead": "it could not be read ({detail}). Is it still there?",
  "window.replyStopped": "Reply stopped.",
  "window.replyFinished": "Reply finished.",
  "window.phase.loading": "loading",
  "window.phase.ready": "ready",
  "window.phase.failed": "failed",
} as const;
