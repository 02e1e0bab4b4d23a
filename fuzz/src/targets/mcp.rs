//! Standard output of a server of the Model Context Protocol: lists, results, progress and noise.

use std::collections::HashSet;

use foretoken_model::Tool;
use foretoken_tools::{Error, Output};

use super::{Memory, Target, corpus};

const WORDS: &[&str] = &[
    "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {",
    "}}\n",
    "\n",
    "\"tools\": [{\"name\": \"read\", \"inputSchema\": {\"type\": \"object\"}}]",
    "\"prompts\": [{\"name\": \"a\"}]",
    "\"arguments\": [{\"name\": \"a\", \"required\": true}]",
    "\"resources\": [{\"uri\": \"note://a\", \"name\": \"a\"}]",
    "\"resourceTemplates\": [{\"uriTemplate\": \"note://{a}\", \"name\": \"a\"}]",
    "\"messages\": [{\"role\": \"user\", \"content\": {\"type\": \"text\", \"text\": \"a\"}}]",
    "\"contents\": [{\"uri\": \"note://a\", \"text\": \"a\"}]",
    "{\"uri\": \"note://a\", \"blob\": \"Zm94\"}",
    "\"content\": [{\"type\": \"text\", \"text\": \"a\"}]",
    "{\"type\": \"image\", \"data\": \"AAAA\", \"mimeType\": \"image/png\"}",
    "\"structuredContent\": {\"a\": 1}",
    "\"isError\": true",
    "\"resultType\": \"complete\"",
    "\"nextCursor\": \"2\"",
    "\"error\": {\"code\": -32601, \"message\": \"no\"}",
    "\"method\": \"notifications/progress\", \"params\": {\"progressToken\": 0, \"progress\": 0.5}",
    "{+a}",
    "1e999",
    "\\u0007",
    "\\ud83e",
];

/// Longest name of a tool, and longest texts of a result and of a resource, in bytes.
const NAME: usize = 64;
const TEXT: usize = 64 << 10;
const FILE: usize = 4 << 20;

/// Longest line, and longest name or address of an entry.
const LINE: usize = 500;
const IDENTIFIER: usize = 2_000;

pub fn target() -> Target {
    Target {
        name: "mcp",
        seeds: corpus("mcp"),
        words: WORDS,
        head: usize::MAX,
        longest: 16 << 10,
        memory: Memory { each: 1024, beside: 1 << 20 },
        run: Box::new(|input| {
            let read =
                |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| "it is no text".to_owned());
            let output = Output::of("notes", input, &read);
            check(&output);
            let own = |error: &&Error| !matches!(error, Error::Noise(_) | Error::Refused(_));
            output.errors.iter().find(own).map(ToString::to_string)
        }),
    }
}

fn check(output: &Output) {
    let mut names = HashSet::new();
    for offer in &output.offers {
        assert!(Tool::is_name(&offer.name) && offer.name.len() <= NAME, "{}", offer.name);
        assert!(names.insert(&offer.name), "{} twice", offer.name);
        assert!(offer.parameters.is_object() && offer.parameters.to_string().len() <= TEXT + LINE);
        assert!(offer.description.chars().count() <= 4_000 && offer.digest.len() == 64);
    }
    for prompt in &output.prompts {
        check_entry(&prompt.name, &[&prompt.title, &prompt.description]);
        for argument in &prompt.arguments {
            check_entry(&argument.name, &[&argument.title, &argument.description]);
        }
    }
    for resource in &output.resources {
        check_entry(&resource.uri, &[&resource.name, &resource.title, &resource.description]);
        assert!(resource.variables.iter().all(|name| !name.is_empty()), "{resource:?}");
    }
    output.lines.iter().for_each(|line| check_line(line));
    for (texts, longest) in [(&output.texts, TEXT + LINE), (&output.files, FILE)] {
        for text in texts {
            let is_hidden = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
            assert!(text.len() <= longest && !text.contains(is_hidden), "{text:?}");
        }
    }
    for error in &output.errors {
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
}

/// Checks an entry's identifier, which the server gets back, and its words for people.
fn check_entry(identifier: &str, words: &[&str]) {
    assert!((1..=IDENTIFIER).contains(&identifier.len()) && !identifier.contains(char::is_control));
    words.iter().for_each(|line| check_line(line));
}

fn check_line(line: &str) {
    assert!(line.chars().count() <= LINE && !line.contains(char::is_control), "{line:?}");
}
