//! Real weights in Hugging Face form: the starter model as a folder of safetensors against its GGUF
//! file.

use std::path::Path;

use foretoken_forward::Want;
use foretoken_forward::tree::TokenTree;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Special};
use foretoken_tests::{loaded, starter_target, write_starter_folder};

const TEXT: &str = "Once upon a time there was a little fox who lived near the river. Every morning the fox went to \
                    the water to drink, and every evening she came home to her family.";

/// Writes the starter target to `folder` and opens it.
fn starter_in(folder: &Path) -> ModelSource {
    write_starter_folder("starter-target", folder);
    ModelSource::open(folder).unwrap()
}

/// Logit rows over `tokens`.
fn rows(source: &ModelSource, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    let mut model = loaded(source);
    let pass = model.run(&TokenTree::chain(tokens.to_vec()), &Want::all_rows()).unwrap();
    let logits = pass.logits();
    (0..tokens.len()).map(|row| logits.row(row).logits().unwrap().to_vec()).collect()
}

/// Mean negative log-likelihood of `tokens`, in nats per token.
fn surprise(rows: &[Vec<f32>], tokens: &[TokenId]) -> f32 {
    let of = |(row, &token): (&Vec<f32>, &TokenId)| {
        let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = row.iter().map(|logit| (logit - highest).exp()).sum();
        highest + sum.ln() - row[token as usize]
    };
    rows.iter().zip(&tokens[1..]).map(of).sum::<f32>() / (tokens.len() - 1) as f32
}

#[test]
fn a_safetensors_folder_gives_the_same_logits_as_its_gguf_file() {
    let folder = tempfile::tempdir().unwrap();
    let (source, gguf) = (starter_in(folder.path()), starter_target());
    let tokens = gguf.tokenizer().unwrap().encode(TEXT, Special::Ignore).unwrap();
    assert_eq!(source.tokenizer().unwrap().encode(TEXT, Special::Ignore).unwrap(), tokens);
    let (found, expected) = (rows(&source, &tokens), rows(&gguf, &tokens));
    // The weights are equal; only those of the GGUF file have activations rounded to eight bits.
    // With the heads' dimensions paired as in GGUF files, the results would be unrelated.
    let (found, expected) = (surprise(&found, &tokens), surprise(&expected, &tokens));
    assert!((found - expected).abs() < 0.01 * expected, "{found} and {expected} nats a token");
    // A uniform guess costs ln 4096 = 8.3.
    assert!(found < 5.0, "{found} nats a token");
}

#[test]
fn a_safetensors_folder_has_the_same_description_as_its_gguf_file() {
    let folder = tempfile::tempdir().unwrap();
    let (source, gguf) = (starter_in(folder.path()), starter_target());
    let (found, expected) = (source.config().unwrap(), gguf.config().unwrap());
    let shape = |config: &foretoken_model::ModelConfig| {
        (
            config.depth(),
            config.heads,
            config.kv_heads(),
            config.head_size(),
            config.hidden,
            config.vocabulary,
        )
    };
    assert_eq!(shape(found), shape(expected));
    let (found, expected) = (source.describe(), gguf.describe());
    assert_eq!(found.parameters, expected.parameters);
    assert_eq!(found.quantisation.as_deref(), Some("F32"));
    let (found, expected) = (found.tokenizer.unwrap(), expected.tokenizer.unwrap());
    assert_eq!((found.kind.as_str(), found.vocabulary), ("byte-level BPE", expected.vocabulary));
    assert_eq!(found.special.ends[0].text, "<|im_end|>");
}

#[test]
fn a_folder_in_the_hubs_cache_is_named_after_its_repository() {
    let cache = tempfile::tempdir().unwrap();
    let revision = cache.path().join("models--owner--Tiny-Stories-8M/snapshots/0123456789abcdef0123");
    assert_eq!(starter_in(&revision).describe().name, "Tiny Stories 8M");
}
