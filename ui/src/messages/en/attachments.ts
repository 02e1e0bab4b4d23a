/** Files that are attached, and what takes room in the context. */
export const attachments = {
  "attach.attach": "Attach files",
  "attach.files": "Attached files",
  "attach.show": "Show what is in it",
  "attach.hide": "Hide what is in it",
  "attach.remove": "Remove {name}",
  "attach.removeTitle": "Remove",
  "attach.more": "{count, plural, one {Show # more line} other {Show # more lines}}",
  "attach.moreText": "Show more",
  "attach.reading": "reading…",
  "attach.counting": "counting tokens…",
  "attach.tokens": "{count, plural, one {# token} other {# tokens}}",
  "attach.aboutTokens": "{count, plural, one {about # token} other {about # tokens}}",
  "attach.share": "{share} of the context",
  "attach.seconds": "about {time} s to read",
  "attach.minutes": "about {time} min to read",
  "attach.pasted": "Pasted text.txt",
  "attach.pastedNote": "The long text was attached as a file.",
  "attach.pasteHere": "Put it into the message",
  "attach.empty": "{name} has no text in it.",
  "attach.image": "Images cannot be read yet: {name} was not attached.",
  "attach.pastedImage": "Images cannot be read yet.",
  "attach.binary": "{name} is not text. Text, code, CSV, JSON and PDF files can be attached.",
  "attach.tooLarge":
    "{name} is too large: {size} MB, and at most {most} MB can be attached. Attach a part of it.",
  "attach.tooMany":
    "At most {count, plural, one {# file} other {# files}} can be attached to a message: the others were left out.",
  "attach.again": "{name} is attached already.",
  "attach.unread": "{name} could not be read ({detail}). Is it still there?",
  "attach.scanned":
    "{name} has no text in it: its pages are pictures, and text in pictures is not recognised here.",
  "attach.encrypted":
    "{name} is protected with a password. Save a copy without it, and attach that.",
  "attach.damaged": "{name} cannot be read as a PDF: it may be damaged.",
  "attach.slow": "{name} took too long to read, so it was not attached.",
  "attach.tooLong":
    "This is too long: files and conversation have about {needed} tokens together, and the context holds {limit}. Remove a file, or choose a model with a larger context.",
  "attach.aloneTooLong":
    "This is too long: the files have about {needed} tokens, and the context holds {limit}. Remove a file, or choose a model with a larger context.",
  "context.system": "System prompt",
  "context.attachments": "Files",
  "context.history": "Conversation",
  "context.waiting": "To be sent",
  "context.free": "Room for the reply",
  "context.full":
    "The context is nearly full. You can leave out older messages: use the button under any of your messages.",
  "context.seeFrom": "Let the model see only from here on",
} as const;
