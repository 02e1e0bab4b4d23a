//! Tests of versions, tensor types, split models and the time to open a file.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::format::{Format, random_blocks};
use crate::{ModelSource, ProblemKind};
use foretoken_testkit::{Gguf, VOCABULARY, ramp, text};

fn tiny_bytes() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    fs::read(Gguf::tiny().write(folder.path())).unwrap()
}

fn message(path: &Path) -> String {
    let message = ModelSource::open(path).err().expect("an error").to_string();
    assert!(!message.contains('\n'), "one sentence: {message}");
    message
}

fn message_of_bytes(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    message(&path)
}

#[test]
fn versions_2_and_3_are_read_and_others_are_refused() {
    let mut bytes = tiny_bytes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for version in [2, 3] {
        bytes[4] = version;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(ModelSource::open(&path).unwrap().config().unwrap().vocabulary, VOCABULARY);
    }
    for (version, expected) in [
        ([1, 0, 0, 0], "version 1, which is obsolete"),
        ([4, 0, 0, 0], "version 4"),
        ([0, 0, 0, 3], "version 3 in big-endian byte order"),
        ([0, 0, 0, 0], "version 0"),
    ] {
        bytes[4..8].copy_from_slice(&version);
        let message = message_of_bytes(&bytes);
        assert!(
            message.contains("expected a GGUF file of version 2 or 3") && message.contains(expected),
            "{message}"
        );
    }
}

#[test]
fn every_type_is_read() {
    for format in Format::ALL {
        let folder = tempfile::tempdir().unwrap();
        let mut gguf = Gguf::tiny();
        gguf.tensors.clear();
        let dtype = format.candle().unwrap_or(GgmlDType::F32);
        gguf.add("some.weight", &[2, 256], dtype);
        let path = gguf.write(folder.path());
        let mut bytes = fs::read(&path).unwrap();
        if format.candle().is_none() {
            bytes.truncate(bytes.len() - 2 * 256 * 4);
            let mut random = StdRng::seed_from_u64(1);
            bytes.extend(random_blocks(format, 0.5, 2 * 256, &mut random));
            set_type(&mut bytes, b"some.weight", 2, format.number());
            fs::write(&path, &bytes).unwrap();
        }
        let (_, tensors) = super::open(&path).unwrap();
        assert_eq!(tensors.find("some.weight").unwrap().format, format);
        let read = tensors.load("some.weight", &Device::Cpu).unwrap();
        assert_eq!((read.dtype(), read.shape().dims()), (dtype, [2, 256].as_slice()));
        let read = read.dequantize(&Device::Cpu).unwrap();
        if format.candle().is_some() {
            let error = (read - ramp(&[2, 256])).unwrap().sqr().unwrap();
            assert!(error.mean_all().unwrap().to_scalar::<f32>().unwrap() < 0.05, "{format:?}");
        } else {
            let start = bytes.len() - 512 / format.inputs() * format.stored();
            let read: Vec<f32> = read.flatten_all().unwrap().to_vec1().unwrap();
            assert_eq!(read, format.dequantise(&bytes[start..]), "{format:?}");
        }
    }
}

/// Changes the type of a tensor with `dimensions` dimensions in a file.
fn set_type(file: &mut [u8], name: &[u8], dimensions: usize, number: u32) {
    let at = file.windows(name.len()).position(|window| window == name).unwrap() + name.len();
    // The name is followed by the number of dimensions, their sizes and the type.
    let at = at + 4 + 8 * dimensions;
    file[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// The tiny file with another type for `output_norm.weight`.
fn with_type(number: u32) -> Vec<u8> {
    let mut file = tiny_bytes();
    set_type(&mut file, b"output_norm.weight", 1, number);
    file
}

#[test]
fn a_type_that_cannot_be_read_is_named_with_its_tensor() {
    for (number, name) in [(15, "Q8_K"), (36, "IQ4_NL_4_4"), (24, "I8"), (99, "unknown type 99")] {
        let message = message_of_bytes(&with_type(number));
        assert!(message.contains("expected output_norm.weight of a supported type"), "{message}");
        assert!(message.contains(&format!("found {name}. Choose another file of this model.")), "{message}");
    }
}

#[test]
fn rows_that_are_no_whole_blocks_are_refused_in_a_sentence() {
    // 32 numbers: blocks of 256 do not fit.
    for format in Format::ALL.into_iter().filter(|format| format.inputs() > 32) {
        let message = message_of_bytes(&with_type(format.number()));
        let expected =
            format!("a shape for output_norm.weight that fits its type {}, found [32]", format.name());
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn a_tensor_listed_twice_is_refused() {
    let mut file = tiny_bytes();
    let (name, other) = (b"blk.0.attn_k.weight", b"blk.0.attn_q.weight");
    let at = file.windows(name.len()).position(|window| window == name).unwrap();
    file[at..at + name.len()].copy_from_slice(other);
    assert!(message_of_bytes(&file).contains("each tensor once, found blk.0.attn_q.weight twice"));
}

/// The tiny model in three files, the first with the keys and no tensors.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let whole = Gguf::tiny();
    let tensors = whole.tensors.len();
    let mut rest = whole.tensors.into_iter();
    let mut paths = Vec::new();
    for number in 0..3u16 {
        let mut part = Gguf { values: Default::default(), tensors: Default::default() };
        if number == 0 {
            part.values = Gguf::tiny().values;
        } else {
            part.tensors = rest.by_ref().take(6).collect();
        }
        part.set("split.no", Value::U16(number));
        part.set("split.count", Value::U16(3));
        part.set("split.tensors.count", Value::I32(tensors as i32));
        let path = folder.join(format!("tiny-Q8_0-{:05}-of-00003.gguf", number + 1));
        fs::rename(part.write(folder), &path).unwrap();
        paths.push(path);
    }
    paths
}

#[test]
fn a_model_in_several_files_opens_from_any_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let whole = ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap();
    let expected = whole.weights(&Device::Cpu).unwrap().vector("output_norm.weight").unwrap();
    for part in parts(folder.path()) {
        let source = ModelSource::open(&part).unwrap();
        assert_eq!(source.config().unwrap(), whole.config().unwrap());
        let found = source.weights(&Device::Cpu).unwrap().vector("output_norm.weight").unwrap();
        assert_eq!(found.to_vec1::<f32>().unwrap(), expected.to_vec1::<f32>().unwrap());
        assert_eq!(source.describe().parameters, whole.describe().parameters);
        assert!(source.tokenizer().is_ok());
    }
}

#[test]
fn a_missing_or_foreign_part_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let paths = parts(folder.path());
    let kept = fs::read(&paths[1]).unwrap();
    fs::remove_file(&paths[1]).unwrap();
    let missing = message(&paths[0]);
    assert!(
        missing.contains("all 3 parts") && missing.contains("no tiny-Q8_0-00002-of-00003.gguf"),
        "{missing}"
    );
    fs::copy(&paths[2], &paths[1]).unwrap();
    assert!(message(&paths[0]).contains("part 1 of 3"));
    fs::write(&paths[1], &kept[..kept.len() - 200]).unwrap();
    assert!(message(&paths[0]).contains("00002-of-00003.gguf is incomplete"));
    fs::write(&paths[1], kept).unwrap();
    let alone = folder.path().join("renamed.gguf");
    fs::copy(&paths[0], &alone).unwrap();
    assert!(message(&alone).contains("a name that ends in -00001-of-00003.gguf"));
    let mut fewer = Gguf { values: Default::default(), tensors: Default::default() };
    for (key, value) in [("split.no", 2), ("split.count", 3), ("split.tensors.count", 11)] {
        fewer.set(key, Value::U16(value));
    }
    fs::rename(fewer.write(folder.path()), &paths[2]).unwrap();
    assert!(message(&paths[0]).contains("11 tensors in 3 parts, found 6"));
}

#[test]
fn opening_four_gigabytes_takes_a_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut gguf = Gguf::tiny();
    let tokens: Vec<String> = (0..150_000).map(|n| format!("token{n}")).collect();
    gguf.set("tokenizer.ggml.merges", Value::Array(tokens.iter().map(|token| text(token)).collect()));
    let path = gguf.write(folder.path());
    // A sparse file: the rest takes no room on the disk.
    File::options().write(true).open(&path).unwrap().set_len(4 << 30).unwrap();
    let start = Instant::now();
    let source = ModelSource::open(&path).unwrap();
    let taken = start.elapsed();
    assert!(taken < Duration::from_millis(100), "{taken:?}");
    assert_eq!(source.describe().bytes, 4 << 30);
}

/// Bytes of the offset of the tensor `name` in a header.
fn offset_of(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    let at = bytes.windows(name.len()).position(|window| window == name.as_bytes()).unwrap() + name.len();
    let dimensions = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let start = at + 4 + 8 * dimensions + 4;
    start..start + 8
}

#[test]
fn tensors_that_overlap_are_refused() {
    let mut bytes = tiny_bytes();
    let [norm, embedding] = ["output_norm.weight", "token_embd.weight"].map(|name| offset_of(&bytes, name));
    let offset = bytes[embedding].to_vec();
    bytes[norm].copy_from_slice(&offset);
    let message = message_of_bytes(&bytes);
    assert!(message.contains("expected tensors that do not overlap"), "{message}");
}

#[test]
fn headers_with_more_keys_or_tensors_than_any_model_has_are_refused() {
    for (tensors, keys) in [(0, 10_001_u64), (1_000_000, 0)] {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend([tensors, keys].map(u64::to_le_bytes).as_flattened());
        bytes.resize(32 << 20, 0);
        let message = message_of_bytes(&bytes);
        let expected = format!("{keys} keys and {tensors} tensors");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn a_git_lfs_pointer_is_named_as_one() {
    const CONFIG: &str = r#"{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "hidden_size": 32,
        "intermediate_size": 64, "num_attention_heads": 4, "vocab_size": 261, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 64, "rope_theta": 10000.0}"#;
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, pointer).unwrap();
    let error = ModelSource::open(&path).err().unwrap();
    assert_eq!(error.kind(), ProblemKind::LfsPointer);
    assert!(error.to_string().contains("is a Git LFS pointer, which only names a file"), "{error}");
    // Any file of a folder may be one.
    for name in ["config.json", "model.safetensors"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), CONFIG).unwrap();
        std::fs::write(folder.path().join(name), pointer).unwrap();
        let error = ModelSource::open(folder.path()).err().unwrap();
        assert_eq!(error.kind(), ProblemKind::LfsPointer, "{name}: {error}");
    }
}
