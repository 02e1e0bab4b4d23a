"""Runs a session of aider against a local server, where its program and a model are given.

    AIDER=PROGRAM AGENT_MODEL=FILE run.py FORETOKEN_CLI

aider (`pip install aider-chat`, Apache-2.0) and what it needs take 700 MB, so no test installs it. It sends a file
with its own instructions through chat completions, reads the edited file from the reply and writes it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import agent

SOURCE = 'def greeting(name):\n    return "Hello, " + name\n\n\nprint(greeting("Ada"))\n'
QUESTION = "Change the function greeting so that it says Good morning instead of Hello."


def check(program: str) -> None:
    given = agent.given("AIDER")
    if not given:
        print("aider: not given")
        return
    with agent.server(program, given[1]) as (url, model):
        session(given[0], url, model)


def session(aider: str, url: str, model: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "greeting.py")
        source.write_text(SOURCE)
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "OPENAI_API_BASE": url, "OPENAI_API_KEY": "none"}
        quiet = ["--no-git", "--no-check-update", "--no-show-model-warnings", "--no-auto-lint", "--analytics-disable"]
        options = ["--model", f"openai/{model}", "--edit-format", "whole", "--map-tokens", "0", "--yes-always"]
        asked = [aider, *options, *quiet, "--message", QUESTION, source.name]
        done = subprocess.run(
            asked, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert source.read_text() != SOURCE, done.stdout
        ran = subprocess.run([sys.executable, source], capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == "Good morning, Ada", (source.read_text(), done.stdout)
    print(f"aider: {done.stdout.strip().splitlines()[-1]!r}")
