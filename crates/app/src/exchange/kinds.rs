//! Whose conversation it is that stands in a file.

use foretoken_store::Tree;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::problem::{bad, damaged};
use super::{chatgpt, lm_studio, open_webui, own};
use crate::error::Result;

/// What tells the kinds apart.
#[derive(Deserialize)]
struct Signs {
    format: Option<String>,
    version: Option<u64>,
    mapping: Option<IgnoredAny>,
    chat: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
}

/// The conversation that `json` is; `None` for one in which nothing is said.
///
/// # Errors
/// `BadFile`.
pub fn tree(json: &str) -> Result<Option<Tree>> {
    let signs: Signs = parse(json)?;
    let tree = match signs {
        Signs { format: Some(format), version, .. } if format == own::FORMAT => {
            if version.is_none_or(|version| version > own::VERSION) {
                return Err(bad("A newer Foretoken wrote this file: update Foretoken, and import it then."));
            }
            own::tree(parse(json)?)?
        }
        Signs { mapping: Some(_), .. } => chatgpt::tree(parse(json)?),
        Signs { chat: Some(_), .. } => open_webui::tree(parse(json)?),
        Signs { messages: Some(_), .. } => lm_studio::tree(parse(json)?)?,
        _ => {
            return Err(bad(
                "This is no file of conversations that Foretoken knows: it reads its own exports, and those of ChatGPT, \
                 LM Studio and Open WebUI.",
            ));
        }
    };
    Ok((!tree.nodes.is_empty()).then_some(tree))
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| damaged(&error))
}
