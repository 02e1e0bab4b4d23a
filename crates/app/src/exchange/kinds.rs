//! Detects which program wrote a conversation.

use foretoken_store::Tree;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::problem::{bad, damaged};
use super::{chatgpt, lm_studio, open_webui, own};
use crate::error::Result;

/// Fields that distinguish the formats.
#[derive(Deserialize)]
struct Signs {
    format: Option<String>,
    version: Option<u64>,
    mapping: Option<IgnoredAny>,
    chat: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
}

/// Parses the conversation in `json`; `None` for an empty one.
///
/// # Errors
/// Returns `BadFile`.
pub fn tree(json: &str) -> Result<Option<Tree>> {
    let signs: Signs = parse(json)?;
    let tree = match signs {
        Signs { format: Some(format), version, .. } if format == own::FORMAT => {
            if version.is_none_or(|version| version > own::VERSION) {
                return Err(bad("This file is from a newer Foretoken. Update Foretoken, then import it."));
            }
            own::tree(parse(json)?)?
        }
        Signs { mapping: Some(_), .. } => chatgpt::tree(parse(json)?),
        Signs { chat: Some(_), .. } => open_webui::tree(parse(json)?),
        Signs { messages: Some(_), .. } => lm_studio::tree(parse(json)?)?,
        _ => {
            return Err(bad(
                "Foretoken doesn't know this kind of file. It imports its own exports, and those of ChatGPT, \
                 LM Studio and Open WebUI.",
            ));
        }
    };
    Ok((!tree.nodes.is_empty()).then_some(tree))
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| damaged(&error))
}
