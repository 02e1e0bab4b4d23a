import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { curlExample } from "./curlExample";

const URL = "http://127.0.0.1:8642/v1";

/** Arguments of a command line as split by a shell, without the command. */
function words(command: string): string[] {
  const script = command.replace(/^curl/, String.raw`printf '%s\0'`);
  return execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
}

test("the example requests the server's address, over several lines", () => {
  const example = curlExample(URL, "", "What is a fox?");
  expect(example).toBe(
    String.raw`curl http://127.0.0.1:8642/v1/chat/completions \
  -H 'Content-Type: application/json' \
  -d '{"messages":[{"role":"user","content":"What is a fox?"}]}'`,
  );
});

test("a shell passes the key and the question unchanged", () => {
  const [key, question] = [`it's "$HOME"`, "What's `a` \\ fox?"];
  const [address, , type, , authorization, , body] = words(curlExample(URL, key, question));
  expect(address).toBe(`${URL}/chat/completions`);
  expect(type).toBe("Content-Type: application/json");
  expect(authorization).toBe(`Authorization: Bearer ${key}`);
  expect(JSON.parse(body ?? "")).toEqual({ messages: [{ role: "user", content: question }] });
});
