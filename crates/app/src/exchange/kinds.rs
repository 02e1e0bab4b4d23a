//! Detects which program wrote a conversation.

use foretoken_store::title_from;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::lenient::or_none;
use super::problem::{LeftOut, damaged};
use super::reply_tree::{ReadTree, visible};
use super::{chatgpt, lm_studio, open_webui, own};
use crate::error::Result;

/// Fields that distinguish the formats, and titles.
#[derive(Default, Deserialize)]
struct Signs {
    #[serde(default, deserialize_with = "or_none")]
    format: Option<String>,
    #[serde(default, deserialize_with = "or_none")]
    version: Option<u64>,
    #[serde(default, deserialize_with = "or_none")]
    title: Option<String>,
    /// The title in files of LM Studio.
    #[serde(default, deserialize_with = "or_none")]
    name: Option<String>,
    mapping: Option<IgnoredAny>,
    chat: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
}

/// A conversation of a file.
#[derive(Debug)]
pub enum Element {
    Conversation(ReadTree),
    /// A conversation without messages, which no program shows.
    Empty,
    LeftOut(LeftOut),
}

/// Parses the conversation in `json`. One of an unknown form is left out, so that the others are
/// still imported.
///
/// # Errors
/// Returns `BadFile` if `json` is not valid JSON: then the file is incomplete.
pub fn element(json: &str) -> Result<Element> {
    let mut signs: Signs = match serde_json::from_str(json) {
        Ok(signs) => signs,
        Err(error) if error.is_data() => Signs::default(),
        Err(error) => return Err(damaged(&error)),
    };
    let title = signs.title.take().or(signs.name.take()).filter(|title| !title.trim().is_empty());
    let left_out = |reason: String| {
        Ok(Element::LeftOut(LeftOut {
            title: title.as_deref().map(|title| title_from(&visible(title))),
            reason,
        }))
    };
    match tree(json, &signs) {
        Ok(ReadTree { tree, left_out: 0 }) if tree.nodes.is_empty() => Ok(Element::Empty),
        Ok(read) if read.tree.nodes.is_empty() => left_out("none of its messages could be read".to_owned()),
        Ok(read) => Ok(Element::Conversation(read)),
        Err(reason) => left_out(reason),
    }
}

/// # Errors
/// Returns the reason why the conversation is left out.
fn tree(json: &str, signs: &Signs) -> Result<ReadTree, String> {
    match signs {
        Signs { format: Some(format), version, .. } if format == own::FORMAT => {
            if version.is_none_or(|version| version > own::VERSION) {
                return Err("it is from a newer Foretoken. Update Foretoken, then import it".to_owned());
            }
            let tree = own::tree(parse(json)?).map_err(|error| error.message)?;
            Ok(ReadTree { tree, left_out: 0 })
        }
        Signs { mapping: Some(_), .. } => Ok(chatgpt::tree(parse(json)?)),
        Signs { chat: Some(_), .. } => Ok(open_webui::tree(parse(json)?)),
        Signs { messages: Some(_), .. } => lm_studio::tree(parse(json)?).map_err(|error| error.message),
        _ => Err(
            "Foretoken doesn't know this kind of file, or it has no messages. It imports its own exports, \
                  and those of ChatGPT, LM Studio and Open WebUI"
                .to_owned(),
        ),
    }
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}
