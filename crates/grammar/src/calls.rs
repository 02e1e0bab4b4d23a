//! Grammar of a reply that may call tools: text, or calls whose names and arguments are valid.

use foretoken_model::Result;
use foretoken_model::tools::{ArgumentForm, CallForm, TAG_CLOSE, TAG_NAMED, TAG_OPEN, Tool};
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
    /// text. Arguments of a tool whose schema is no object are any object. Of the schema of a text
    /// between tags, only an enumeration is kept to.
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
        }
        rules.push("TEXT: /(?s:.*)/".to_owned());
        if self.form.arguments == ArgumentForm::Tags {
            rules.push(format!("value[lazy]: TEXT {}", quoted(TAG_CLOSE)));
            rules.push(format!("argument: {} /[^<>\\n]+/ {} value", quoted(TAG_OPEN), quoted(TAG_NAMED)));
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
        let arguments = match self.form.arguments {
            ArgumentForm::Json => format!("%json {}", arguments(tool)),
            ArgumentForm::Tags => tags(tool),
        };
        format!("{name}: {} {arguments} {}", quoted(&before), quoted(close))
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

/// Arguments of `tool` between tags, in the order of its schema; any where it lists none.
fn tags(tool: &Tool) -> String {
    let properties = tool.parameters["properties"].as_object().filter(|properties| !properties.is_empty());
    let Some(properties) = properties else {
        let has_none =
            tool.parameters["additionalProperties"] == false || tool.parameters["properties"].is_object();
        return if has_none { String::new() } else { "argument*".to_owned() };
    };
    let is_required = |name: &String| {
        let required = tool.parameters["required"].as_array();
        required.is_some_and(|required| required.iter().any(|other| other == name.as_str()))
    };
    // A name that ends its own tag cannot be written.
    let names = properties.iter().filter(|(name, _)| !name.contains(['>', '\n']));
    let rules = names.map(|(name, schema)| {
        let before = quoted(&[TAG_OPEN, name, TAG_NAMED].concat());
        let rule = format!("{before} {}", value(tool, name, schema));
        if is_required(name) { rule } else { format!("({rule})?") }
    });
    rules.collect::<Vec<String>>().join(" ")
}

/// Value of an argument and its closing tag.
fn value(tool: &Tool, name: &str, schema: &Value) -> String {
    if !tool.takes_text(name) {
        let mut schema = schema.clone();
        // References are relative to the schema of all arguments.
        for key in ["$defs", "definitions"] {
            if let (Value::Object(fields), Some(found)) = (&mut schema, tool.parameters.get(key)) {
                fields.insert(key.to_owned(), found.clone());
            }
        }
        let schema = in_fixed_form(schema).unwrap_or_else(|_| any_object());
        return format!("%json {schema} {}", quoted(TAG_CLOSE));
    }
    let texts = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let texts: Vec<String> = texts.map(|text| quoted(&[text, TAG_CLOSE].concat())).collect();
    if texts.is_empty() { "value".to_owned() } else { format!("({})", texts.join(" | ")) }
}

/// Text as a literal of Lark.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
