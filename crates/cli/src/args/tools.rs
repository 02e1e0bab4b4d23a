//! Options for tools that the model may call.

use std::collections::HashSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_model::Tool;
use serde::Deserialize;

use super::read_text;
use crate::error::{Error, Result};

/// Tools of a single reply.
#[derive(Debug, Args)]
pub struct ToolArgs {
    /// Let the model call the tools in FILE, a JSON list as in OpenAI's protocol; the calls are
    /// printed and not run
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    tools: Option<PathBuf>,
    #[command(flatten)]
    choice: ToolChoiceArgs,
}

/// Servers of tools.
#[derive(Debug, Clone, Args)]
pub struct McpArgs {
    /// Let the model call tools of the MCP servers in FILE, in the form of Claude Desktop, Cursor
    /// and LM Studio; each call is shown first and runs if you allow it
    #[arg(long, value_name = "FILE")]
    pub mcp: Option<PathBuf>,
    #[command(flatten)]
    pub choice: ToolChoiceArgs,
}

/// The tools that the model has to call.
#[derive(Debug, Clone, Args)]
pub struct ToolChoiceArgs {
    /// With tools: let the model decide whether it calls one, or let it begin with a call of any
    /// tool or of the one with this name
    #[arg(long, value_name = "auto|required|NAME", default_value = "auto")]
    tool_choice: Choice,
}

#[derive(Debug, Clone)]
struct Choice(ToolChoice);

impl FromStr for Choice {
    type Err = Infallible;

    fn from_str(word: &str) -> std::result::Result<Self, Infallible> {
        Ok(Self(match word {
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            name => ToolChoice::Named(name.to_owned()),
        }))
    }
}

impl ToolChoiceArgs {
    /// The choice among `tools`.
    ///
    /// # Errors
    /// `Error::Usage` for a name that none of them has.
    pub fn of<'a>(&self, tools: impl Iterator<Item = &'a Tool>) -> Result<ToolChoice> {
        let names: Vec<_> = tools.map(|tool| tool.name.as_str()).collect();
        let Choice(choice) = &self.tool_choice;
        match choice {
            ToolChoice::Named(name) if !names.contains(&name.as_str()) => {
                let message = format!(
                    "--tool-choice: expected auto, required or one of {}, found {name}.",
                    names.join(", ")
                );
                Err(Error::Usage(message))
            }
            choice => Ok(choice.clone()),
        }
    }
}

impl ToolArgs {
    /// The tools; `None` without any.
    ///
    /// # Errors
    /// Errors of reading the file, and `Error::Content` if it has no valid tools.
    pub fn tools(&self) -> Result<Option<ToolUse>> {
        let Some(path) = &self.tools else {
            return Ok(None);
        };
        let tools = parse(path, &read_text(path)?)?;
        let choice = self.choice.of(tools.iter())?;
        Ok(ToolUse::of(tools, choice))
    }
}

/// A tool in a file, with or without the wrapping of OpenAI's protocol.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Wrapped { function: Tool },
    Plain(Tool),
}

fn parse(path: &Path, text: &str) -> Result<Vec<Tool>> {
    let wrong =
        |expected: &'static str, found: String| Error::Content { path: path.to_owned(), expected, found };
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(|error| {
        wrong("a JSON list of tools, each with \"name\" and \"parameters\"", error.to_string())
    })?;
    let mut names = HashSet::new();
    let mut tools = Vec::with_capacity(entries.len());
    for Entry::Wrapped { function: tool } | Entry::Plain(tool) in entries {
        if !Tool::is_name(&tool.name) || !tool.parameters.is_object() || !names.insert(tool.name.clone()) {
            return Err(wrong("tools of different names, with a JSON schema each", tool.name));
        }
        tools.push(tool);
    }
    if tools.is_empty() { Err(wrong("at least one tool", "none".to_owned())) } else { Ok(tools) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_read_with_and_without_their_wrapping_and_bad_ones_are_refused() {
        let names = |text: &str| -> std::result::Result<Vec<String>, String> {
            let tools = parse(Path::new("t.json"), text).map_err(|error| error.to_string())?;
            Ok(tools.into_iter().map(|tool| tool.name).collect())
        };
        let both = r#"[{"type": "function", "function": {"name": "a", "parameters": {}}},
                       {"name": "b", "description": "B.", "parameters": {"type": "object"}}]"#;
        assert_eq!(names(both).unwrap(), ["a", "b"]);
        for (text, found) in [
            ("{}", "a JSON list of tools"),
            ("[]", "found none"),
            (r#"[{"name": "a b", "parameters": {}}]"#, "found a b"),
            (r#"[{"name": "a", "parameters": {}}, {"name": "a", "parameters": {}}]"#, "found a"),
            (r#"[{"name": "a", "parameters": 1}]"#, "found a"),
        ] {
            let error = names(text).unwrap_err();
            assert!(error.contains(found), "{text}: {error}");
        }
    }
}
