"""Checks with the anthropic package; see run.py."""

import anthropic

STORY = [{"role": "user", "content": "Tell me a story about a fox"}]
# The package has no argument for it.
GREEDY = {"extra_body": {"temperature": 0}}
ASKED = {"model": "starter", "messages": STORY, "max_tokens": 40, **GREEDY}


def replies_are_the_same_whole_and_streamed(client: anthropic.Anthropic) -> None:
    whole = client.messages.create(**ASKED)
    (block,) = whole.content
    assert block.type == "text" and whole.stop_reason == "max_tokens" and whole.usage.output_tokens == 40, whole
    with client.messages.stream(**ASKED) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == block.text == final.content[0].text
    assert final.stop_reason == "max_tokens" and final.usage.output_tokens == 40, final
    events = [event.type for event in client.messages.create(**ASKED, stream=True)]
    assert events[:2] == ["message_start", "content_block_start"], events
    assert events[-3:] == ["content_block_stop", "message_delta", "message_stop"], events


def stop_sequences_are_named(client: anthropic.Anthropic) -> None:
    whole = client.messages.create(**ASKED).content[0].text
    stop = whole[20:30]
    stopped = client.messages.create(**ASKED, stop_sequences=["never", stop])
    assert stopped.content[0].text == whole[: whole.index(stop)]
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", stop), stopped


def tokens_are_counted_as_a_reply_counts_them(client: anthropic.Anthropic) -> None:
    asked = {"model": "starter", "messages": STORY, "system": [{"type": "text", "text": "Be brief."}]}
    counted = client.messages.count_tokens(**asked).input_tokens
    usage = client.messages.create(**asked, max_tokens=1).usage
    assert counted == usage.input_tokens + usage.cache_read_input_tokens > 0, (counted, usage)


def tools_are_called(client: anthropic.Anthropic) -> None:
    properties = {"animal": {"enum": ["fox", "hen"]}, "steps": {"enum": [1, 2, 3]}}
    schema = {"type": "object", "properties": properties, "required": ["animal", "steps"], "additionalProperties": False}
    tools = [
        {"name": "move", "description": "Moves.", "input_schema": schema},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    choice = {"type": "any", "disable_parallel_tool_use": True}
    asked = {**ASKED, "max_tokens": 200, "tools": tools, "tool_choice": choice}
    whole = client.messages.create(**asked)
    (call,) = whole.content
    assert whole.stop_reason == "tool_use" and call.name == "move", whole
    assert call.input["animal"] in ("fox", "hen") and call.input["steps"] in (1, 2, 3) and len(call.input) == 2, call
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    assert streamed.content[0].input == call.input
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "done"}]}
    turns = [*STORY, {"role": "assistant", "content": whole.content}, {"role": "user", "content": [result]}]
    after = client.messages.create(**{**asked, "messages": turns, "tool_choice": {"type": "none"}})
    assert after.usage.output_tokens > 0 and after.stop_reason != "tool_use", after


def refusals_are_the_packages_own_errors(client: anthropic.Anthropic) -> None:
    def refused(kind: type[anthropic.APIStatusError], with_client: anthropic.Anthropic = client, **more) -> str:
        try:
            with_client.messages.create(**{**ASKED, **more})
        except kind as error:
            assert error.body["type"] == "error", error.body
            return error.body["error"]["message"]
        raise AssertionError(f"{more} was not refused with {kind.__name__}")

    assert refused(anthropic.NotFoundError, model="claude").startswith("The model 'claude' is not loaded")
    assert refused(anthropic.BadRequestError, extra_body={"temperature": 9}).startswith("temperature: expected 0 to 5")
    image = {"type": "image", "source": {"type": "url", "url": "http://localhost/a.png"}}
    pictured = [{"role": "user", "content": [image]}]
    assert refused(anthropic.BadRequestError, messages=pictured).startswith("messages[0].content: expected a string")
    long = [{"role": "user", "content": "a story " * 3000}]
    assert "prompt is too long" in refused(anthropic.BadRequestError, messages=long)
    assert refused(anthropic.AuthenticationError, client.with_options(api_key="wrong")).startswith("The key is")


def check(url: str, key: str) -> None:
    """Runs all checks on a server; `url` ends in /v1."""
    client = anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key=key, max_retries=0)
    for check in (
        replies_are_the_same_whole_and_streamed,
        stop_sequences_are_named,
        tokens_are_counted_as_a_reply_counts_them,
        tools_are_called,
        refusals_are_the_packages_own_errors,
    ):
        check(client)
        print(f"ok: anthropic, {check.__name__}")
