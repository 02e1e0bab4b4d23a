/** A request to the local server, to paste into a terminal. */
export function curlExample(url: string, key: string, question: string): string {
  const body = JSON.stringify({ messages: [{ role: "user", content: question }] });
  const lines = [
    `curl ${quoted(`${url}/chat/completions`)}`,
    header("Content-Type", "application/json"),
    ...(key === "" ? [] : [header("Authorization", `Bearer ${key}`)]),
    `-d ${quoted(body)}`,
  ];
  return lines.join(" \\\n  ");
}

function header(name: string, value: string): string {
  return `-H ${quoted(`${name}: ${value}`)}`;
}

/** Quotes any text as one word of a POSIX shell. */
function quoted(text: string): string {
  return /^[\w:/.@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
