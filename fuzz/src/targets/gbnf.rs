//! Grammars in llama.cpp's form, converted to Lark. What compiles these runs in a process of its
//! own with limits, so only the conversion is tested.

use foretoken_grammar::Grammar;

use super::{Memory, Target, corpus};

const WORDS: &[&str] = &[
    "root ::= ",
    "\n",
    "a ::= ",
    "a",
    "root",
    " | ",
    "(",
    ")",
    "\"b\"",
    "[a-z]",
    "[^\\n]",
    "*",
    "+",
    "?",
    "{2}",
    "{1,}",
    "{0,2000}",
    "\\x41",
    "\\u00e9",
    "\\U0001F98A",
    "# ",
    ".",
    "-",
];

pub fn target() -> Target {
    Target {
        name: "gbnf",
        seeds: corpus("gbnf"),
        words: WORDS,
        head: usize::MAX,
        longest: 1 << 16,
        // A rule of a few bytes becomes an expression of some thousand.
        memory: Memory { each: 16 << 10, beside: 16 << 20 },
        run: Box::new(|input| {
            let grammar = Grammar::Gbnf(String::from_utf8_lossy(input).into_owned());
            let reason = grammar.converted()?.err()?;
            Some(format!("It is no grammar: {reason}."))
        }),
    }
}
