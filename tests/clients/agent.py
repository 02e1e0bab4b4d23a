"""What sessions of agents share: their program and a model, where they are given, and a server with it."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def given(variable: str) -> tuple[str, str] | None:
    """The agent's program, from `variable`, and the model's file; None unless both are given."""
    program, model = os.environ.get(variable), os.environ.get("AGENT_MODEL")
    return (program, model) if program and model else None


@contextlib.contextmanager
def server(program: str, model: str) -> Iterator[tuple[str, str]]:
    """Address and model's name of a server that ends with the block."""
    command = [program, "serve", "--port", "0", "--target", model, "--draft", "ngram", "--max-tokens", "400", "--tool-first"]
    serving = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield serving.stdout.readline().removeprefix("Listening on ").strip(), Path(model).stem
    finally:
        serving.terminate()
        serving.wait()
