//! Lists and maps of a conversation in a file that are given up once they have more than one can have: of small things
//! a few bytes of JSON take many of memory.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Messages of a conversation in a file, all its branches counted.
pub const MOST: usize = 100_000;

/// A list of at most [`MOST`] things.
pub fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Bounded::<Vec<T>>(PhantomData))
}

/// A map of at most [`MOST`] things.
pub fn map<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, T>, D::Error> {
    from.deserialize_map(Bounded::<BTreeMap<_, T>>(PhantomData))
}

struct Bounded<C>(PhantomData<C>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<Vec<T>> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(one) = from.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::custom(format_args!("a list of more than {MOST}")));
            }
            list.push(one);
        }
        Ok(list)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<BTreeMap<String, T>> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map of at most {MOST}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, one)) = from.next_entry()? {
            if map.len() == MOST {
                return Err(A::Error::custom(format_args!("a map of more than {MOST}")));
            }
            map.insert(key, one);
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_can_be_are_read_and_one_more_is_refused() {
        #[derive(Deserialize)]
        struct Both {
            #[serde(deserialize_with = "list")]
            list: Vec<u32>,
            #[serde(deserialize_with = "map")]
            map: BTreeMap<String, u32>,
        }
        let json = |list: usize, map: usize| {
            let map: Vec<String> = (0..map).map(|key| format!("\"{key}\":7")).collect();
            format!(r#"{{"list":[{}],"map":{{{}}}}}"#, vec!["7"; list].join(","), map.join(","))
        };
        let read: Both = serde_json::from_str(&json(MOST, MOST)).unwrap();
        assert_eq!((read.list.len(), read.map.len()), (MOST, MOST));
        for (list, map) in [(MOST + 1, 0), (0, MOST + 1)] {
            let error = serde_json::from_str::<Both>(&json(list, map)).err().unwrap();
            assert!(error.to_string().contains("more than 100000"), "{error}");
        }
    }
}
