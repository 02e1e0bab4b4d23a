//! Spelling suggestions for names.

/// Returns the name with the fewest letters to add, drop or change, if less than a third of
/// `wanted` changes.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let distance = |name: &str| strsim::levenshtein(&wanted, &name.to_lowercase());
    let (distance, name) = names.into_iter().map(|name| (distance(name), name)).min()?;
    (distance * 3 < wanted.chars().count().max(4)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
