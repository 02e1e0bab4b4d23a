//! Rules of a Lark grammar while they are collected.

use foretoken_model::tools::{ID_LENGTH, ID_PART, MARKS};
use foretoken_model::{Result, Tokenizer};
use serde_json::Value;

use crate::grammar::Grammar;

/// See the module.
pub struct Rules<'a> {
    tokenizer: Option<&'a Tokenizer>,
    lines: Vec<String>,
    /// First reason why the form cannot express a schema.
    refusal: Option<String>,
}

impl<'a> Rules<'a> {
    /// Begins with `TEXT`, any text, which may be empty only before letters; `SOME`, any text that is
    /// not empty; and `ID`, that of a call.
    pub fn new(tokenizer: Option<&'a Tokenizer>) -> Self {
        let text = ["TEXT: /(?s:.*)/".to_owned(), "SOME: /(?s:.+)/".to_owned()];
        let lines = text.into_iter().chain([format!("ID: /[a-zA-Z0-9]{{{ID_LENGTH}}}/")]).collect();
        Self { tokenizer, lines, refusal: None }
    }

    /// Adds a rule, and returns its name.
    pub fn add(&mut self, body: impl AsRef<str>) -> String {
        self.named("", body.as_ref())
    }

    /// Adds a rule for the shortest text that it matches.
    pub fn add_lazy(&mut self, body: impl AsRef<str>) -> String {
        self.named("[lazy]", body.as_ref())
    }

    fn named(&mut self, options: &str, body: &str) -> String {
        let name = format!("r{}", self.lines.len());
        self.lines.push(format!("{name}{options}: {body}"));
        name
    }

    /// Reserves the name of a rule, to be [set](Self::set).
    pub fn reserve(&mut self) -> String {
        self.add("")
    }

    /// Sets the body of a reserved rule.
    pub fn set(&mut self, name: &str, body: &str) {
        let begins = format!("{name}: ");
        if let Some(line) = self.lines.iter_mut().find(|line| line.starts_with(&begins)) {
            *line = begins + body;
        }
    }

    /// Reports that the form cannot express a tool's schema.
    pub fn refuse(&mut self, reason: impl Into<String>) {
        self.refusal.get_or_insert_with(|| reason.into());
    }

    /// Finishes the grammar.
    ///
    /// # Errors
    /// `Error::Grammar` if a schema was refused.
    pub fn grammar(self, start: &str) -> Result<Grammar> {
        let grammar = Grammar::Lark(format!("start: {start}\n{}", self.lines.join("\n")));
        match self.refusal {
            None => Ok(grammar),
            Some(reason) => Err(grammar.error(reason)),
        }
    }

    /// Token of a text that is one of the vocabulary's special tokens.
    pub fn token(&self, text: &str) -> Option<String> {
        let token = self.tokenizer?.special_id(text)?;
        Some(format!("<[{token}]>"))
    }

    /// Returns whether the vocabulary has the control tokens of gpt-oss's headers.
    pub fn has_channels(&self) -> bool {
        ["<|start|>", "<|channel|>", "<|message|>", "<|end|>"].iter().all(|text| self.token(text).is_some())
    }

    /// Returns whether `text` begins with a marker that is a token.
    pub fn begins_with_token(&self, text: &str) -> bool {
        MARKS.iter().any(|mark| text.starts_with(mark) && self.token(mark).is_some())
    }

    /// Text as letters, markers that are tokens, and ids.
    pub fn literal(&self, text: &str) -> String {
        self.parts(text).join(" ")
    }

    /// [Literal](Self::literal) that begins with letters, in two parts: these and the rest.
    pub fn letters_first(&self, text: &str) -> (String, String) {
        let mut parts = self.parts(text);
        let rest = parts.split_off(parts.len().min(1));
        (parts.concat(), rest.join(" "))
    }

    fn parts(&self, text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let marks =
                MARKS.iter().filter_map(|mark| Some((rest.find(mark)?, mark.len(), self.token(mark)?)));
            let id = rest.find(ID_PART).map(|at| (at, ID_LENGTH, "ID".to_owned()));
            let next = marks.chain(id).min_by_key(|(at, ..)| *at);
            let (letters, length) = next.as_ref().map_or((rest.len(), 0), |(at, length, _)| (*at, *length));
            if letters > 0 {
                parts.push(quoted(&rest[..letters]));
            }
            parts.extend(next.map(|(.., part)| part));
            rest = rest.get(letters + length..).unwrap_or_default();
        }
        parts
    }
}

/// Text as a literal of Lark.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
