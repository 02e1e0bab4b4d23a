//! Draft heads on the hub, by the models that they draft for. `heads.json` lists them, with the
//! date on which their names were last compared with the hub.

use std::sync::LazyLock;

use serde::Deserialize;

use super::names::name_of;

/// A draft head on the hub.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KnownHead {
    /// Names of the model that it drafts for, as in the names of GGUF files: "qwen3-8b".
    targets: Vec<&'static str>,
    /// Kind, as docs/heads.md names it: "EAGLE-3".
    pub kind: &'static str,
    /// `owner/name` of a folder of safetensors.
    pub repository: &'static str,
    /// `None` if its number of parameters is not known before a download.
    pub(super) parameters: Option<u64>,
    /// `None` if the makers name none.
    pub(super) licence: Option<&'static str>,
}

#[derive(Deserialize)]
struct List {
    #[cfg_attr(not(test), expect(dead_code, reason = "for people who read the file"))]
    date: &'static str,
    heads: Vec<KnownHead>,
}

static LIST: LazyLock<List> = LazyLock::new(|| {
    let read = serde_json::from_str(include_str!("heads.json"));
    read.unwrap_or_else(|error| unreachable!("heads.json, which the tests read: {error}"))
});

/// Returns the known heads for `model`, a repository (`owner/name`) or a file of one
/// (`owner/name:file`), in any quantisation.
pub fn heads_for(model: &str) -> impl Iterator<Item = &'static KnownHead> {
    let name = name_of(model);
    known_heads().iter().filter(move |head| head.targets.iter().any(|target| is_named(&name, target)))
}

/// Returns all known heads.
pub(super) fn known_heads() -> &'static [KnownHead] {
    &LIST.heads
}

/// Returns whether `name` is `model`, perhaps behind an owner: "qwen_qwen3-8b" is "qwen3-8b".
fn is_named(name: &str, model: &str) -> bool {
    name.strip_suffix(model).is_some_and(|owner| owner.is_empty() || owner.ends_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::is_repository;

    fn kinds(model: &str) -> Vec<&'static str> {
        heads_for(model).map(|head| head.kind).collect()
    }

    #[test]
    fn heads_are_found_by_repositories_and_files_of_their_target() {
        let eight = ["EAGLE-3", "DFlash"];
        for model in [
            "Qwen/Qwen3-8B-GGUF",
            "bartowski/Qwen_Qwen3-8B-GGUF",
            "mradermacher/Qwen3-8B-i1-GGUF",
            "someone/Qwen3-8B-Q4_K_M-GGUF",
            "Qwen/Qwen3-8B",
            "unsloth/Qwen3-8B-GGUF:Q8_0/Qwen3-8B-UD-Q8_K_XL.gguf",
        ] {
            assert_eq!(kinds(model), eight, "{model}");
        }
        assert_eq!(kinds("unsloth/Qwen3.6-35B-A3B-MTP-GGUF"), ["DFlash"]);
        for other in ["Qwen/Qwen3-8B-Base-GGUF", "someone/MyQwen3-8B-GGUF", "qwen3-8b-gguf", "", "/", "-gguf"]
        {
            let expected: &[&str] = if other == "qwen3-8b-gguf" { &eight } else { &[] };
            assert_eq!(kinds(other), expected, "{other}");
        }
    }

    #[test]
    fn every_head_names_a_repository_a_known_kind_and_lower_case_targets() {
        assert!(LIST.date.len() == 10 && LIST.heads.len() > 30);
        for head in &LIST.heads {
            assert!(is_repository(head.repository), "{}", head.repository);
            assert!(["EAGLE-3", "DFlash", "DFlash 2", "DSpark", "assistant"].contains(&head.kind));
            assert!(!head.targets.is_empty());
            assert!(head.targets.iter().all(|target| *target == name_of(target)), "{:?}", head.targets);
        }
    }
}
