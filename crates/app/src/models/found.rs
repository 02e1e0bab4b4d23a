//! Repositories of the hub, judged for this computer: sizes, speeds, and known draft heads.

use foretoken_library::{self as library, active_share, heads_for};
use foretoken_model::Family;

use super::memory;
use super::recommend::Computer;
use crate::ipc::{Estimate, FoundRepository, HeadOffer, Repository, RepositoryFile};

/// A quantisation and its bits per weight, with the scales, in a whole model.
struct Quantisation {
    name: &'static str,
    bits: f64,
}

/// Quantisations by which models are judged before their files are known: the first that a
/// repository has. The bits are those of Llama 3.1 8B, as llama.cpp's quantisation tool lists them.
const QUANTISATIONS: [Quantisation; 9] = [
    Quantisation { name: "Q4_K_M", bits: 4.89 },
    Quantisation { name: "Q4_K_S", bits: 4.67 },
    Quantisation { name: "Q4_0", bits: 4.66 },
    Quantisation { name: "MXFP4", bits: 4.6 },
    Quantisation { name: "Q5_K_M", bits: 5.7 },
    Quantisation { name: "Q6_K", bits: 6.56 },
    Quantisation { name: "Q8_0", bits: 8.5 },
    Quantisation { name: "BF16", bits: 16.0 },
    Quantisation { name: "F16", bits: 16.0 },
];

impl Computer {
    /// Judges a repository that a search found.
    pub fn found(&self, found: library::FoundRepository) -> FoundRepository {
        let library::FoundRepository { id, downloads, licence, gated, parameters, .. } = found;
        let estimate = parameters.and_then(|parameters| self.estimate(&id, parameters, &found.quantisations));
        let unsupported = found.architecture.filter(|name| !Family::is_supported(name));
        let (heads, quantisations) = (heads(&id), found.quantisations);
        FoundRepository {
            id,
            downloads,
            licence,
            gated,
            parameters,
            quantisations,
            estimate,
            heads,
            unsupported,
        }
    }

    /// Judges the models of a repository.
    pub fn repository(&self, repository: &library::Repository) -> Repository {
        let files = repository.files.iter().map(|file| self.file(repository, Some(&file.path), file.bytes));
        let folder = repository.safetensors.map(|bytes| self.file(repository, None, bytes));
        Repository {
            id: repository.id.clone(),
            licence: repository.licence.clone(),
            gated: repository.gated,
            files: files.chain(folder).collect(),
            vision_bytes: repository.vision.as_ref().map(|file| file.bytes),
            heads: heads(&repository.id),
        }
    }

    fn file(&self, repository: &library::Repository, path: Option<&str>, size_bytes: u64) -> RepositoryFile {
        let id = path.map_or_else(|| repository.id.clone(), |path| format!("{}:{path}", repository.id));
        let memory_bytes = memory::needed(size_bytes);
        RepositoryFile {
            file: path.map(str::to_owned),
            size_bytes,
            memory_bytes,
            fits: self.holds(memory_bytes),
            tokens_per_second: self.speed_of(&id, size_bytes),
            id,
        }
    }

    fn estimate(&self, id: &str, parameters: u64, quantisations: &[String]) -> Option<Estimate> {
        let known = QUANTISATIONS.iter().find(|known| quantisations.iter().any(|name| name == known.name))?;
        let size_bytes = (parameters as f64 * known.bits / 8.0) as u64;
        let memory_bytes = memory::needed(size_bytes);
        Some(Estimate {
            quantisation: known.name.to_owned(),
            size_bytes,
            memory_bytes,
            fits: self.holds(memory_bytes),
            tokens_per_second: self.speed_of(id, size_bytes),
        })
    }

    /// Returns the estimated tokens per second of a model without drafts.
    fn speed_of(&self, id: &str, size_bytes: u64) -> Option<f64> {
        let bytes = (size_bytes as f64 * active_share(id)) as u64;
        self.reading.filter(|_| bytes > 0).map(|reading| reading.tokens_per_second(bytes))
    }
}

fn heads(model: &str) -> Vec<HeadOffer> {
    let heads = heads_for(model);
    heads
        .map(|head| HeadOffer { kind: head.kind.to_owned(), repository: head.repository.to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use foretoken_forward::Bandwidth;

    use super::*;

    fn computer() -> Computer {
        let reading = Some(Bandwidth { bytes: 98_000_000, gb_s: 50.0, share: 0.8 });
        Computer { memory_bytes: 8_000_000_000, reading, ..Computer::default() }
    }

    fn found(id: &str, parameters: Option<u64>, quantisations: &[&str]) -> FoundRepository {
        let quantisations = quantisations.iter().map(|&name| name.to_owned()).collect();
        computer().found(library::FoundRepository {
            id: id.to_owned(),
            downloads: 1,
            licence: None,
            gated: false,
            parameters,
            architecture: Some("qwen3".to_owned()),
            quantisations,
        })
    }

    #[test]
    fn a_search_result_is_estimated_by_its_parameters_and_a_common_quantisation() {
        let dense = found("Qwen/Qwen3-8B-GGUF", Some(8_190_000_000), &["Q8_0", "Q4_K_M"]);
        let estimate = dense.estimate.unwrap();
        assert_eq!(estimate.quantisation, "Q4_K_M");
        assert!((4.9e9..5.1e9).contains(&(estimate.size_bytes as f64)) && estimate.fits, "{estimate:?}");
        assert!((7.5..8.5).contains(&estimate.tokens_per_second.unwrap()), "{estimate:?}");
        let kinds: Vec<_> = dense.heads.iter().map(|head| &*head.kind).collect();
        assert_eq!(kinds, ["EAGLE-3", "DFlash"]);
        assert_eq!(dense.unsupported, None);
        let experts = found("a/Some-30B-A3B-GGUF", Some(30_000_000_000), &["Q4_K_M"]).estimate.unwrap();
        assert!(!experts.fits && experts.tokens_per_second.unwrap() > 20.0, "{experts:?}");
        for unknown in [found("a/b", None, &["Q4_K_M"]), found("a/b", Some(7), &["IQ1_S"])] {
            assert_eq!((unknown.estimate, unknown.heads.len()), (None, 0));
        }
        // Sizes of strangers are only shown.
        found("a/b", Some(u64::MAX), &["F16"]);
    }

    #[test]
    fn an_architecture_that_does_not_run_is_named() {
        let other = library::FoundRepository {
            id: "a/b".to_owned(),
            downloads: 0,
            licence: None,
            gated: false,
            parameters: None,
            architecture: Some("falcon".to_owned()),
            quantisations: Vec::new(),
        };
        assert_eq!(computer().found(other).unsupported.as_deref(), Some("falcon"));
    }

    #[test]
    fn the_files_of_a_repository_have_sizes_and_speeds() {
        let repository = library::Repository {
            id: "unsloth/gpt-oss-20b-GGUF".to_owned(),
            revision: "a".to_owned(),
            licence: None,
            gated: false,
            files: vec![library::RemoteFile {
                path: "gpt-oss-20b-F16.gguf".to_owned(),
                bytes: 13_800_000_000,
            }],
            safetensors: Some(1_000),
            vision: Some(library::RemoteFile { path: "mmproj-F16.gguf".to_owned(), bytes: 9 }),
        };
        let Repository { files, vision_bytes, heads, .. } = computer().repository(&repository);
        assert_eq!(vision_bytes, Some(9));
        assert_eq!(files[0].id, "unsloth/gpt-oss-20b-GGUF:gpt-oss-20b-F16.gguf");
        assert!(!files[0].fits && (15.0..18.0).contains(&files[0].tokens_per_second.unwrap()), "{files:?}");
        assert_eq!((files[1].id.as_str(), files[1].file.as_deref()), ("unsloth/gpt-oss-20b-GGUF", None));
        assert_eq!(heads.len(), 2);
    }
}
