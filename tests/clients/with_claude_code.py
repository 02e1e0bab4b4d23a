"""Runs a session of Claude Code against a local server, where its program and a model are given.

    CLAUDE_CODE=PROGRAM AGENT_MODEL=FILE run.py FORETOKEN_CLI

Claude Code (`npm install @anthropic-ai/claude-code`) is not free software, so no test installs it. The model reads
a file with a tool of Claude Code, whose result goes back to it. Instructions and tools are cut down to that, since
the whole of them takes a small model on a CPU minutes to read.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import agent

INSTRUCTIONS = "You answer questions about files. Read a file with the tool Read before you answer."


def check(program: str) -> None:
    given = agent.given("CLAUDE_CODE")
    if not given:
        print("Claude Code: not given")
        return
    with agent.server(program, given[1]) as (url, model):
        session(given[0], url.removesuffix("/v1"), model)


def session(claude: str, url: str, model: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder, "note.txt")
        note.write_text("The word is marzipan.\n")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_MODEL": model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        question = f"Read the file {note} with the tool Read. Which word does it name?"
        options = ["--output-format", "stream-json", "--verbose", "--tools", "Read", "--allowedTools", "Read"]
        asked = [claude, "-p", question, *options, "--system-prompt", INSTRUCTIONS, "--max-turns", "6"]
        done = subprocess.run(
            asked, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    blocks = [block for line in lines for block in contents(line)]
    called = [block["name"] for block in blocks if block.get("type") == "tool_use"]
    results = [json.dumps(block) for block in blocks if block.get("type") == "tool_result"]
    last = lines[-1]
    assert last["type"] == "result" and not last["is_error"], (last, done.stderr)
    assert "Read" in called and any("marzipan" in result for result in results), (called, results)
    print(f"Claude Code: {len(called)} calls, {last['num_turns']} turns, {last['result']!r}")


def contents(line: dict) -> list[dict]:
    content = line.get("message", {}).get("content", [])
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
