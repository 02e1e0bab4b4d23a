//! Chat templates: compiled, and rendered for three conversations. Limits of stack and memory are
//! tested elsewhere; templates are kept small here, so only panics are left to find.

use std::path::PathBuf;

use foretoken_model::{ChatMessage, ChatTemplate, Renderer, Role};

use super::{Memory, Target, corpus, repository};
use crate::run::files;

const WORDS: &[&str] = &[
    "{%",
    "%}",
    "{{",
    "}}",
    "{#",
    "#}",
    "{%-",
    "-%}",
    "for m in messages",
    "endfor",
    "if ",
    "elif ",
    "else",
    "endif",
    "set x = ",
    "set ns = namespace(a=1)",
    "ns.a",
    "macro f(x)",
    "endmacro",
    "f(1)",
    "loop.index0",
    "loop.first",
    "messages[0]",
    "messages[1:]",
    "messages[-1]",
    "m.role",
    "m['content']",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "tools",
    "| trim",
    "| tojson",
    "| tojson(indent=4)",
    "| length",
    "| join(', ')",
    "| upper",
    "| list",
    "| selectattr('role', 'equalto', 'user')",
    "| map(attribute='role')",
    "| default('x')",
    "| int",
    "| safe",
    "is defined",
    "is none",
    "is string",
    "is mapping",
    "not ",
    " and ",
    " or ",
    " in ",
    " + ",
    " ~ ",
    " - ",
    " % ",
    " // ",
    "==",
    "!=",
    "'user'",
    "'a'",
    ".strip()",
    ".split('\\n')",
    ".startswith('a')",
    ".items()",
    "[::-1]",
    "[:2]",
    "raise_exception('no')",
    "strftime_now('%d %b %Y')",
    "generation",
    "endgeneration",
    "break",
    "continue",
    "raw",
    "endraw",
    "call",
    "endcall",
    "filter upper",
    "endfilter",
    "with a=1",
    "endwith",
    "<think>",
    "</think>",
];

/// Memory of a number that grows without limit.
const NUMBERS_OF_DIGITS: usize = 3;

pub fn target() -> Target {
    let mut seeds = files(&repository("tests/data/templates"));
    seeds.extend(corpus("template"));
    seeds.retain(|seed| is_small(&String::from_utf8_lossy(seed)));
    let renderer = Renderer::in_this_process();
    Target {
        name: "template",
        seeds,
        words: WORDS,
        head: usize::MAX,
        longest: 4096,
        memory: Memory { each: 4096, beside: 64 << 20 },
        run: Box::new(move |input| {
            let source = String::from_utf8_lossy(input);
            if !is_small(&source) {
                return Some("This template needs the child process and its limits.".into());
            }
            let (path, source) = (PathBuf::from("m.gguf"), source.into_owned());
            let template = ChatTemplate::new(path, source, Some("<s>"), Some("</s>"), &renderer);
            let mut refusal = None;
            match template {
                Err(error) => refusal = Some(error.to_string()),
                Ok(template) => {
                    for (conversation, opened) in conversations() {
                        refusal = template.render(&conversation, opened).err().map(|error| error.to_string());
                    }
                }
            }
            refusal.map(as_sentence)
        }),
    }
}

/// Replaces a template's own message, which may contain anything and is not checked here.
fn as_sentence(_: String) -> String {
    "It was refused.".into()
}

/// Filters that may double a text.
const DOUBLING: [&str; 4] = ["tojson", "escape", "|e", "| e"];
/// Most of them in one template.
const DOUBLED: usize = 4;

/// Returns whether a template can neither repeat a text thousands of times nor loop over anything
/// but the messages, twice.
fn is_small(source: &str) -> bool {
    let digits = |run: &str| run.len() > NUMBERS_OF_DIGITS;
    let numbers = source.split(|sign: char| !sign.is_ascii_digit()).any(digits);
    let count = |word: &str| source.matches(word).count();
    let nested =
        source.split("{%").filter(|tag| tag.trim_start_matches(['-', '+', ' ']).starts_with("for")).count();
    // MiniJinja 3.0.5 panics on a reversed empty list, which the child process reports as an error.
    let backwards = count("::-") > 0;
    !numbers
        && !backwards
        && count("range") == 0
        && count("lipsum") == 0
        && count("**") == 0
        && count(" * ") < 2
        && nested <= 6
        && DOUBLING.iter().map(|filter| count(filter)).sum::<usize>() <= DOUBLED
}

fn conversations() -> [(Vec<ChatMessage>, bool); 3] {
    let message = |role, content: &str| ChatMessage::new(role, content);
    let question = message(Role::User, "Hello\n<b>, \"you\"");
    let long = vec![
        message(Role::System, "Be kind."),
        question.clone(),
        message(Role::Assistant, "<think>\nWell.\n</think>\nHi."),
        message(Role::User, ""),
    ];
    [(Vec::new(), true), (vec![question], true), (long, false)]
}
