/** Errors by their codes; the detail is in English in every language. */
export const errors = {
  "error.busy": "{detail}",
  "error.no_target": "{detail}",
  "error.empty_prompt": "{detail}",
  "error.prompt_too_long": "{detail}",
  "error.message_too_long": "{detail}",
  "error.chatSize": "This conversation no longer fits: {tokens} of {context} tokens.",
  "error.messageSize":
    "This message is too long: {tokens} of {context} tokens. Shorten it or attach less.",
  "error.bad_model": "{detail}",
  "error.needs_token": "{detail}",
  "error.bad_setting": "{detail}",
  "error.bad_name": "A folder needs a name that no other folder has.",
  "error.bad_file": "{detail}",
  "error.bad_attachment": "{detail}",
  "error.cancelled": "{detail}",
  "error.not_found": "{detail}",
  "error.offline": "No connection to Hugging Face. Check your internet connection.",
  "error.remote": "{detail}",
  "error.internal": "{detail}",
  "error.reply": "{detail}",
  "error.unstored": "{detail}",
  "error.notice": "{detail}",
  "engine.shorter_context":
    "The GPU's memory ran out, so the target model now has a context of at most {tokens} tokens. Choose the CPU in the settings for longer texts.",
  "engine.failed":
    "The engine failed on this model. Its log has the reason. Choose another, or change a setting to load the same again.",
  "engine.reloaded": "The engine failed, so the model was reloaded. Its log has the reason.",
} as const;
