//! Embedding models: embeddings of texts equal those of transformers, from both file formats. Files
//! that are none are refused by name.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use candle_core::quantized::GgmlDType;
use candle_core::{Device, Tensor};
use foretoken_model::embedding::{TextEmbedder, TextUse};
use foretoken_model::error::Result;
use foretoken_model::{Error, ModelSource, ProblemKind};
use foretoken_senses::embedding::EmbeddingModel;
use foretoken_tests::{RandomEmbedder, repository};
use serde_json::{Value as Json, json};

/// Texts of `tests/goldens/embedding.py`.
fn texts() -> [String; 3] {
    let long = format!("the {}", "fox runs and sleeps ".repeat(20));
    ["the fox runs".to_owned(), "hens sleep; the fox does not".to_owned(), long]
}

fn goldens() -> HashMap<String, Tensor> {
    let path = repository().join("tests/goldens/embedding.safetensors");
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

fn open(path: &Path) -> Result<EmbeddingModel> {
    EmbeddingModel::open(path, "model")
}

/// Largest difference of two vectors of length 1.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Asserts that embeddings are those of transformers.
fn assert_golden(model: &EmbeddingModel, label: &str, within: f32) {
    let goldens = goldens();
    for (number, text) in texts().iter().enumerate() {
        let found = model.embed(text, TextUse::Any).unwrap();
        let tokens = goldens[&format!("{label} {number} tokens")].dims1().unwrap();
        assert_eq!((found.tokens, found.is_cut), (tokens, false), "{label}: {text}");
        let expected: Vec<f32> = goldens[&format!("{label} {number}")].to_vec1().unwrap();
        let off = difference(&found.vector, &expected);
        assert!(off < within, "{label}: {text}: off by {off}");
    }
}

#[test]
fn embeddings_are_those_of_transformers() {
    let folder = tempfile::tempdir().unwrap();
    for embedder in RandomEmbedder::all() {
        assert_golden(&open(&embedder.write_folder(folder.path())).unwrap(), embedder.label, 1e-5);
    }
}

#[test]
fn embeddings_from_gguf_are_those_of_transformers() {
    let folder = tempfile::tempdir().unwrap();
    for label in ["bert", "nomic_bert"] {
        let embedder = RandomEmbedder::new(label);
        assert_golden(&open(&embedder.write_gguf(folder.path(), GgmlDType::F32)).unwrap(), label, 1e-5);
        // Eight bits move an embedding a little.
        assert_golden(&open(&embedder.write_gguf(folder.path(), GgmlDType::Q8_0)).unwrap(), label, 0.02);
    }
}

/// Changes a JSON document of a folder.
fn change(folder: &Path, name: &str, change: impl FnOnce(&mut Json)) {
    let path = folder.join(name);
    let mut json = fs::read(&path).map_or(json!({}), |text| serde_json::from_slice(&text).unwrap());
    change(&mut json);
    fs::write(path, json.to_string()).unwrap();
}

#[test]
fn a_text_beyond_the_models_length_is_cut_and_prefixes_are_those_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = RandomEmbedder::new("bert").write_folder(folder.path());
    change(&path, "sentence_bert_config.json", |json| json["max_seq_length"] = json!(6));
    change(&path, "config_sentence_transformers.json", |json| {
        json["prompts"] = json!({"query": "fox ", "document": "hen "});
    });
    let model = open(&path).unwrap();
    assert_eq!((model.longest(), model.width(), model.name()), (6, 32, "model"));
    let embed = |text: &str, purpose| model.embed(text, purpose).unwrap();
    let cut = embed("the fox and the hen and the fox", TextUse::Any);
    assert_eq!((cut.tokens, cut.is_cut), (6, true));
    assert_eq!(cut.vector, embed("the fox and the", TextUse::Any).vector, "the last token stays");
    for (purpose, prefix) in [(TextUse::Query, "fox"), (TextUse::Passage, "hen"), (TextUse::Any, "")] {
        let with = embed("the a", purpose).vector;
        assert_eq!(with, embed(&format!("{prefix} the a"), TextUse::Any).vector, "{purpose:?}");
    }
    assert!(embed(&"fox ".repeat(1_000_000), TextUse::Any).is_cut);
    assert_eq!(embed("", TextUse::Any).tokens, 2);
}

#[test]
fn prefixes_of_well_known_models_follow_from_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = RandomEmbedder::new("bert").write_folder(folder.path());
    change(&path, "config.json", |json| json["_name_or_path"] = json!("intfloat/multilingual-e5-small"));
    let source = foretoken_model::EmbeddingSource::open(&path).unwrap();
    assert_eq!(source.config().prefixes.query, "query: ");
    assert_eq!(source.config().prefixes.passage, "passage: ");
    assert!(source.bytes() > 0);
}

#[test]
fn other_models_and_damaged_ones_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &Path| open(path).map(drop).unwrap_err().to_string();
    let with = |document: &str, key: &str, value: Json| {
        let path = RandomEmbedder::new("bert").write_folder(folder.path());
        change(&path, document, |json| json[key] = value);
        let found = message(&path);
        fs::remove_dir_all(&path).unwrap();
        found
    };
    for (document, key, value, expected) in [
        (
            "config.json",
            "model_type",
            json!("llama"),
            "is no embedding model that Foretoken runs: found llama",
        ),
        ("config.json", "hidden_size", json!(64), "the tensors that its settings imply"),
        ("config.json", "hidden_size", json!(1_u64 << 40), "numbers of a state"),
        ("config.json", "num_attention_heads", json!(0), "a number above 0 of attention heads"),
        ("config.json", "num_attention_heads", json!(5), "per attention head"),
        ("config.json", "num_hidden_layers", json!(3), "the tensors that its settings imply"),
        ("config.json", "num_hidden_layers", json!("two"), "a whole number for num_hidden_layers"),
        ("config.json", "hidden_act", json!("swish"), "found swish"),
        ("1_Pooling/config.json", "pooling_mode_max_tokens", json!(true), "pooling by mean or cls"),
        ("1_Pooling/config.json", "pooling_mode", json!("lasttoken"), "found lasttoken"),
        ("tokenizer.json", "model", json!({}), "the tokenizer of"),
    ] {
        let found = with(document, key, value);
        assert!(found.contains(expected), "{document} {key}: {found}");
    }
    let path = RandomEmbedder::new("bert").write_folder(folder.path());
    let dense = json!([{"type": "sentence_transformers.models.Dense"}]);
    fs::write(path.join("modules.json"), dense.to_string()).unwrap();
    assert!(message(&path).contains("the step sentence_transformers.models.Dense"));
    let path = RandomEmbedder::new("bert").write_folder(folder.path());
    fs::remove_file(path.join("tokenizer.json")).unwrap();
    assert!(message(&path).contains("there is no tokenizer.json"));
    let starter = repository().join("starter");
    let target = fs::read_dir(starter).unwrap().flatten().map(|entry| entry.path());
    let target = target.into_iter().find(|path| path.extension().is_some_and(|end| end == "gguf"));
    assert!(message(&target.unwrap()).contains("is no embedding model that Foretoken runs: found llama"));
}

#[test]
fn every_truncation_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = RandomEmbedder::new("bert").write_gguf(folder.path(), GgmlDType::F32);
    let whole = fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(997) {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(open(&path).is_err(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn an_embedding_model_is_no_target() {
    let folder = tempfile::tempdir().unwrap();
    let embedder = RandomEmbedder::new("bert");
    for path in [embedder.write_folder(folder.path()), embedder.write_gguf(folder.path(), GgmlDType::F32)] {
        let error = ModelSource::open(&path).map(drop).unwrap_err();
        assert_eq!(error.kind(), ProblemKind::EmbeddingModel, "{error}");
        assert!(matches!(error, Error::OnlyEmbeddings { .. }));
    }
}
