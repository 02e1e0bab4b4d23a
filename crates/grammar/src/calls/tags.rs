//! Arguments between tags, in the order of the schema.

use foretoken_model::tools::{Tags, Tool};
use serde_json::Value;

use super::fields::{bounded, is_required};
use super::part;
use super::rules::{Rules, quoted};

/// Rule of the arguments of `tool`; any where its schema lists none.
pub fn arguments(tags: &Tags, tool: &Tool, rules: &mut Rules<'_>) -> String {
    let properties = tool.parameters["properties"].as_object().filter(|properties| !properties.is_empty());
    let Some(properties) = properties else {
        let has_none =
            tool.parameters["additionalProperties"] == false || tool.parameters["properties"].is_object();
        return if has_none { String::new() } else { any(tags, rules) };
    };
    let mut all = Vec::new();
    for name in properties.keys() {
        // A name that ends its own tag cannot be written.
        if name.contains(['<', '>', '\n']) {
            if is_required(&tool.parameters, name) {
                rules.refuse(format!("{name:?} cannot be the name of an argument between tags"));
            }
            continue;
        }
        let before = rules.literal(&[tags.open, name, tags.named].concat());
        let rule = format!("{before} {}", value(tags, tool, name, rules));
        all.push(if is_required(&tool.parameters, name) { rule } else { format!("({rule})?") });
    }
    all.join(" ")
}

/// Rule of any arguments.
fn any(tags: &Tags, rules: &mut Rules<'_>) -> String {
    let (open, named, value) = (rules.literal(tags.open), rules.literal(tags.named), text(tags, rules));
    let argument = rules.add(format!("{open} /[^<>\\n]+/ {named} {value}"));
    format!("{argument}*")
}

/// Rule of a text and its closing tag.
fn text(tags: &Tags, rules: &mut Rules<'_>) -> String {
    if rules.begins_with_token(tags.close) {
        return format!("SOME? {}", rules.literal(tags.close));
    }
    let (letters, rest) = rules.letters_first(tags.close);
    let ended = rules.add_lazy(format!("TEXT {letters}"));
    format!("{ended} {rest}")
}

/// Rule of the value of an argument and its closing tag.
fn value(tags: &Tags, tool: &Tool, name: &str, rules: &mut Rules<'_>) -> String {
    let schema = &tool.parameters["properties"][name];
    let close = rules.literal(tags.close);
    if !tool.takes_text(name) {
        return format!("%json {} {close}", part(tool, schema));
    }
    let texts = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let texts: Vec<String> = texts.map(quoted).collect();
    if !texts.is_empty() {
        return format!("({}) {close}", texts.join(" | "));
    }
    // Without the sign that begins a closing tag, the text ends at the first one.
    match bounded("[^<]", schema) {
        Some(text) => format!("{text} {close}"),
        None => text(tags, rules),
    }
}
