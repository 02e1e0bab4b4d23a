//! Arguments of a call in Python, in the order of the schema. Texts may have either quotes; other
//! values are JSON, which Python reads, and its own words for truth.

use foretoken_model::tools::Tool;
use serde_json::Value;

use super::fields::{in_order, is_required};
use super::part;
use super::rules::{Rules, quoted};

/// Name of an argument.
const NAME: &str = "[A-Za-z_][A-Za-z0-9_]*";

/// Text between single quotes.
const SINGLE: &str = r#"/'([^'\\\n]|\\['"\\nrt])*'/"#;

/// Rule of the arguments of `tool`; any where its schema lists none.
pub fn arguments(tool: &Tool, rules: &mut Rules<'_>) -> String {
    let properties = tool.parameters["properties"].as_object().filter(|properties| !properties.is_empty());
    let Some(properties) = properties else {
        let has_none =
            tool.parameters["additionalProperties"] == false || tool.parameters["maxProperties"] == 0;
        if has_none || tool.parameters["properties"].is_object() {
            return String::new();
        }
        let any = value(tool, &Value::Bool(true));
        let argument = rules.add(format!("/{NAME}/ \"=\" ({any})"));
        return format!("({argument} (\", \" {argument})*)?");
    };
    let mut fields = Vec::new();
    for (name, schema) in properties {
        let required = is_required(&tool.parameters, name);
        if is_name(name) {
            let rule = rules.add(format!("{} ({})", quoted(&format!("{name}=")), value(tool, schema)));
            fields.push((rule, required));
        } else if required {
            rules.refuse(format!("{name:?} cannot be the name of an argument in Python"));
        }
    }
    in_order(&fields, "\", \"", rules)
}

fn is_name(name: &str) -> bool {
    let valid = |character: char| character.is_ascii_alphanumeric() || character == '_';
    name.starts_with(|first: char| !first.is_ascii_digit()) && name.chars().all(valid)
}

/// Alternatives of a value.
fn value(tool: &Tool, schema: &Value) -> String {
    let json = format!("%json {}", part(tool, schema));
    let is_any = schema == true || schema.as_object().is_some_and(serde_json::Map::is_empty);
    let is = |kind: &str| {
        let kinds = &schema["type"];
        is_any || kinds == kind || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
    };
    let is_plain = !["enum", "const"].iter().any(|key| schema.get(key).is_some());
    let bounds = ["minLength", "maxLength", "pattern", "format"];
    let mut all = vec![json];
    if is("string") && is_plain && bounds.iter().all(|key| schema.get(key).is_none()) {
        all.push(SINGLE.to_owned());
    }
    if is("boolean") && is_plain {
        all.push("\"True\" | \"False\"".to_owned());
    }
    if is("null") && is_plain {
        all.push("\"None\"".to_owned());
    }
    all.join(" | ")
}
