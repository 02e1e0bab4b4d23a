#!/usr/bin/env python3
"""Render the chat templates in tests/data/templates with Python's jinja2.

The engine's tests compare with the results. Needs jinja2 (pip install jinja2); run it in the root of the
repository when a conversation or a template is added. The environment is that of Hugging Face's transformers.
Only a checksum (FNV-1a, 64 bits) of each text is stored, or the template's error message.
"""

import json
from pathlib import Path

import jinja2
import jinja2.ext
import jinja2.sandbox

FOLDER = Path("crates/model/src/template/expected")
TEMPLATES = Path("tests/data/templates")


def checksum(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Generation(jinja2.ext.Extension):
    """Blocks that mark the assistant's text for training; they render as their content."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("content"), [], [], body).set_lineno(line)

    def content(self, caller):
        return caller()


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    # The tests run on another day.
    made.globals["strftime_now"] = lambda form: f"<{form}>"
    return made


def rendered(template, tokens, messages, add_generation_prompt, tools=None):
    tokens = {name: text for name, text in tokens.items() if text is not None}
    try:
        text = template.render(
            messages=messages, tools=tools, documents=None, add_generation_prompt=add_generation_prompt, **tokens
        )
    except jinja2.exceptions.TemplateError as error:
        return {"refusal": str(error)}
    return checksum(text)


def main():
    given = json.loads((FOLDER / "conversations.json").read_text())
    expected = {}
    for name, tokens in given["templates"].items():
        template = environment().from_string((TEMPLATES / name).read_text())
        expected[name] = {
            conversation: [rendered(template, tokens, messages, prompt) for prompt in (False, True)]
            for conversation, messages in given["conversations"].items()
        } | {
            conversation: [rendered(template, tokens, messages, prompt, given["tools"]) for prompt in (False, True)]
            for conversation, messages in given["conversations with tools"].items()
        }
    text = json.dumps(expected, indent=1, ensure_ascii=False)
    (FOLDER / "expected.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
