//! Values in imported files that may have another form than expected.

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

/// A value, or `Odd` for JSON of another form.
#[derive(Debug)]
pub enum Lenient<T> {
    Read(T),
    Odd,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(raw(from)?.map_or(Self::Odd, Self::Read))
    }
}

/// Reads an optional value; `None` for JSON of another form.
pub fn or_none<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(raw::<Option<T>, D>(from)?.flatten())
}

/// Returns a value; `None` for valid JSON of another form.
fn raw<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    let json = <&RawValue>::deserialize(from)?;
    match serde_json::from_str(json.get()) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_data() => Ok(None),
        Err(error) => Err(de::Error::custom(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_another_form_are_odd_and_the_rest_is_read() {
        #[derive(Deserialize)]
        struct Both {
            list: Vec<Lenient<u32>>,
            #[serde(default, deserialize_with = "or_none")]
            name: Option<String>,
        }
        let read = |json: &str| serde_json::from_str::<Both>(json);
        let both = read(r#"{"list":[1,"a",{"b":[2]},null,3],"name":7}"#).unwrap();
        let numbers: Vec<_> = both
            .list
            .iter()
            .map(|value| match value {
                Lenient::Read(number) => Some(*number),
                Lenient::Odd => None,
            })
            .collect();
        assert_eq!((numbers, both.name), (vec![Some(1), None, None, None, Some(3)], None));
        assert_eq!(read(r#"{"list":[],"name":"a"}"#).unwrap().name.as_deref(), Some("a"));
        assert_eq!(read(r#"{"list":[]}"#).unwrap().name, None);
        assert!(read(r#"{"list":[{]}"#).is_err());
    }
}
