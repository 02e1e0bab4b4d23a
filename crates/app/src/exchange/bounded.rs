//! Lists and maps of limited length in imported files: small elements take few bytes of JSON but
//! much memory.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Most messages of an imported conversation, including all branches.
pub const MAX_ELEMENTS: usize = 100_000;

/// Reads a list of at most [`MAX_ELEMENTS`] elements.
pub fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Bounded::<Vec<T>>(PhantomData))
}

/// Reads a map of at most [`MAX_ELEMENTS`] entries.
pub fn map<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, T>, D::Error> {
    from.deserialize_map(Bounded::<BTreeMap<_, T>>(PhantomData))
}

struct Bounded<C>(PhantomData<C>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<Vec<T>> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX_ELEMENTS}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(one) = from.next_element()? {
            if list.len() == MAX_ELEMENTS {
                return Err(A::Error::custom(format_args!("a list of more than {MAX_ELEMENTS}")));
            }
            list.push(one);
        }
        Ok(list)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<BTreeMap<String, T>> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map of at most {MAX_ELEMENTS}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, one)) = from.next_entry()? {
            if map.len() == MAX_ELEMENTS {
                return Err(A::Error::custom(format_args!("a map of more than {MAX_ELEMENTS}")));
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
    fn lists_up_to_the_limit_are_read_and_longer_ones_refused() {
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
        let read: Both = serde_json::from_str(&json(MAX_ELEMENTS, MAX_ELEMENTS)).unwrap();
        assert_eq!((read.list.len(), read.map.len()), (MAX_ELEMENTS, MAX_ELEMENTS));
        for (list, map) in [(MAX_ELEMENTS + 1, 0), (0, MAX_ELEMENTS + 1)] {
            let error = serde_json::from_str::<Both>(&json(list, map)).err().unwrap();
            assert!(error.to_string().contains("more than 100000"), "{error}");
        }
    }
}
