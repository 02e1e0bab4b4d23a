//! Request bodies of the local server.

use foretoken_server::fuzzing;

use super::{Memory, Target, corpus};

const WORDS: &[&str] = &[
    "messages",
    "role",
    "system",
    "developer",
    "assistant",
    "content",
    "[{\"type\":\"text\",\"text\":\"a\"}]",
    "image_url",
    "prompt",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "4294967296",
    "1e999",
    "-0.0",
    "null",
    "stop",
    "[\"a\",\"b\"]",
    "stream",
    "stream_options",
    "include_usage",
    "chat_template_kwargs",
    "enable_thinking",
    "tools",
    "tool_choice",
    "input_schema",
    "tool_use",
    "tool_result",
    "tool_use_id",
    "stop_sequences",
    "input",
    "function_call",
    "call_id",
    "namespace",
    "custom",
    "logit_bias",
    "n",
    "\\u0000",
    "\\ud800",
];

pub fn target() -> Target {
    Target {
        name: "server",
        seeds: corpus("server"),
        words: WORDS,
        head: usize::MAX,
        longest: 4096,
        memory: Memory { each: 256, beside: 1 << 20 },
        // One endpoint may refuse what another accepts.
        run: Box::new(|input| {
            let problems = fuzzing::read(input);
            if problems.iter().all(Option::is_some) { problems.into_iter().flatten().next() } else { None }
        }),
    }
}
