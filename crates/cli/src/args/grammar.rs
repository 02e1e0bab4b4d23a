//! Options for a grammar that the reply follows.

use std::path::PathBuf;

use clap::Args;
use foretoken_grammar::Grammar;

use super::read_text;
use crate::error::Result;

/// Options for a grammar that the reply follows.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct GrammarArgs {
    /// Write a JSON value of the JSON schema in FILE, after the model's thinking if it thinks; `-`
    /// is standard input
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Write a text of the grammar in FILE: GBNF, as llama.cpp's, or Lark in llguidance's dialect
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,
    /// Write a text that this regular expression matches as a whole
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    regex: Option<String>,
}

impl GrammarArgs {
    /// The chosen grammar; `None` for any text.
    pub fn grammar(&self) -> Result<Option<Grammar>> {
        Ok(match self {
            Self { schema: Some(path), .. } => Some(Grammar::Schema(read_text(path)?)),
            Self { grammar: Some(path), .. } => Some(Grammar::of_rules(read_text(path)?)),
            Self { regex, .. } => regex.clone().map(Grammar::Regex),
        })
    }
}
