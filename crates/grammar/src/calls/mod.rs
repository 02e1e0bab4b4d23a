//! Grammar of a reply that may call tools: text, or calls whose names and arguments are valid.
//!
//! - `rules`: rules of a Lark grammar, and texts with markers
//! - `tags`, `notation`, `python`: arguments in these forms; `channels`: replies of gpt-oss

mod channels;
mod fields;
mod notation;
mod python;
mod rules;
mod tags;

use foretoken_model::tools::{ArgumentForm, CallForm, Place, Tool};
use foretoken_model::{Result, Tokenizer};
use serde_json::Value;

use crate::grammar::{Grammar, any_object, in_fixed_form};
use rules::Rules;

/// Calls that a reply may have.
#[derive(Clone, Copy)]
pub struct Calls<'a> {
    pub form: CallForm,
    /// Tools that may be called, at least one.
    pub tools: &'a [Tool],
    /// `true` if the reply has to call one.
    pub required: bool,
    /// `true` if the reply may have several calls, where the form has.
    pub parallel: bool,
    /// Vocabulary with markers that are tokens; `None` where all are texts.
    pub tokenizer: Option<&'a Tokenizer>,
}

impl Calls<'_> {
    /// Grammar of the reply. A reply without calls follows `otherwise`, JSON or a schema, or is any
    /// text. Arguments of a tool whose schema is no object are any object. Of the schema of a text
    /// between tags, only an enumeration and lengths are kept to.
    ///
    /// # Errors
    /// `Error::Grammar` if `otherwise` is invalid, or if the form cannot express a tool's schema.
    pub fn grammar(&self, otherwise: Option<&Grammar>) -> Result<Grammar> {
        let schema = |grammar: &Grammar| Some(grammar.schema()?.map_err(|reason| grammar.error(reason)));
        let otherwise = otherwise.and_then(schema).transpose()?;
        let mut rules = Rules::new(self.tokenizer);
        let calls: Vec<String> = self.tools.iter().map(|tool| self.call(tool, &mut rules)).collect();
        let start = match (self.form.place, rules.has_channels()) {
            (Place::Channel, true) => self.in_channels(&calls, otherwise.as_ref(), &mut rules),
            _ => self.in_text(&calls, otherwise.as_ref(), &mut rules),
        };
        rules.grammar(&start)
    }

    /// Rule of replies that are text up to the calls.
    fn in_text(&self, calls: &[String], otherwise: Option<&Value>, rules: &mut Rules<'_>) -> String {
        let trigger = self.form.trigger();
        let call = rules.add(calls.join(" | "));
        let end = rules.literal(self.form.end);
        let calls = match self.form.between.filter(|_| self.parallel) {
            Some(between) => {
                let next = rules.literal(&[between, self.form.open].concat());
                rules.add(format!("{call} ({next} {call})* {end}"))
            }
            None => rules.add(format!("{call} {end}")),
        };
        let open = rules.literal(&trigger);
        match (self.required, otherwise) {
            (true, _) => format!("{open} {calls}"),
            (false, Some(schema)) => format!("{open} {calls} | %json {schema}"),
            (false, None) if rules.begins_with_token(&trigger) => format!("SOME? ({open} {calls})?"),
            (false, None) => {
                let before = if self.form.place == Place::First { "" } else { "TEXT " };
                let (letters, rest) = rules.letters_first(&trigger);
                let opened = rules.add_lazy(format!("{before}{letters}"));
                format!("{opened} {rest} {calls} | TEXT")
            }
        }
    }

    /// Rule of a call of `tool`.
    fn call(&self, tool: &Tool, rules: &mut Rules<'_>) -> String {
        let CallForm { before_name, before_arguments, close, .. } = self.form;
        let before = rules.literal(&[before_name, &tool.name, before_arguments].concat());
        let close = rules.literal(close);
        let arguments = self.arguments(tool, rules);
        let before = if self.form.place == Place::Channel && rules.has_channels() {
            channels::header(&tool.name, rules)
        } else {
            before
        };
        rules.add(format!("{before} {arguments} {close}"))
    }

    /// Rule of the arguments of a call of `tool`.
    fn arguments(&self, tool: &Tool, rules: &mut Rules<'_>) -> String {
        match self.form.arguments {
            ArgumentForm::Json => format!("%json {}", json(tool)),
            ArgumentForm::Tags(tags) => tags::arguments(&tags, tool, rules),
            ArgumentForm::Notation { quote } => notation::arguments(quote, tool, rules),
            ArgumentForm::Python => python::arguments(tool, rules),
        }
    }
}

/// Schema of the arguments of `tool`.
fn json(tool: &Tool) -> Value {
    let mut schema = tool.parameters.clone();
    if let Value::Object(fields) = &mut schema {
        fields.entry("type").or_insert_with(|| "object".into());
    }
    in_fixed_form(schema).unwrap_or_else(|_| any_object())
}

/// Schema of a part of the arguments of `tool`. References are relative to that of all.
fn part(tool: &Tool, schema: &Value) -> String {
    let mut schema = schema.clone();
    for key in ["$defs", "definitions"] {
        if let (Value::Object(fields), Some(found)) = (&mut schema, tool.parameters.get(key)) {
            fields.insert(key.to_owned(), found.clone());
        }
    }
    in_fixed_form(schema).unwrap_or_else(|_| any_object()).to_string()
}
