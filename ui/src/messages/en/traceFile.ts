/** Errors and notices about trace files. */
export const traceFile = {
  "traceFile.incomplete": "The last line, {line}, is incomplete: everything before it is shown.",
  "traceFile.endsEarly": "The file ends before the reply does: everything up to there is shown.",
  "traceFile.noRounds": "The file has no rounds, so there is nothing to replay.",
  "traceFile.missing":
    "{count, plural, one {# round is missing, the first is round {first}.} other {# rounds are missing, the first is round {first}.}}",
  "traceFile.otherText": "The text in the file does not match its rounds: the rounds are shown.",
  "traceFile.noTimes": "Some rounds have no end time: it is calculated from their parts.",
  "traceFile.unknownLines":
    "{count, plural, one {# line of unknown type ignored.} other {# lines of unknown type ignored.}}",
  "traceFile.more": "The file holds more than one trace: the first is shown.",
  "traceFile.newer": "expected version {version}, found {found}: update Foretoken.",
  "traceFile.notJson":
    "it is not a trace: expected lines of JSON, found {found}. Choose an exported trace.",
  "traceFile.otherTypes":
    "it is not a trace: expected lines of the types trace, round and done, found {found}. Choose an exported trace.",
  "traceFile.noLines": "no lines",
  "traceFile.others": "{count} of other types",
  "traceFile.line": "line {line}: {wrong}. Export the reply again, or correct this line.",
  "traceFile.field":
    "line {line}, field {field}: {wrong}. Export the reply again, or correct this line.",
  "traceFile.empty": "it is empty: expected lines of JSON. Export the reply again.",
  "traceFile.tooLarge":
    "it is too large: expected at most 500 MB, found {found} MB. Choose a shorter reply.",
  "traceFile.binary":
    "it is not a trace: expected lines of JSON, found a file that is not text. Choose an exported trace.",
  "traceFile.longLine":
    "it is not a trace: expected a line for each round, found one of more than 16 MB. Choose an exported trace.",
} as const;
