"""Asks a local server with client packages of its protocols, as other programs do: `make test-clients`.

    run.py FORETOKEN_CLI

Starts `serve` on the starter pair itself. Every check that fails ends it with the line that did.
"""

import subprocess
import sys

import with_aider
import with_anthropic
import with_claude_code
import with_openai
import with_responses

KEY = "made-up"


def main() -> None:
    pair = ["--target", "starter", "--draft", "starter-draft", "--draft-length", "4"]
    command = [sys.argv[1], "serve", "--port", "0", "--key", KEY, *pair]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().removeprefix("Listening on ").strip()
        with_openai.check(url, KEY)
        with_responses.check(url, KEY)
        with_anthropic.check(url, KEY)
    finally:
        server.terminate()
        server.wait()
    with_aider.check(sys.argv[1])
    with_claude_code.check(sys.argv[1])


main()
