//! Spelling suggestions for names.

/// Returns the name with the fewest letters to add, drop or change, if less than a third of
/// `wanted` changes.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let distance = |name: &str| edit_distance(&wanted, &name.to_lowercase());
    let (distance, name) = names.into_iter().map(|name| (distance(name), name)).min()?;
    (distance * 3 < wanted.chars().count().max(4)).then_some(name)
}

/// Levenshtein distance in characters, computed row by row.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_added_dropped_and_changed_letters() {
        for (a, b, expected) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("abcx", "abc", 1),
            ("abc", "abcx", 1),
            ("wörter", "worter", 1),
            ("ab", "ab", 0),
        ] {
            assert_eq!(edit_distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_typing_error_finds_its_name_and_an_unrelated_word_finds_none() {
        let names = ["starter", "starter-draft", "owner/name:file.gguf"];
        assert_eq!(nearest("startr", names), Some("starter"));
        assert_eq!(nearest("Starter-Darft", names), Some("starter-draft"));
        assert_eq!(nearest("ownr/name:file.gguf", names), Some("owner/name:file.gguf"));
        assert_eq!(nearest("llama", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("starter", []), None);
    }
}
