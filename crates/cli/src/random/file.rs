//! Generates the files of a model with random weights: the target, and its first layers as a draft.
//! The same model always has the same bytes, so existing files are used again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use candle_core::quantized::QTensor;
use candle_core::{Device, Tensor as Numbers};
use foretoken_model::format::{Format, random_blocks};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::gguf::{self, Value, aligned};
use super::latent::Latent;
use super::mixture::bytes;
use super::model::RandomModel;
use super::shape::{DRAFT_LAYERS, EVERY, LINEAR, Shape, TAPS};
use super::tensor::{Tensor, Values};
use crate::error::{Error, Result};
use crate::output;

/// Size of the pool of random numbers, quantised once per format and deviation; tensors are
/// assembled from [`RUN`]s of it.
const POOL: usize = 1 << 20;

/// Numbers copied from one random position of the pool: the largest block of any format.
const RUN: usize = 256;

/// Bytes between two progress messages.
const PROGRESS_INTERVAL: u64 = 1 << 30;

/// Paths of a model's two files.
pub struct Pair {
    pub target: PathBuf,
    /// `None` for a target with an MTP block.
    pub draft: Option<PathBuf>,
    /// Size of the target's file.
    pub bytes: u64,
}

/// Generates the files that are missing in `folder`.
///
/// # Errors
/// `Error::NoRoom` if the disk is full, `Error::Write` for other errors of writing.
pub fn make(model: RandomModel, folder: &Path) -> Result<Pair> {
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let mut pools = Pools::default();
    let mut one = |role: &str, layers| {
        let path = folder.join(format!("random-{}-{}{role}.gguf", model.shape.name, model.weights.name()));
        let plan = Plan::new(model, layers);
        plan.bring_to(&path, &mut pools)?;
        Ok::<_, Error>((path, plan.bytes()))
    };
    let (target, bytes) = one("", model.shape.layers)?;
    let draft = match model.shape.recurrence {
        Some(_) => None,
        None => Some(one("-draft", DRAFT_LAYERS)?.0),
    };
    Ok(Pair { target, draft, bytes })
}

/// Contents of a file to generate.
struct Plan {
    head: Vec<u8>,
    tensors: Vec<Tensor>,
}

impl Plan {
    fn new(model: RandomModel, layers: usize) -> Self {
        let tensors = model.shape.tensors(model.weights, layers);
        Self { head: gguf::head(&keys(model, layers), &tensors), tensors }
    }

    /// The file's size, known in advance.
    fn bytes(&self) -> u64 {
        let tensors: usize = self.tensors.iter().map(|tensor| aligned(tensor.bytes())).sum();
        (self.head.len() + tensors) as u64
    }

    /// Generates the file if it is missing. It is written under another name and then renamed, so a
    /// file under its final name is complete. Two programs doing this at once write the same bytes.
    fn bring_to(&self, path: &Path, pools: &mut Pools) -> Result<()> {
        if self.is_at(path) {
            return Ok(());
        }
        output::note(format_args!("generating {} ({} MB)", path.display(), self.bytes() / 1_000_000));
        let part = path.with_extension("gguf.part");
        let written = self.write(&part, pools).and_then(|()| fs::rename(&part, path));
        written.map_err(|source| {
            let _ = fs::remove_file(&part);
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Error::NoRoom { path: path.to_owned(), needed: self.bytes() }
                }
                _ => Error::Write { path: path.to_owned(), source },
            }
        })
    }

    /// Returns whether the complete file exists: its size and its head, which contains the recipe
    /// of the weights, are compared.
    fn is_at(&self, path: &Path) -> bool {
        let Ok(mut file) = File::open(path) else { return false };
        let mut head = vec![0; self.head.len()];
        file.metadata().is_ok_and(|metadata| metadata.len() == self.bytes())
            && file.read_exact(&mut head).is_ok()
            && head == self.head
    }

    fn write(&self, path: &Path, pools: &mut Pools) -> io::Result<()> {
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        file.write_all(&self.head)?;
        let mut written = self.head.len() as u64;
        for tensor in &self.tensors {
            pools.write(tensor, &mut file)?;
            let filling = aligned(tensor.bytes()) - tensor.bytes();
            file.write_all(&vec![0; filling])?;
            let before = written / PROGRESS_INTERVAL;
            written += aligned(tensor.bytes()) as u64;
            if written / PROGRESS_INTERVAL > before {
                output::note(format_args!("{} of {} MB", written / 1_000_000, self.bytes() / 1_000_000));
            }
        }
        file.into_inner()?.set_len(written)
    }
}

/// Quantised random numbers by format and by the bits of their deviation.
#[derive(Default)]
struct Pools(HashMap<(Format, u32), Vec<u8>>);

impl Pools {
    /// Writes a tensor's bytes; a random tensor consists of runs from its pool, at positions
    /// derived from its name.
    fn write(&mut self, tensor: &Tensor, out: &mut impl Write) -> io::Result<()> {
        let deviation = match tensor.values {
            Values::Constant(value) => return out.write_all(&value.to_le_bytes().repeat(tensor.numbers())),
            Values::Random { deviation } => deviation,
        };
        let pool = match self.0.entry((tensor.format, deviation.to_bits())) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(pool(tensor.format, deviation).map_err(io::Error::other)?),
        };
        let run = bytes(tensor.format, RUN);
        let mut generator = StdRng::seed_from_u64(seed(&tensor.name));
        let mut left = tensor.bytes();
        while left > 0 {
            let start = generator.random_range(0..POOL / RUN) * run;
            let length = run.min(left);
            out.write_all(&pool[start..start + length])?;
            left -= length;
        }
        Ok(())
    }
}

/// [`POOL`] uniform numbers around 0; for a format that cannot be quantised here, random blocks of
/// it.
fn pool(format: Format, deviation: f32) -> candle_core::Result<Vec<u8>> {
    let mut generator = StdRng::seed_from_u64(seed("pool"));
    let Some(dtype) = format.candle() else {
        return Ok(random_blocks(format, deviation, POOL, &mut generator));
    };
    let most = deviation * 3f32.sqrt();
    let numbers: Vec<f32> = (0..POOL).map(|_| generator.random_range(-most..most)).collect();
    let numbers = Numbers::from_vec(numbers, POOL, &Device::Cpu)?;
    Ok(QTensor::quantize(&numbers, dtype)?.data()?.into_owned())
}

/// FNV-1a.
fn seed(name: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Metadata of the file with the first `layers` layers.
fn keys(model: RandomModel, layers: usize) -> Vec<(String, Value)> {
    let RandomModel { shape, weights } = model;
    let number = |value: usize| Value::Number(value as u32);
    let end = number(shape.vocabulary - 1);
    let general = [
        ("architecture", Value::Text(shape.architecture().to_owned())),
        ("name", Value::Text(format!("random {model}"))),
        ("description", Value::Text(Shape::recipe())),
        ("file_type", Value::Number(weights.file_type())),
        ("quantization_version", Value::Number(2)),
    ];
    let llama = [
        ("vocab_size", number(shape.vocabulary)),
        ("context_length", number(shape.context)),
        ("embedding_length", number(shape.hidden)),
        ("feed_forward_length", number(shape.latent.map_or(shape.intermediate, |latent| latent.dense))),
        // `block_count` includes the MTP block.
        ("block_count", number(layers + usize::from(shape.recurrence.is_some()))),
        ("attention.head_count", number(shape.heads)),
        ("attention.head_count_kv", number(shape.kv_heads)),
        ("attention.layer_norm_rms_epsilon", Value::Float(1e-5)),
        ("rope.dimension_count", number(shape.rope_dim())),
    ];
    let tokenizer = [
        ("model", Value::Text("gpt2".to_owned())),
        ("pre", Value::Text("gpt-2".to_owned())),
        ("tokens", Value::Texts(tokens(shape.vocabulary))),
        ("token_type", Value::Numbers(token_types(shape.vocabulary))),
        ("merges", Value::Texts(vec!["t h".to_owned()])),
        ("add_bos_token", Value::Flag(false)),
        ("bos_token_id", end.clone()),
        ("eos_token_id", end),
    ];
    let named = |group: &str, (key, value): (&str, Value)| (format!("{group}.{key}"), value);
    let general = general.into_iter().map(|pair| named("general", pair));
    let experts = shape.experts.map(|experts| {
        [
            ("attention.key_length", number(shape.head_size)),
            (
                "attention.value_length",
                number(shape.latent.map_or(shape.head_size, |latent| latent.kv_lora_rank)),
            ),
            ("attention.sliding_window", number(if experts.architecture == "gpt-oss" { 128 } else { 0 })),
            ("expert_count", number(experts.count)),
            ("expert_used_count", number(experts.top_k)),
            ("expert_feed_forward_length", number(shape.intermediate)),
        ]
    });
    let recurrence = shape.recurrence.map(|recurrence| {
        [
            ("attention.key_length", number(shape.head_size)),
            ("attention.value_length", number(shape.head_size)),
            ("rope.freq_base", Value::Float(1e7)),
            ("rope.dimension_sections", Value::Numbers(vec![11, 11, 10, 0])),
            ("full_attention_interval", number(EVERY)),
            ("nextn_predict_layers", number(1)),
            ("ssm.conv_kernel", number(TAPS)),
            ("ssm.state_size", number(LINEAR)),
            ("ssm.group_count", number(recurrence.keys)),
            ("ssm.time_step_rank", number(recurrence.values)),
            ("ssm.inner_size", number(recurrence.values * LINEAR)),
        ]
    });
    let latent = shape.latent.map(|latent| {
        const SIGMOID: usize = 2;
        [
            ("attention.kv_lora_rank", number(latent.kv_lora_rank)),
            ("attention.q_lora_rank", number(latent.q_lora_rank)),
            ("attention.key_length_mla", number(latent.qk_nope_head_dim + shape.rope_dim())),
            ("attention.value_length_mla", number(latent.value)),
            ("leading_dense_block_count", number(Latent::FIRST)),
            ("expert_shared_count", number(1)),
            ("expert_weights_norm", Value::Flag(true)),
            ("expert_weights_scale", Value::Float(1.8)),
            ("expert_gating_func", number(SIGMOID)),
        ]
    });
    let llama = llama.into_iter().chain(experts.into_iter().flatten());
    let llama = llama.chain(recurrence.into_iter().flatten()).chain(latent.into_iter().flatten());
    let llama = llama.map(|pair| named(shape.architecture(), pair));
    general.chain(llama).chain(tokenizer.into_iter().map(|pair| named("tokenizer.ggml", pair))).collect()
}

/// Vocabulary: the bytes as in byte-level BPE, one merged pair, filler tokens, and an end-of-text
/// token.
fn tokens(vocabulary: usize) -> Vec<String> {
    let printable = |byte: &u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut beyond = 0x100..;
    let letter = |byte| if printable(&byte) { Some(byte) } else { beyond.next() };
    let letters = (0..0x100).filter_map(letter).filter_map(char::from_u32).map(String::from);
    let mut tokens: Vec<String> = letters.chain(["th".to_owned()]).collect();
    tokens.extend((tokens.len()..vocabulary - 1).map(|word| format!("\u{120}w{word}")));
    tokens.push("<|end|>".to_owned());
    tokens
}

fn token_types(vocabulary: usize) -> Vec<i32> {
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    let mut types = vec![NORMAL; vocabulary - 1];
    types.push(CONTROL);
    types
}

#[cfg(test)]
mod tests {
    use foretoken_model::ModelSource;

    use super::*;
    use crate::random::mixture::Weights;
    use crate::random::shape::{Experts, Recurrence, SHAPES};

    fn tiny() -> RandomModel {
        "tiny:Q4_K_M".parse().unwrap()
    }

    #[test]
    fn a_file_has_the_size_that_was_predicted_and_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let pair = make(tiny(), folder.path()).unwrap();
        assert_eq!(fs::metadata(&pair.target).unwrap().len(), pair.bytes);
        let files = [&pair.target, pair.draft.as_ref().unwrap()];
        let made = || files.map(|path| fs::metadata(path).unwrap().modified().unwrap());
        let before = made();
        make(tiny(), folder.path()).unwrap();
        assert_eq!(made(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
    }

    #[test]
    fn a_different_or_incomplete_file_is_generated_again() {
        let folder = tempfile::tempdir().unwrap();
        let pair = make(tiny(), folder.path()).unwrap();
        let whole = fs::read(&pair.target).unwrap();
        let mut other = whole.clone();
        other[100] ^= 1;
        for wrong in [&whole[..whole.len() - 1], &other] {
            fs::write(&pair.target, wrong).unwrap();
            make(tiny(), folder.path()).unwrap();
            assert!(fs::read(&pair.target).unwrap() == whole, "the same model has the same bytes");
        }
    }

    #[test]
    fn target_and_draft_are_models_with_one_vocabulary() {
        let folder = tempfile::tempdir().unwrap();
        let pair = make(tiny(), folder.path()).unwrap();
        let open = |path: &Path| ModelSource::open(path).unwrap();
        let (target, draft) = (open(&pair.target), open(pair.draft.as_ref().unwrap()));
        let layers = [&target, &draft].map(|source| source.config().unwrap().depth());
        assert_eq!(layers, [6, DRAFT_LAYERS]);
        assert_eq!(target.config().unwrap().vocabulary, 2048);
        let tokenizer = target.tokenizer().unwrap();
        assert_eq!((tokenizer.vocabulary(), tokenizer.ends()), (2048, &[2047][..]));
        assert!(foretoken_engine::compat::compare(&tokenizer, &draft.tokenizer().unwrap()).compatible);
    }

    #[test]
    fn a_mixture_of_experts_loads_as_its_architecture() {
        let folder = tempfile::tempdir().unwrap();
        for (architecture, format) in
            [("qwen3moe", Format::Q4K), ("gpt-oss", Format::Mxfp4), ("deepseek2", Format::Q4K)]
        {
            let shape = SHAPES.into_iter().find(|shape| shape.architecture() == architecture).unwrap();
            let experts = shape.experts.map(|experts| Experts { count: 6, top_k: 3, ..experts });
            let kv_heads = shape.kv_heads.min(2);
            let latent = shape.latent.map(|latent| Latent { q_lora_rank: 256, dense: 512, ..latent });
            let small =
                Shape { vocabulary: 320, hidden: 256, intermediate: 256, heads: 4, kv_heads, ..shape };
            let model =
                RandomModel { shape: Shape { experts, latent, ..small }, weights: Weights::All(format) };
            let source = ModelSource::open(&make(model, folder.path()).unwrap().target).unwrap();
            let config = source.config().unwrap();
            assert_eq!((config.family.name, config.depth()), (architecture, shape.layers));
            assert_eq!(config.experts().map(|experts| (experts.count, experts.top_k)), Some((6, 3)));
        }
    }

    #[test]
    fn a_recurrent_model_loads_with_its_mtp_block() {
        let folder = tempfile::tempdir().unwrap();
        let shape = SHAPES.into_iter().find(|shape| shape.name == "qwen35-0.8B").unwrap();
        let recurrence = Some(Recurrence { keys: 1, values: 2 });
        let sizes = Shape { vocabulary: 320, hidden: 256, intermediate: 256, head_size: 64, ..shape };
        let small = Shape { layers: 8, heads: 4, recurrence, ..sizes };
        let model = RandomModel { shape: small, weights: Weights::Q4KM };
        let pair = make(model, folder.path()).unwrap();
        assert_eq!(pair.draft, None);
        let source = ModelSource::open(&pair.target).unwrap();
        let config = source.config().unwrap();
        assert_eq!((config.family.name, config.depth(), config.kinds().count()), ("qwen35", 8, 2));
        source.mtp_head().unwrap().for_target(&source).unwrap();
    }

    #[test]
    fn an_error_names_the_folder_that_cannot_be_created() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = make(tiny(), &file.path().join("below")).err().unwrap().to_string();
        assert!(error.contains("below") && error.contains("cannot be written"), "{error}");
    }
}
