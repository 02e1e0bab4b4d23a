//! Fields of an object: their rules in order, and the lengths of texts.

use serde_json::Value;

use super::rules::Rules;

/// Longest text whose length is kept to: a long repetition takes the lexer long.
const LONGEST: u64 = 1000;

/// Returns whether `schema` requires the property `name`.
pub fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name))
}

/// Rule of fields in this order, of which some are required, with `separator` between them.
pub fn in_order(fields: &[(String, bool)], separator: &str, rules: &mut Rules<'_>) -> String {
    // From the last field on: each field with what may follow it.
    let mut rest = String::new();
    let mut begun: Vec<String> = Vec::with_capacity(fields.len());
    for (field, required) in fields.iter().rev() {
        let after = if rest.is_empty() { String::new() } else { rules.add(&rest) };
        begun.push(format!("{field} {after}"));
        rest = match required {
            true => format!("{separator} {field} {after}"),
            false => format!("({separator} {field})? {after}"),
        };
    }
    // The first one that is written is an optional one or the first that is required.
    let required = fields.iter().position(|(_, required)| *required);
    let firsts: Vec<String> =
        begun.into_iter().rev().take(required.map_or(fields.len(), |first| first + 1)).collect();
    match (firsts.is_empty(), required) {
        (true, _) => String::new(),
        (false, Some(_)) => format!("({})", firsts.join(" | ")),
        (false, None) => format!("({})?", firsts.join(" | ")),
    }
}

/// Rule of a text of these characters with the lengths of its schema; `None` if the schema names
/// none that are kept to.
pub fn bounded(characters: &str, schema: &Value) -> Option<String> {
    let length = |key: &str| schema[key].as_u64().filter(|&length| length <= LONGEST);
    let (least, most) = (length("minLength"), length("maxLength"));
    let most_shown = match (least, most) {
        (None, None) => return None,
        (_, Some(0)) => return Some(String::new()),
        (_, most) => most.map(|most| most.to_string()).unwrap_or_default(),
    };
    // An empty text is no terminal before a token.
    Some(match least.unwrap_or(0) {
        0 => format!("(/{characters}{{1,{most_shown}}}/)?"),
        least => format!("/{characters}{{{least},{most_shown}}}/"),
    })
}
