//! Replies with calls in every form, parsed whole and cut in two.

use foretoken_model::{CallForm, CallParser, Piece, Thinking, Tool};
use serde_json::json;

use super::{Memory, Target, corpus};

const WORDS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "\n{\"name\": \"",
    "\", \"arguments\": ",
    "{\"a\": [1, \"b\"]}",
    "<function=",
    "<parameter=",
    "</parameter>\n",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<|tool_call>call:",
    "<tool_call|>",
    "<|\"|>",
    "<|channel|>commentary to=functions.",
    "<|message|>",
    "[TOOL_CALLS]",
    "[CALL_ID]",
    "[ARGS]",
    "\", \"id\": \"abcdefghi\"}",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|tool_call_start|>[",
    "]<|tool_call_end|>",
    "edit(text='a', all=True)",
    "<|tool_call|>[",
    "]<|/tool_call|>",
    "</function>",
    "<think>",
    "</think>",
];

pub fn target() -> Target {
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let tools = [Tool { name: "edit".to_owned(), description: None, parameters }];
    Target {
        name: "calls",
        seeds: corpus("calls"),
        words: WORDS,
        head: usize::MAX,
        longest: 8192,
        memory: Memory { each: 256, beside: 1 << 20 },
        run: Box::new(move |input| {
            let text = String::from_utf8_lossy(input);
            let cut = (0..=text.len() / 2).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            for form in CallForm::ALL {
                let parse = |parts: &[&str]| parsed(form, &tools, parts);
                assert_eq!(parse(&[&text]), parse(&[&text[..cut], &text[cut..]]));
            }
            None
        }),
    }
}

/// Pieces of a reply that comes in `parts`, neighbours of one kind joined.
fn parsed(form: CallForm, tools: &[Tool], parts: &[&str]) -> Vec<Piece> {
    let mut parser = CallParser::new(form, Some(Thinking::KNOWN[0]), false).of_tools(tools);
    let mut pieces: Vec<Piece> = parts.iter().flat_map(|part| parser.push(part)).collect();
    pieces.extend(parser.finish());
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
            (Some(Piece::Arguments(json)), Piece::Arguments(more)) => json.push_str(&more),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}
