//! Draft heads on the hub, by the models that they draft for. `heads.json` lists them, with the
//! date on which their names were last compared with the hub.

use std::sync::LazyLock;

use serde::Deserialize;

use super::families::FAMILIES;
use super::{CatalogueFamily, CatalogueModel, model_of};

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
    parameters: Option<u64>,
    /// `None` if the makers name none.
    licence: Option<&'static str>,
}

#[derive(Deserialize)]
struct List {
    #[cfg_attr(not(test), expect(dead_code, reason = "for people who read the file"))]
    date: &'static str,
    heads: Vec<KnownHead>,
}

/// A head of known size as a model of its target's family.
struct OfFamily {
    family: &'static str,
    model: CatalogueModel,
}

static LIST: LazyLock<List> =
    LazyLock::new(|| serde_json::from_str(include_str!("heads.json")).expect("heads.json has heads"));

static OF_FAMILIES: LazyLock<Vec<OfFamily>> = LazyLock::new(|| {
    let heads = FAMILIES.iter().flat_map(|family| LIST.heads.iter().map(move |head| (family, head)));
    heads.filter_map(|(family, head)| head.in_family(family)).collect()
});

/// Returns the known heads for `model`, a repository (`owner/name`) or a file of one
/// (`owner/name:file`), in any quantisation.
pub fn heads_for(model: &str) -> impl Iterator<Item = &'static KnownHead> {
    let name = name_of(model);
    LIST.heads.iter().filter(move |head| head.targets.iter().any(|target| is_named(&name, target)))
}

impl CatalogueFamily {
    /// Returns the heads of known size, each for one of the family's models.
    pub fn heads(&self) -> impl Iterator<Item = &'static CatalogueModel> {
        let id = self.id;
        OF_FAMILIES.iter().filter(move |head| head.family == id).map(|head| &head.model)
    }
}

impl KnownHead {
    fn in_family(&self, family: &CatalogueFamily) -> Option<OfFamily> {
        let parameters = self.parameters?;
        let mut models = family.targets.iter().chain(family.drafts);
        let target = models.find(|model| {
            let name = model.file.map(model_of).unwrap_or_default();
            self.targets.contains(&name.as_str())
        })?;
        let name = target.label.split(" · ").next().unwrap_or_default();
        let model = CatalogueModel {
            // Made once and kept, like the other labels.
            label: format!("{name} head · {}", self.kind).leak(),
            repository: self.repository,
            file: None,
            // 16 bits a weight.
            bytes: 2 * parameters,
            parameters,
            active: parameters,
            on_disk: 0,
            licence: self.licence.unwrap_or("unknown"),
            gated: false,
            ran: false,
        };
        Some(OfFamily { family: family.id, model })
    }
}

/// Returns the model part of a name: "qwen_qwen3-8b" of "bartowski/Qwen_Qwen3-8B-GGUF".
pub(super) fn name_of(model: &str) -> String {
    if model.to_ascii_lowercase().ends_with(".gguf") {
        return model_of(model);
    }
    let mut name = model_of(model);
    // "i1" marks quantisations by an importance matrix, "mtp" files with the model's own head.
    for mark in ["-gguf", "-i1", "-mtp"] {
        if let Some(rest) = name.strip_suffix(mark) {
            name = model_of(rest);
        }
    }
    name
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

    #[test]
    fn a_head_of_known_size_is_listed_in_its_targets_family() {
        let family = |id| FAMILIES.iter().find(|family| family.id == id).unwrap();
        let labels: Vec<_> = family("qwen3").heads().map(|head| head.label).collect();
        assert_eq!(labels.len(), 6);
        assert!(labels.contains(&"Qwen3 14B head · EAGLE-3"), "{labels:?}");
        let labels: Vec<_> = family("gemma-4").heads().map(|head| head.label).collect();
        let expected =
            ["Gemma 4 E2B head · assistant", "Gemma 4 12B head · assistant", "Gemma 4 31B head · assistant"];
        assert_eq!(labels, expected);
        assert_eq!(OF_FAMILIES.iter().filter(|head| head.family == "gpt-oss").count(), 0);
    }
}
