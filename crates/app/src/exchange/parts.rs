//! Text of a message: a string, or parts that are strings or objects of which some have a text.
//! Others, such as pictures, are skipped.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Joined text of all parts, separated by blank lines. Joined while reading, so many empty parts
/// take no memory.
#[derive(Debug, Default, PartialEq)]
pub struct Parts(pub String);

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Joined)
    }
}

struct Joined;

impl<'de> Visitor<'de> for Joined {
    type Value = Parts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Parts, E> {
        Ok(Parts(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Parts, A::Error> {
        let mut text = String::new();
        while let Some(Part(part)) = from.next_element()? {
            if !text.is_empty() && !part.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&part);
        }
        Ok(Parts(text))
    }
}

/// Text of a part; empty if it has none.
#[derive(Default)]
struct Part(String);

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Single)
    }
}

struct Single;

impl<'de> Visitor<'de> for Single {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a message")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Part, E> {
        Ok(Part(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Part, A::Error> {
        let mut part = Part::default();
        while let Some(key) = from.next_key::<String>()? {
            if key == "text" {
                part = from.next_value()?;
            } else {
                from.next_value::<IgnoredAny>()?;
            }
        }
        Ok(part)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Part, A::Error> {
        while from.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Part::default())
    }

    fn visit_unit<E: Error>(self) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Part, E> {
        Ok(Part::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_parts_are_joined_and_everything_else_is_skipped() {
        let json = r#"["Why?",{"asset_pointer":"file://x","size":[1,{"text":"no"}]},"",null,7,-7,0.5,true,["no"],{},
            {"content_type":"audio_transcription","text":"Who?"},{"type":"text","text":null},{"text":["no"]}]"#;
        assert_eq!(serde_json::from_str::<Parts>(json).unwrap(), Parts("Why?\n\nWho?".to_owned()));
        assert_eq!(serde_json::from_str::<Parts>("\"Why?\"").unwrap(), Parts("Why?".to_owned()));
        for json in ["7", "{}", "null", "[\"", "[{\"text\":}]"] {
            assert!(serde_json::from_str::<Parts>(json).is_err(), "{json}");
        }
    }
}
