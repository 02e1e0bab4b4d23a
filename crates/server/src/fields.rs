//! Fields of request bodies that all protocols share. A field that would change the reply but is
//! not supported is refused, not ignored; fields that do not affect the reply are ignored. Values
//! that other servers accept mean the same here: whole numbers with a decimal point, a seed or
//! length of -1, empty stop texts.

use foretoken_json::repaired;
use serde::de::{DeserializeOwned, Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// Most stop texts, and their longest length in bytes: every token is searched for them. Clients
/// send one or two for each person of a conversation.
const MAX_STOPS: usize = 128;
const MAX_STOP: usize = 256;

/// Longest error message that quotes the request, in characters.
pub const MAX_MESSAGE: usize = 300;

/// Parses a body, without any of the `unsupported` fields.
///
/// # Errors
/// Returns the problem in one sentence.
pub fn body<B: DeserializeOwned>(json: &[u8], unsupported: &[&'static str]) -> Result<B, Refusal> {
    typed(object(json, unsupported)?)
}

/// Parses the fields of a body, without any of the `unsupported` ones.
///
/// # Errors
/// As [`body`].
pub fn object(json: &[u8], unsupported: &[&'static str]) -> Result<Map<String, Value>, Refusal> {
    let not_json = |error: serde_json::Error| refused(&format!("The request is not valid JSON: {error}"));
    let fields: Map<String, Value> = serde_json::from_str(&repaired(json)).map_err(not_json)?;
    refuse_unsupported(&fields, unsupported)?;
    Ok(fields)
}

/// Body with these fields.
///
/// # Errors
/// As [`body`].
pub fn typed<B: DeserializeOwned>(fields: Map<String, Value>) -> Result<B, Refusal> {
    serde_path_to_error::deserialize(Value::Object(fields))
        .map_err(|error| refused(&format!("{}: {}", error.path(), error.inner())))
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub fn list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// Reads a whole number, also one with a decimal point, as JavaScript and Lua may write it.
pub fn whole<'de, N: TryFrom<i128>, D: Deserializer<'de>>(from: D) -> Result<Option<N>, D::Error> {
    let Some(Whole(number)) = Option::deserialize(from)? else { return Ok(None) };
    let number = N::try_from(number).map_err(|_| {
        let found = i64::try_from(number).map_or(Unexpected::Other("a large number"), Unexpected::Signed);
        D::Error::invalid_value(found, &"a number in range for this field")
    })?;
    Ok(Some(number))
}

struct Whole(i128);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Whole;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number.into()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
                Ok(Whole(number.into()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
                let is_whole = number.fract() == 0.0 && number.abs() <= u64::MAX as f64;
                is_whole
                    .then_some(Whole(number as i128))
                    .ok_or_else(|| E::invalid_type(Unexpected::Float(number), &self))
            }
        }

        from.deserialize_any(Number)
    }
}

/// Returns the seed for a number of any size; -1 asks for a random one.
pub fn seed(number: i128) -> Option<u32> {
    (number != -1).then_some((number ^ number >> 32) as u32)
}

/// Returns the longest reply; -1 asks for no limit.
pub fn max_tokens(number: Option<i64>, field: &str) -> Result<Option<usize>, Refusal> {
    match number {
        None | Some(-1) => Ok(None),
        Some(number @ 1..) => Ok(Some(usize::try_from(number).unwrap_or(usize::MAX))),
        Some(_) => Err(Refusal::bad_field(field, "1 or more")),
    }
}

/// Creates an error whose message may quote text of any length.
pub fn refused(message: &str) -> Refusal {
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    Refusal::bad_request(format!("{message}."))
}

/// Number of likeliest tokens; some servers use -1 for all.
pub fn top_k(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// Returns the arguments of a call, which are a JSON object in a string.
///
/// # Errors
/// Refuses other texts; `field` is part of the message.
pub fn arguments_in(text: &str, field: &str) -> Result<Map<String, Value>, Refusal> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text)
        .map_err(|_| Refusal::bad_field(field, "arguments that are a JSON object in a string"))
}

pub fn stops(stop: Option<Texts>, field: &str) -> Result<Vec<String>, Refusal> {
    let mut stops = stop.map(Texts::list).unwrap_or_default();
    stops.retain(|stop| !stop.is_empty());
    if stops.len() > MAX_STOPS || stops.iter().any(|stop| stop.len() > MAX_STOP) {
        let expected = format!("at most {MAX_STOPS} strings of at most {MAX_STOP} bytes");
        return Err(Refusal::bad_field(field, &expected));
    }
    Ok(stops)
}

/// Refuses fields that ask for `unsupported` features. Values that clients send by default are
/// accepted.
fn refuse_unsupported(fields: &Map<String, Value>, unsupported: &[&'static str]) -> Result<(), Refusal> {
    let asks = |name: &&&str| fields.get(**name).is_some_and(|value| !asks_for_nothing(name, value));
    match unsupported.iter().find(asks) {
        Some(&name) => Err(self::unsupported(name)),
        None => Ok(()),
    }
}

pub fn unsupported(name: &'static str) -> Refusal {
    Refusal::unsupported(name, format!("This server does not support '{name}'. Leave it out."))
}

fn asks_for_nothing(name: &str, value: &Value) -> bool {
    match (name, value) {
        (_, Value::Null | Value::Bool(false)) => true,
        ("n" | "best_of", Value::Number(number)) => number.as_f64() == Some(1.0),
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        ("function_call", Value::String(choice)) => choice == "none",
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Array(list)) => list.is_empty(),
        (_, Value::Object(fields)) => fields.is_empty(),
        (_, Value::Bool(true)) => false,
    }
}
