"""Checks of responses with the openai package; see run.py."""

import json

import openai

STORY = "Tell me a story about a fox"
ASKED = {"model": "starter", "input": STORY, "temperature": 0, "max_output_tokens": 40}


def replies_are_the_same_whole_and_streamed(client: openai.OpenAI) -> None:
    whole = client.responses.create(**ASKED)
    assert whole.status == "incomplete" and whole.incomplete_details.reason == "max_output_tokens", whole
    assert whole.usage.output_tokens == 40 and whole.usage.input_tokens_details.cached_tokens >= 0, whole.usage
    (item,) = whole.output
    assert item.type == "message" and item.content[0].text == whole.output_text != ""
    events = list(client.responses.create(**ASKED, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text and events[-1].type == "response.incomplete", events[-1]
    chat = client.chat.completions.create(
        model="starter", messages=[{"role": "user", "content": STORY}], temperature=0, max_tokens=40
    )
    assert chat.choices[0].message.content == text


def schemas_are_kept_to(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"animal": {"enum": ["fox", "hen"]}}, "required": ["animal"], "additionalProperties": False}
    text = {"format": {"type": "json_schema", "name": "animal", "schema": schema, "strict": True}}
    reply = client.responses.create(**ASKED, text=text)
    assert reply.status == "completed" and json.loads(reply.output_text)["animal"] in ("fox", "hen"), reply
    with client.responses.stream(**ASKED, text=text) as stream:
        assert stream.get_final_response().output_text == reply.output_text


def tools_are_called(client: openai.OpenAI) -> None:
    properties = {"animal": {"enum": ["fox", "hen"]}, "steps": {"enum": [1, 2, 3]}}
    parameters = {"type": "object", "properties": properties, "required": ["animal", "steps"], "additionalProperties": False}
    move = {"type": "function", "name": "move", "description": "Moves.", "parameters": parameters, "strict": True}
    digits = {"type": "grammar", "syntax": "regex", "definition": "[0-9]{3}"}
    tools = [
        {"type": "namespace", "name": "farm", "description": "A farm.", "tools": [move]},
        {"type": "custom", "name": "code", "description": "Says a code.", "format": digits},
        {"type": "web_search"},
    ]
    asked = {**ASKED, "max_output_tokens": 200, "tools": tools, "parallel_tool_calls": False}
    moved = {**asked, "tool_choice": {"type": "function", "namespace": "farm", "name": "move"}}
    whole = client.responses.create(**moved)
    (call,) = whole.output
    assert (call.type, call.name, call.namespace) == ("function_call", "move", "farm"), call
    arguments = json.loads(call.arguments)
    assert arguments["animal"] in ("fox", "hen") and arguments["steps"] in (1, 2, 3) and len(arguments) == 2, arguments
    events = list(client.responses.create(**moved, stream=True))
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == call.arguments and events[-1].type == "response.completed"
    (coded,) = client.responses.create(**asked, tool_choice={"type": "custom", "name": "code"}).output
    assert coded.type == "custom_tool_call" and len(coded.input) == 3 and coded.input.isdigit(), coded
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "done"},
        {"type": "custom_tool_call_output", "call_id": coded.call_id, "output": "said"},
    ]
    items = [{"role": "user", "content": STORY}, call.to_dict(), coded.to_dict(), *results]
    after = client.responses.create(**{**asked, "input": items, "tool_choice": "none"})
    assert after.output_text != "", after


def refusals_are_the_packages_own_errors(client: openai.OpenAI) -> None:
    def refused(kind: type[openai.APIStatusError], **more) -> str:
        try:
            client.responses.create(**{**ASKED, **more})
        except kind as error:
            return error.body["message"]
        raise AssertionError(f"{more} was not refused with {kind.__name__}")

    assert refused(openai.NotFoundError, model="other").startswith("The model 'other' is not loaded")
    assert refused(openai.BadRequestError, previous_response_id="resp_1").startswith("Responses are not stored")
    assert refused(openai.BadRequestError, input=[{"type": "item_reference", "id": "a"}]).startswith("input[0]: unknown")
    assert refused(openai.BadRequestError, input="a story " * 3000).startswith("the prompt is too long")


def check(url: str, key: str) -> None:
    """Runs all checks on a server; `url` ends in /v1."""
    client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
    for check in (
        replies_are_the_same_whole_and_streamed,
        schemas_are_kept_to,
        tools_are_called,
        refusals_are_the_packages_own_errors,
    ):
        check(client)
        print(f"ok: responses, {check.__name__}")
