//! Grammar of a reply that may call tools: text, or calls whose names and arguments are valid.

use foretoken_model::Result;
use foretoken_model::tools::{CallForm, Tool};
use serde_json::Value;

use crate::grammar::{Grammar, any_object, in_fixed_form};

/// Calls that a reply may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls<'a> {
    pub form: CallForm,
    /// Tools that may be called, at least one.
    pub tools: &'a [Tool],
    /// `true` if the reply has to call one.
    pub required: bool,
    /// `true` if the reply may have several calls, where the form has.
    pub parallel: bool,
}

impl Calls<'_> {
    /// Grammar of the reply. A reply without calls follows `otherwise`, JSON or a schema, or is any
    /// text. Arguments of a tool whose schema is no object are any object.
    ///
    /// # Errors
    /// `Error::Grammar` if `otherwise` is invalid.
    pub fn grammar(&self, otherwise: Option<&Grammar>) -> Result<Grammar> {
        let open = quoted(self.form.open);
        let schema = |grammar: &Grammar| Some(grammar.schema()?.map_err(|reason| grammar.error(reason)));
        let otherwise = otherwise.and_then(schema).transpose()?;
        let mut rules = vec![match (self.required, &otherwise) {
            (true, _) => format!("start: {open} calls"),
            (false, Some(schema)) => format!("start: {open} calls | %json {schema}"),
            (false, None) => "start: opened calls | TEXT".to_owned(),
        }];
        if !self.required && otherwise.is_none() {
            let before = if self.form.only_first { "" } else { "TEXT " };
            rules.push(format!("opened[lazy]: {before}{open}"));
            rules.push("TEXT: /(?s:.*)/".to_owned());
        }
        let next = self.form.between.filter(|_| self.parallel);
        rules.push(match next {
            Some(between) => format!("calls: call ({} call)*", quoted(&[between, self.form.open].concat())),
            None => "calls: call".to_owned(),
        });
        let names: Vec<String> = (0..self.tools.len()).map(|number| format!("call_{number}")).collect();
        rules.push(format!("call: {}", names.join(" | ")));
        rules.extend(self.tools.iter().zip(&names).map(|(tool, name)| self.rule(tool, name)));
        Ok(Grammar::Lark(rules.join("\n")))
    }

    /// Rule `name`, which is a call of `tool`.
    fn rule(&self, tool: &Tool, name: &str) -> String {
        let CallForm { before_name, before_arguments, close, .. } = self.form;
        let before = [before_name, &tool.name, before_arguments].concat();
        format!("{name}: {} %json {} {}", quoted(&before), arguments(tool), quoted(close))
    }
}

/// Schema of the arguments of `tool`.
fn arguments(tool: &Tool) -> Value {
    let mut schema = tool.parameters.clone();
    if let Value::Object(fields) = &mut schema {
        fields.entry("type").or_insert_with(|| "object".into());
    }
    in_fixed_form(schema).unwrap_or_else(|_| any_object())
}

/// Text as a literal of Lark.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
