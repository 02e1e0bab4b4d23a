//! Copies of the starter draft with one thing changed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{Content, Value, write};
use tempfile::TempDir;

/// Path of the starter draft.
pub fn starter_draft() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../starter/starter-draft-Q8_0.gguf")
}

/// A temporary folder for files of a test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes the starter draft with other metadata and returns its path.
    pub fn model(&self, name: &str, change: impl FnOnce(&mut HashMap<String, Value>)) -> String {
        let mut file = File::open(starter_draft()).unwrap();
        let mut content = Content::read(&mut file).unwrap();
        let mut tensors: Vec<(String, QTensor)> = Vec::new();
        for name in content.tensor_infos.keys() {
            let tensor = content.tensor(&mut file, name, &Device::Cpu).unwrap();
            tensors.push((name.clone(), tensor));
        }
        change(&mut content.metadata);
        let values: Vec<_> = content.metadata.iter().map(|(key, v)| (key.as_str(), v)).collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
        let path = self.0.path().join(name);
        write(&mut File::create(&path).unwrap(), &values, &tensors).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The starter draft without a chat template.
    pub fn without_template(&self) -> String {
        self.model("no-template.gguf", |values| {
            values.remove("tokenizer.chat_template").unwrap();
        })
    }

    /// The starter draft with other texts for all tokens.
    pub fn with_another_vocabulary(&self) -> String {
        self.model("other-vocabulary.gguf", |values| {
            let Some(Value::Array(tokens)) = values.get_mut("tokenizer.ggml.tokens") else { panic!() };
            for (index, token) in tokens.iter_mut().enumerate() {
                *token = Value::String(if index == 0 { "<|begin|>".into() } else { format!("qx{index}") });
            }
            values.insert("tokenizer.ggml.merges".into(), Value::Array(Vec::new()));
        })
    }

    /// The starter draft with another name for its first token.
    pub fn with_a_renamed_token(&self) -> String {
        self.model("renamed-token.gguf", |values| {
            let Some(Value::Array(tokens)) = values.get_mut("tokenizer.ggml.tokens") else { panic!() };
            tokens[0] = Value::String("<|begin|>".into());
        })
    }

    /// The tokenizer of the starter draft with one more special token.
    pub fn with_a_new_special_token(&self) -> String {
        let mut file = File::open(starter_draft()).unwrap();
        let mut values = Content::read(&mut file).unwrap().metadata;
        for (key, value) in [("tokens", Value::String("<tool>".into())), ("token_type", Value::I32(3))] {
            match values.get_mut(&format!("tokenizer.ggml.{key}")) {
                Some(Value::Array(list)) => list.push(value),
                other => panic!("{other:?}"),
            }
        }
        let values: Vec<_> = values.iter().map(|(key, v)| (key.as_str(), v)).collect();
        let path = self.0.path().join("new-special-token.gguf");
        write(&mut File::create(&path).unwrap(), &values, &[]).unwrap();
        path.to_str().unwrap().to_owned()
    }
}
