//! Arguments in Gemma's notation, with sorted keys. Schemas become rules of the grammar, since
//! llguidance's own are those of JSON.

use foretoken_model::tools::{ArgumentForm, Tool, sort_key};
use serde_json::{Map, Value};

use super::fields::{bounded, in_order, is_required};
use super::rules::{Rules, quoted};

/// Keywords of a schema that are kept to, or say nothing about values.
const KNOWN: [&str; 24] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "maxProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "anyOf",
    "$ref",
    "$defs",
    "definitions",
    "description",
    "title",
    "default",
];

/// More keywords that say nothing about values.
const SILENT: [&str; 5] = ["$schema", "$id", "$comment", "examples", "nullable"];

/// Kinds of values, where a schema names none.
const KINDS: [&str; 6] = ["string", "number", "boolean", "null", "array", "object"];

/// Deepest nesting of a schema.
const DEEPEST: usize = 64;

/// Rule of the arguments of `tool`.
pub fn arguments(quote: &'static str, tool: &Tool, rules: &mut Rules<'_>) -> String {
    let mut schema = tool.parameters.clone();
    if let Value::Object(fields) = &mut schema {
        fields.entry("type").or_insert_with(|| "object".into());
    }
    let mut writer = Writer { quote, whole: &schema, named: Vec::new(), any: None, rules };
    writer.value(&schema, 0)
}

/// Writes rules for the parts of a schema.
struct Writer<'a, 'b> {
    quote: &'static str,
    /// Schema in which references are found.
    whole: &'a Value,
    /// Rules of references.
    named: Vec<(String, String)>,
    /// Rule of any value.
    any: Option<String>,
    rules: &'a mut Rules<'b>,
}

impl Writer<'_, '_> {
    fn refuse(&mut self, reason: impl Into<String>) -> String {
        self.rules.refuse(reason);
        String::new()
    }

    /// Rule of the values of a schema.
    fn value(&mut self, schema: &Value, depth: usize) -> String {
        if depth > DEEPEST {
            return self.refuse("it is nested too deeply");
        }
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(true) => return self.any(),
            _ => return self.refuse("expected an object or true"),
        };
        let is_known = |key: &&String| KNOWN.contains(&key.as_str()) || SILENT.contains(&key.as_str());
        if let Some(unknown) = fields.keys().find(|key| !is_known(key)) {
            return self.refuse(format!("{unknown} is not supported in this model's calls"));
        }
        if let Some(reference) = fields.get("$ref") {
            return self.reference(reference.as_str().unwrap_or_default(), depth);
        }
        let fixed = fields.get("const").map(std::slice::from_ref);
        if let Some(values) =
            fixed.or_else(|| fields.get("enum").and_then(Value::as_array).map(Vec::as_slice))
        {
            return self.one_of(values);
        }
        let alternatives: Vec<String> = match fields.get("anyOf").and_then(Value::as_array) {
            Some(all) => all.iter().map(|one| self.value(one, depth + 1)).collect(),
            None => {
                let kinds = kinds(fields);
                kinds.into_iter().map(|kind| self.kind(kind, schema, depth)).collect()
            }
        };
        self.rules.add(alternatives.join(" | "))
    }

    /// Rule of any value.
    fn any(&mut self) -> String {
        if let Some(any) = &self.any {
            return any.clone();
        }
        let any = self.rules.reserve();
        self.any = Some(any.clone());
        let all = KINDS.map(|kind| self.kind(kind, &Value::Object(Map::new()), 0));
        self.rules.set(&any, &all.join(" | "));
        any
    }

    fn reference(&mut self, reference: &str, depth: usize) -> String {
        if let Some((_, rule)) = self.named.iter().find(|(name, _)| name == reference) {
            return rule.clone();
        }
        let whole = self.whole;
        let Some(schema) = reference.strip_prefix('#').and_then(|path| whole.pointer(path)) else {
            return self.refuse(format!("the reference {reference:?} leads nowhere"));
        };
        let rule = self.rules.reserve();
        self.named.push((reference.to_owned(), rule.clone()));
        let value = self.value(schema, depth + 1);
        self.rules.set(&rule, &value);
        rule
    }

    fn one_of(&mut self, values: &[Value]) -> String {
        if values.is_empty() {
            return self.refuse("it accepts nothing");
        }
        let form = ArgumentForm::Notation { quote: self.quote };
        let values: Vec<String> = values.iter().map(|value| self.rules.literal(&form.value(value))).collect();
        self.rules.add(values.join(" | "))
    }

    /// Alternative of a schema: its values of this kind.
    fn kind(&mut self, kind: &str, schema: &Value, depth: usize) -> String {
        match kind {
            "null" => "\"null\"".to_owned(),
            "boolean" => "\"true\" | \"false\"".to_owned(),
            "string" => self.text(schema),
            "array" => self.list(schema, depth),
            "object" => self.object(schema, depth),
            "integer" | "number" => format!("%json {}", number(kind, schema)),
            _ => self.refuse(format!("the type {kind:?} is unknown")),
        }
    }

    fn text(&mut self, schema: &Value) -> String {
        let quote = self.rules.literal(self.quote);
        if self.rules.begins_with_token(self.quote) {
            let text = bounded("(?s:.)", schema).unwrap_or("SOME?".to_owned());
            return format!("{quote} {text} {quote}");
        }
        match bounded("[^<]", schema) {
            Some(text) => format!("{quote} {text} {quote}"),
            None => {
                let ended = self.rules.add_lazy(format!("TEXT {quote}"));
                format!("{quote} {ended}")
            }
        }
    }

    fn list(&mut self, schema: &Value, depth: usize) -> String {
        let item = match schema.get("items") {
            Some(items) => self.value(items, depth + 1),
            None => self.any(),
        };
        let least = schema["minItems"].as_u64().unwrap_or(0);
        match (least, schema["maxItems"].as_u64()) {
            (_, Some(0)) => "\"[]\"".to_owned(),
            (least, most) if most.is_some_and(|most| most < least) => self.refuse("it accepts nothing"),
            (least, most) => {
                let more = format!("\",\" {item}");
                let more = repeated(&more, least.max(1) - 1, most.map(|most| most - 1));
                let more = format!("{item} {more}");
                if least == 0 { format!("\"[\" ({more})? \"]\"") } else { format!("\"[\" {more} \"]\"") }
            }
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> String {
        let most = schema["maxProperties"].as_u64();
        let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty())
        else {
            let others = &schema["additionalProperties"];
            if most == Some(0) || *others == false || schema["properties"].is_object() && others.is_null() {
                return "\"{}\"".to_owned();
            }
            let value = if others.is_object() { self.value(others, depth + 1) } else { self.any() };
            let field = self.rules.add(format!("/[A-Za-z_][A-Za-z0-9_-]*/ \":\" {value}"));
            let rest = repeated(&format!("\",\" {field}"), 0, most.map(|most| most - 1));
            return format!("\"{{\" ({field} {rest})? \"}}\"");
        };
        if most.is_some_and(|most| most < properties.len() as u64) {
            return self.refuse("maxProperties is not supported in this model's calls");
        }
        let mut properties: Vec<_> = properties.iter().collect();
        properties.sort_by_key(|(name, _)| sort_key(name));
        let mut fields = Vec::new();
        for (name, property) in properties {
            let required = is_required(schema, name);
            // A name that ends itself cannot be written.
            if name.contains([':', ',', '{', '}', '<']) {
                if required {
                    self.refuse(format!("{name:?} cannot be a key in this model's calls"));
                }
                continue;
            }
            let value = self.value(property, depth + 1);
            fields.push((self.rules.add(format!("{} {value}", quoted(&format!("{name}:")))), required));
        }
        format!("\"{{\" {} \"}}\"", in_order(&fields, "\",\"", self.rules))
    }
}

/// Repetition of a rule's part. llguidance refuses one of zero times.
fn repeated(part: &str, least: u64, most: Option<u64>) -> String {
    match most {
        Some(0) => String::new(),
        most => format!("({part}){{{least},{}}}", most.map(|most| most.to_string()).unwrap_or_default()),
    }
}

/// Kinds of a schema's values.
fn kinds(fields: &Map<String, Value>) -> Vec<&str> {
    match fields.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => KINDS.to_vec(),
    }
}

/// Schema of a number, written as in JSON.
fn number(kind: &str, schema: &Value) -> Value {
    let mut number = Map::from_iter([("type".to_owned(), kind.into())]);
    for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
        number.extend(schema.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    Value::Object(number)
}
