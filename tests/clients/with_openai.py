"""Checks with the openai package; see run.py."""

import asyncio
import json

import openai

STORY = [{"role": "user", "content": "Tell me a story about a fox"}]


def replies_are_the_same_whole_and_streamed(client: openai.OpenAI) -> None:
    asked = {"model": "starter", "messages": STORY, "temperature": 0, "max_tokens": 40}
    whole = client.chat.completions.create(**asked)
    choice = whole.choices[0]
    assert choice.message.role == "assistant" and choice.finish_reason == "length", choice
    assert whole.usage.completion_tokens == 40 and whole.usage.drafted >= whole.usage.accepted > 0, whole.usage
    pieces = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert text == choice.message.content
    *before, last = pieces
    assert last.usage.total_tokens == whole.usage.total_tokens and not last.choices, last
    assert all(piece.usage is None for piece in before)


def seeds_and_stops_hold(client: openai.OpenAI) -> None:
    def reply(**more) -> str:
        asked = {"model": "starter", "messages": STORY, "max_completion_tokens": 40}
        return client.chat.completions.create(**asked, **more).choices[0].message.content

    assert reply(temperature=0.9, seed=7) == reply(temperature=0.9, seed=7)
    assert reply(temperature=0.9, seed=7) != reply(temperature=0.9, seed=8)
    whole = reply(temperature=0)
    stop = whole[30:40]
    assert reply(temperature=0, stop=["never", stop]) == whole[: whole.index(stop)]


def choices_biases_and_log_probabilities_are_there(client: openai.OpenAI) -> None:
    asked = {"model": "starter", "messages": STORY, "max_tokens": 20, "temperature": 0.9, "seed": 7}
    several = client.chat.completions.create(**asked, n=3, logprobs=True, top_logprobs=2)
    texts = [choice.message.content for choice in several.choices]
    assert len(set(texts)) == 3 and several.usage.completion_tokens == 60, several
    assert texts[0] == client.chat.completions.create(**asked).choices[0].message.content
    for choice in several.choices:
        assert len(choice.logprobs.content) == 20 and len(choice.logprobs.content[0].top_logprobs) == 2
    streamed = ["", "", ""]
    for piece in client.chat.completions.create(**asked, n=3, stream=True):
        for choice in piece.choices:
            streamed[choice.index] += choice.delta.content or ""
    assert streamed == texts
    more = {"presence_penalty": 1.5, "frequency_penalty": 0.5, "logit_bias": {"300": 100}}
    assert client.chat.completions.create(**asked, **more).choices[0].message.content != texts[0]
    text = client.completions.create(model="starter", prompt="Once", max_tokens=5, logprobs=2, temperature=0)
    assert "".join(text.choices[0].logprobs.tokens) == text.choices[0].text, text


def texts_go_on(client: openai.OpenAI) -> None:
    asked = {"model": "starter", "prompt": "Once upon a time", "temperature": 0, "max_tokens": 12}
    whole = client.completions.create(**asked)
    streamed = client.completions.create(**asked, stream=True)
    assert whole.choices[0].text == "".join(piece.choices[0].text for piece in streamed) != ""


def tools_are_called(client: openai.OpenAI) -> None:
    properties = {"animal": {"enum": ["fox", "hen"]}, "steps": {"enum": [1, 2, 3]}}
    parameters = {"type": "object", "properties": properties, "required": ["animal", "steps"], "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": "move", "description": "Moves.", "parameters": parameters}}]
    asked = {"model": "starter", "tools": tools, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}
    choice = client.chat.completions.create(**asked, messages=STORY).choices[0]
    (call,) = choice.message.tool_calls
    arguments = json.loads(call.function.arguments)
    assert choice.finish_reason == "tool_calls" and call.function.name == "move", choice
    assert arguments["animal"] in ("fox", "hen") and arguments["steps"] in (1, 2, 3) and len(arguments) == 2, arguments
    pieces = client.chat.completions.create(**asked, messages=STORY, stream=True)
    deltas = [piece.choices[0].delta.tool_calls[0] for piece in pieces if piece.choices[0].delta.tool_calls]
    assert "".join(delta.function.arguments for delta in deltas) == call.function.arguments
    result = {"role": "tool", "tool_call_id": call.id, "content": "done"}
    after = client.chat.completions.create(**asked | {"tool_choice": "auto"}, messages=[*STORY, choice.message, result])
    assert after.usage.prompt_tokens > 0


def models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["starter"]
    assert client.models.retrieve("starter").object == "model"


def refusals_are_the_packages_own_errors(client: openai.OpenAI) -> None:
    def refused(kind: type[openai.APIStatusError], with_client: openai.OpenAI = client, **more) -> str:
        try:
            with_client.chat.completions.create(**{"model": "starter", "messages": STORY, **more})
        except kind as error:
            return error.body["message"]
        raise AssertionError(f"{more} was not refused with {kind.__name__}")

    assert refused(openai.NotFoundError, model="other").startswith("The model 'other' is not loaded")
    assert refused(openai.BadRequestError, temperature=9).startswith("temperature: expected 0 to 5")
    tool = {"type": "function", "function": {"name": "look at"}}
    assert refused(openai.BadRequestError, tools=[tool]).startswith("tools: expected names of 1 to 128")
    long = [{"role": "user", "content": "a story " * 3000}]
    assert refused(openai.BadRequestError, messages=long).startswith("the prompt is too long")
    assert refused(openai.AuthenticationError, client.with_options(api_key="wrong")).startswith("The key is")


async def many_at_once(url: str, key: str) -> None:
    """32 clients, 5 requests each: those that find no place come again by themselves."""
    client = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=10)

    async def ask(seed: int) -> str:
        asked = {"model": "starter", "messages": STORY, "max_tokens": 8, "temperature": 0.9}
        return (await client.chat.completions.create(**asked, seed=seed)).choices[0].message.content

    async def one(number: int) -> list[str]:
        return [await ask(seed) for seed in range(5)]

    texts = await asyncio.gather(*[one(number) for number in range(32)])
    assert all(of_one == texts[0] for of_one in texts)
    assert len(set(texts[0])) > 1
    # One that turns away in the middle of a stream.
    stream = await client.chat.completions.create(model="starter", messages=STORY, stream=True)
    async for _ in stream:
        break
    await stream.close()
    assert await ask(0) == texts[0][0]
    await client.close()


def check(url: str, key: str) -> None:
    """Runs all checks on a server; `url` ends in /v1."""
    client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
    for check in (
        replies_are_the_same_whole_and_streamed,
        seeds_and_stops_hold,
        choices_biases_and_log_probabilities_are_there,
        texts_go_on,
        models_are_listed,
        tools_are_called,
        refusals_are_the_packages_own_errors,
    ):
        check(client)
        print(f"ok: openai, {check.__name__}")
    asyncio.run(many_at_once(url, key))
    print("ok: openai, many_at_once")
