//! Prompts and resources of servers in a chat: lists of them, and the text of one.

use std::collections::BTreeMap;

use foretoken_documents::{DocumentReader, block};
use foretoken_model::child::Program;
use foretoken_tools::{ServerPrompt, ServerResource, Toolbox};

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::output;

/// Lists the prompts with their arguments; those in brackets can be left out.
pub fn list_prompts(toolbox: &Toolbox) {
    let prompts = toolbox.prompts();
    if prompts.is_empty() {
        output::note("no server that is ready has prompts");
    }
    for ServerPrompt { server, name, title, description, arguments } in prompts {
        let argument = |argument: foretoken_tools::PromptArgument| {
            let name = quoted(&argument.name);
            if argument.is_required { format!(" {name}=…") } else { format!(" [{name}=…]") }
        };
        let arguments: String = arguments.into_iter().map(argument).collect();
        let title = if title == name { String::new() } else { title };
        list(&format!("{} {}{arguments}", quoted(&server), quoted(&name)), &[title, description]);
    }
}

/// Lists the resources, and templates with their variables.
pub fn list_resources(toolbox: &Toolbox) {
    let resources = toolbox.resources();
    if resources.is_empty() {
        output::note("no server that is ready has resources");
    }
    for ServerResource { server, uri, title, description, mime_type, size, variables, .. } in resources {
        let variables: String = variables.iter().map(|name| format!(" {name}=…")).collect();
        let size = size.map_or(String::new(), |size| format!("{size} bytes"));
        let facts = [title, mime_type.unwrap_or_default(), size, description];
        list(&format!("{} {}{variables}", quoted(&server), quoted(&uri)), &facts);
    }
}

/// Writes an entry of a list with the facts that it has.
fn list(entry: &str, facts: &[String]) {
    let facts: Vec<_> = facts.iter().filter(|fact| !fact.is_empty()).map(String::as_str).collect();
    let line = format!("{entry}  {}", facts.join(", "));
    output::note(output::harmless(line.trim_end()));
}

/// Returns the text of the prompt that a line names: server, prompt, and arguments. Ctrl-C stops
/// waiting.
///
/// # Errors
/// `Error::Usage`, `Error::Tools`.
pub fn prompt(toolbox: &Toolbox, line: &str, interrupt: &Interrupt) -> Result<String> {
    let Wanted { server, name, values } = Wanted::of(line, "a server and one of its prompts after /prompt")?;
    interrupt.begin();
    let text = toolbox.prompt(&server, &name, &values, &|| interrupt.stopped());
    interrupt.end();
    Ok(text?)
}

/// Returns the resource that a line names, as a file stands in a prompt: server, address, and
/// values of a template's variables. Ctrl-C stops waiting.
///
/// # Errors
/// `Error::Usage`, `Error::Tools`.
pub fn resource(toolbox: &Toolbox, line: &str, interrupt: &Interrupt) -> Result<String> {
    let Wanted { server, name: uri, values } = Wanted::of(line, "a server and an address after /resource")?;
    let documents = DocumentReader::new(Some(&Program::This));
    let read = |bytes: &[u8]| documents.read_any(bytes).map_err(|unread| unread.reason().to_owned());
    interrupt.begin();
    let read = toolbox.resource(&server, &uri, &values, &read, &|| interrupt.stopped());
    interrupt.end();
    let resource = read?;
    Ok(block(&resource.name, &resource.text))
}

/// An entry of a server, with values by name.
struct Wanted {
    server: String,
    name: String,
    values: BTreeMap<String, String>,
}

impl Wanted {
    fn of(line: &str, expected: &str) -> Result<Self> {
        let mut words = words(line).into_iter();
        let (Some(server), Some(name)) = (words.next(), words.next()) else {
            return Err(Error::Usage(format!("expected {expected}")));
        };
        let value = |word: String| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(Error::Usage(format!("expected NAME=VALUE, found {word}"))),
        };
        Ok(Self { server, name, values: words.map(value).collect::<Result<_>>()? })
    }
}

/// Splits a line into words; double quotes hold several together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for letter in line.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            letter if letter.is_whitespace() && !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Returns a name as it is written in a line.
fn quoted(name: &str) -> String {
    if name.contains(char::is_whitespace) { format!("\"{name}\"") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words(r#" my  "two words" a="b c"d "" "#), ["my", "two words", "a=b cd", ""]);
        assert_eq!(words(r#"open "to the end"#), ["open", "to the end"]);
        assert_eq!((quoted("a").as_str(), quoted("a b").as_str()), ("a", "\"a b\""));
    }

    #[test]
    fn a_line_names_a_server_an_entry_and_values() {
        let wanted = Wanted::of("s p a=1 b=2=3", "x").unwrap();
        assert_eq!((wanted.server.as_str(), wanted.name.as_str()), ("s", "p"));
        assert_eq!((wanted.values["a"].as_str(), wanted.values["b"].as_str()), ("1", "2=3"));
        for line in ["", "s", "s p a"] {
            assert!(matches!(Wanted::of(line, "x"), Err(Error::Usage(_))), "{line}");
        }
    }
}
