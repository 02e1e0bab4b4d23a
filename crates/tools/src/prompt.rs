//! Prompts of servers: texts with arguments that a person puts into a question. All their words
//! are untrusted.

use std::collections::BTreeMap;

use rmcp::model::{GetPromptResult, PromptMessage, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use crate::error::{Error, Result};
use crate::log::{identifier, printable};
use crate::outcome::{Outcome, part};

/// Most prompts of one server, and most arguments of a prompt.
pub(crate) const MOST_PROMPTS: usize = 128;
const MOST_ARGUMENTS: usize = 16;

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerPrompt {
    pub server: String,
    pub name: String,
    /// Name for people; the name itself if the server has no other.
    pub title: String,
    pub description: String,
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt; its value is a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct PromptArgument {
    pub name: String,
    pub title: String,
    pub description: String,
    pub is_required: bool,
}

impl ServerPrompt {
    /// Reads an entry of a server's list; `None` if its names cannot be used.
    pub(crate) fn of(server: &str, prompt: rmcp::model::Prompt) -> Option<Self> {
        let arguments = prompt.arguments.unwrap_or_default();
        if arguments.len() > MOST_ARGUMENTS {
            return None;
        }
        let name = identifier(prompt.name)?;
        Some(Self {
            server: server.to_owned(),
            title: printable(&prompt.title.unwrap_or_else(|| name.clone())),
            description: printable(&prompt.description.unwrap_or_default()),
            arguments: arguments.into_iter().map(PromptArgument::of).collect::<Option<_>>()?,
            name,
        })
    }

    /// Returns the arguments for the server; an empty value counts as none.
    ///
    /// # Errors
    /// `Error::UnknownArgument`, `Error::MissingArgument`.
    pub(crate) fn filled(&self, values: &BTreeMap<String, String>) -> Result<Map<String, Value>> {
        let known = |name: &String| self.arguments.iter().any(|argument| argument.name == *name);
        if let Some(name) = values.keys().find(|name| !known(name)) {
            return Err(Error::UnknownArgument { prompt: self.name.clone(), name: name.clone() });
        }
        let given = values.iter().filter(|(_, value)| !value.is_empty());
        let given: Map<_, _> =
            given.map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
        let is_missing =
            |argument: &&PromptArgument| argument.is_required && !given.contains_key(&argument.name);
        match self.arguments.iter().find(is_missing) {
            Some(PromptArgument { name, .. }) => Err(Error::MissingArgument(name.clone())),
            None => Ok(given),
        }
    }
}

impl PromptArgument {
    fn of(argument: rmcp::model::PromptArgument) -> Option<Self> {
        let name = identifier(argument.name)?;
        Some(Self {
            title: printable(&argument.title.unwrap_or_else(|| name.clone())),
            description: printable(&argument.description.unwrap_or_default()),
            is_required: argument.required == Some(true),
            name,
        })
    }
}

/// Returns the text of a prompt. Its messages have labels only if some are an assistant's; parts
/// that are no text are named.
///
/// # Errors
/// `Error::NoText`.
pub(crate) fn text_of(name: &str, result: &GetPromptResult) -> Result<String> {
    let is_dialogue = result.messages.iter().any(|message| message.role == Role::Assistant);
    let words = |PromptMessage { role, content, .. }: &PromptMessage| {
        let text = part(content);
        match role {
            _ if !is_dialogue => text,
            Role::User => format!("User: {text}"),
            Role::Assistant => format!("Assistant: {text}"),
        }
    };
    let texts: Vec<String> = result.messages.iter().map(words).collect();
    let text = Outcome::new(&texts.join("\n\n")).text;
    if text.trim().is_empty() {
        return Err(Error::NoText { name: name.to_owned(), reason: "it is empty".to_owned() });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use rmcp::model::ContentBlock;
    use serde_json::{from_value, json};

    use super::*;

    fn read(prompt: Value) -> Option<ServerPrompt> {
        ServerPrompt::of("s", from_value(prompt).unwrap())
    }

    #[test]
    fn a_prompt_whose_names_cannot_be_used_is_left_out_and_long_words_are_cut() {
        let long = "x".repeat(10_000);
        for name in ["", "a\nb", "\u{1b}[2J", &long] {
            assert_eq!(read(json!({ "name": name })), None, "{name}");
            assert_eq!(read(json!({ "name": "a", "arguments": [{ "name": name }] })), None, "{name}");
        }
        let many: Vec<_> = (0..=MOST_ARGUMENTS).map(|number| json!({ "name": number.to_string() })).collect();
        assert_eq!(read(json!({ "name": "a", "arguments": many })), None);
        let prompt = read(json!({ "name": "a", "title": "A\n\u{7}B", "description": long })).unwrap();
        assert_eq!((prompt.title.as_str(), prompt.description.len()), ("A B", 500));
        assert_eq!(read(json!({ "name": "a" })).unwrap().title, "a");
    }

    #[test]
    fn arguments_are_known_and_complete() {
        let arguments = json!([{ "name": "who", "required": true }, { "name": "tone" }]);
        let prompt = read(json!({ "name": "greet", "arguments": arguments })).unwrap();
        let filled = |values: &[(&str, &str)]| {
            let values = values.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            prompt.filled(&values.collect())
        };
        let given = filled(&[("who", "fox"), ("tone", "")]).unwrap();
        assert_eq!(Value::Object(given), json!({ "who": "fox" }));
        assert_eq!(filled(&[("who", "")]), Err(Error::MissingArgument("who".to_owned())));
        let unknown = filled(&[("who", "fox"), ("hue", "red")]).unwrap_err().to_string();
        assert_eq!(unknown, "The prompt greet has no argument hue.");
    }

    #[test]
    fn messages_are_joined_with_labels_only_if_an_assistant_speaks() {
        let message = |role, content| PromptMessage::new(role, content);
        let user = message(Role::User, ContentBlock::text("Hello\u{7}"));
        let picture = message(Role::User, ContentBlock::image("AAAA", "image/png"));
        let only_user = GetPromptResult::new(vec![user.clone(), picture]);
        assert_eq!(text_of("p", &only_user).unwrap(), "Hello\n\n[image, image/png, 3 bytes]");
        let dialogue = GetPromptResult::new(vec![user, message(Role::Assistant, ContentBlock::text("Hi"))]);
        assert_eq!(text_of("p", &dialogue).unwrap(), "User: Hello\n\nAssistant: Hi");
        let empty = text_of("p", &GetPromptResult::new(Vec::new())).unwrap_err().to_string();
        assert_eq!(empty, "p cannot be used as text: it is empty.");
    }
}
