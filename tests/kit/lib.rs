//! Fixtures for tests: the starter pair and small random models; a [`hub`] to download from; a
//! [`client`] of a server; an [`update_server`]; and the real [`window`] with the reference
//! [`picture`]s.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

#[cfg(target_os = "linux")]
pub mod animation;
pub mod client;
#[cfg(target_os = "linux")]
pub mod display;
mod extent;
mod gguf_file;
mod head_files;
pub mod hub;
#[cfg(target_os = "linux")]
pub mod kernel_compiler;
pub mod office;
#[cfg(target_os = "linux")]
pub mod picture;
#[cfg(target_os = "linux")]
pub mod processes;
mod programs;
mod random_assistant;
mod random_block_head;
mod random_embedder;
mod random_family;
mod random_head;
mod random_vision;
mod real_shape;
mod scan;
#[cfg(target_os = "linux")]
pub mod screenshot_portal;
pub mod served;
#[cfg(target_os = "linux")]
pub mod session_bus;
#[cfg(unix)]
mod slow_child;
pub mod spread;
mod starter_folder;
mod table_model;
#[cfg(target_os = "linux")]
pub mod tray;
pub mod update_server;
#[cfg(target_os = "linux")]
pub mod window;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use candle_core::quantized::gguf_file::Value;
use candle_core::{Device, Tensor};
use foretoken_engine::decoder::Decoder;
use foretoken_engine::draft::{ModelDrafter, Vocabulary};
use foretoken_forward::cpu::Isa;
use foretoken_forward::device;
use foretoken_forward::gpu::GpuDevice;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{CpuModel, Model, TensorModel, Want, load};
use foretoken_model::Error;
use foretoken_model::format::Format;
use foretoken_model::token::TokenId;
use foretoken_model::{ChatMessage, KvDtype, ModelSource, Renderer, Role, Special, Tokenizer};

pub use extent::{is_nightly, nightly_or, tested_families, tested_formats};
pub use gguf_file::Stored;
pub use head_files::made_up;
pub use programs::{Run, alone, application, cli, finished, mcp_server};
pub use random_assistant::RandomAssistant;
pub use random_block_head::{BLOCK_ROWS, BlockKind, MASK, RandomBlockHead};
pub use random_embedder::RandomEmbedder;
pub use random_family::{RandomFamily, dense_gemma4, families, family, in_candle, recent};
pub use random_head::{Flags, RandomHead};
pub use random_vision::{RandomVision, made_up_picture};
pub use real_shape::{qwen35_9b, small_qwen35};
pub use scan::scanned_pdf;
#[cfg(unix)]
pub use slow_child::SlowChild;
pub use starter_folder::{write_greedy_folder, write_starter_folder};
pub use table_model::TableModel;

/// Root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A file or folder of the test data.
pub fn data(name: &str) -> PathBuf {
    let path = repository().join("tests/data").join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

/// SmolLM2's file, which `make test` downloads.
pub fn smollm2() -> PathBuf {
    let path = repository().join("smollm2/SmolLM2-135M-Instruct-Q4_1.gguf");
    let hint = "`make model` gets it; with FORETOKEN_WITHOUT_SMOLLM2=1 the tests do without";
    assert!(path.exists(), "{} is missing: {hint}", path.display());
    path
}

/// Returns whether tests skip SmolLM2, where it cannot be downloaded, and prints that.
#[allow(clippy::print_stderr, reason = "a skipped test has to be seen")]
pub fn without_smollm2() -> bool {
    let without = std::env::var_os("FORETOKEN_WITHOUT_SMOLLM2").is_some_and(|value| !value.is_empty());
    if without {
        eprintln!("skipped: FORETOKEN_WITHOUT_SMOLLM2 is set");
    }
    without
}

pub fn starter_target() -> ModelSource {
    ModelSource::open(&repository().join("starter/starter-target-Q8_0.gguf")).unwrap()
}

pub fn starter_draft() -> ModelSource {
    ModelSource::open(&repository().join("starter/starter-draft-Q8_0.gguf")).unwrap()
}

/// A fresh model with an empty cache.
pub fn loaded(source: &ModelSource) -> Box<dyn Model> {
    match tensors_on() {
        // Quantised activations would depend on the rows in a pass.
        Some(device) => Box::new(TensorModel::exact(source, device).unwrap()),
        None if on_gpu() => match load(source, &device::Device::Gpu(gpu())) {
            Err(Error::NotOnGpu(_)) => load(source, &device::Device::Cpu).unwrap(),
            loaded => loaded.unwrap(),
        },
        None => load(source, &device::Device::Cpu).unwrap(),
    }
}

/// The model as it is, and with its KV cache in 8 bits unless it has latent attention.
pub fn with_both_caches(source: &ModelSource) -> impl Iterator<Item = ModelSource> + use<> {
    let int8 = source.clone().with_kv_dtype(KvDtype::Int8);
    let int8 = source.config().unwrap().latent().is_none().then_some(int8);
    [source.clone()].into_iter().chain(int8)
}

/// Returns whether the GPU engine runs the tests' models: FORETOKEN_TEST_DEVICE is `gpu`.
pub fn on_gpu() -> bool {
    std::env::var("FORETOKEN_TEST_DEVICE").is_ok_and(|name| name == "gpu")
}

/// Loads a model onto the GPU or a software renderer.
pub fn on_the_gpu(source: &ModelSource) -> Box<dyn Model> {
    load(source, &device::Device::Gpu(gpu())).unwrap()
}

/// The first GPU or software renderer, opened once.
pub fn gpu() -> Arc<GpuDevice> {
    static GPU: OnceLock<Arc<GpuDevice>> = OnceLock::new();
    let hint = "`make setup-tests` installs a software renderer";
    let open = || GpuDevice::open(0, true).unwrap_or_else(|unopened| panic!("no GPU: {unopened:?}; {hint}"));
    Arc::clone(GPU.get_or_init(open))
}

/// Device on which tests run models as tensors: FORETOKEN_TEST_DEVICE, `cpu`, `cuda` or `metal`. If
/// it is unset, the CPU engine runs them; with `gpu`, the GPU engine does. Their bits do not depend
/// on the rows in a pass.
pub fn tensors_on() -> Option<&'static Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    let open = || match std::env::var("FORETOKEN_TEST_DEVICE").ok()?.as_str() {
        "cpu" => Some(Device::Cpu),
        "cuda" => Some(Device::new_cuda(0).unwrap()),
        "metal" => Some(Device::new_metal(0).unwrap()),
        "gpu" => None,
        other => panic!("FORETOKEN_TEST_DEVICE: expected cpu, cuda, metal or gpu, found '{other}'"),
    };
    DEVICE.get_or_init(open).as_ref()
}

/// One row per token, run in chunks of the given sizes, of which the last repeats.
pub fn logits_in_chunks(model: &mut dyn Model, tokens: &[TokenId], chunks: &[usize]) -> Vec<Vec<f32>> {
    model.truncate(0);
    model.prepare_for_length(tokens.len());
    let mut rows = Vec::new();
    let mut sizes = chunks.iter().copied().chain(std::iter::repeat(*chunks.last().unwrap()));
    while rows.len() < tokens.len() {
        let size = sizes.next().unwrap().min(tokens.len() - rows.len());
        let tree = TokenTree::chain(tokens[rows.len()..][..size].iter().copied());
        let pass = model.run(&tree, &Want::all_rows()).unwrap();
        let logits = pass.logits();
        rows.extend((0..size).map(|row| logits.row(row).logits().unwrap().to_vec()));
    }
    rows
}

/// Asserts that logits are equal: bit by bit on the CPU and GPU engines, up to rounding on tensors.
#[track_caller]
pub fn assert_same(found: &[f32], expected: &[f32]) {
    match tensors_on() {
        None => assert!(found == expected),
        Some(_) => {
            let difference = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let largest = expected.iter().map(|logit| logit.abs()).fold(0.0, f32::max);
            assert!(difference < 1e-4 * largest, "{difference} apart, of {largest}");
        }
    }
}

/// Loads a model that runs `isa`'s kernels on this many threads.
pub fn loaded_with(source: &ModelSource, isa: Isa, threads: usize) -> Box<dyn Model> {
    Box::new(CpuModel::with(source, isa, threads).unwrap())
}

/// Instruction sets of this processor.
pub fn instruction_sets() -> impl Iterator<Item = Isa> {
    Isa::ALL.iter().copied().filter(|isa| isa.available())
}

pub fn decoder(source: &ModelSource) -> Decoder {
    Decoder::new(loaded(source), Arc::new(source.tokenizer().unwrap()))
}

/// The starter draft, drafting for the starter target.
pub fn model_drafter(tokenizer: &Tokenizer) -> ModelDrafter {
    ModelDrafter::new(loaded(&starter_draft()), Vocabulary::Same(tokenizer.vocabulary()), tokenizer.ends())
}

/// `question` as the first turn of a conversation, in the model's chat template.
pub fn chat_prompt(source: &ModelSource, tokenizer: &Tokenizer, question: &str) -> Vec<TokenId> {
    let message = ChatMessage::new(Role::User, question);
    let text = source.template(&Renderer::in_this_process()).unwrap().render(&[message], true).unwrap();
    tokenizer.encode(&text, Special::Parse).unwrap()
}

/// Sizes of a small Llama of two layers.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub hidden: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub feed_forward: usize,
    /// At least 258.
    pub vocabulary: usize,
    pub context: u32,
}

/// 512 wide, so that every quantisation fits.
pub const EVEN: Shape =
    Shape { hidden: 512, heads: 8, kv_heads: 2, feed_forward: 768, vocabulary: 320, context: 256 };

/// Sizes that are no multiples of a vector or a block.
pub const ODD: Shape =
    Shape { hidden: 90, heads: 5, kv_heads: 5, feed_forward: 115, vocabulary: 331, context: 256 };

/// A Llama with random weights, a byte-level vocabulary and no chat template.
pub fn random_model(folder: &Path, format: Format) -> ModelSource {
    shaped_model(folder, format, EVEN)
}

pub fn shaped_model(folder: &Path, format: Format, shape: Shape) -> ModelSource {
    let path = folder.join(format!("random-{}-{}.gguf", format.name(), shape.hidden));
    write_model(&path, shape, &random_weights(format, shape), None)
}

const TEMPLATE: &str = "{% for message in messages %}{{ message.content }}\n{% endfor %}";

/// Waits until a condition holds.
#[track_caller]
pub fn soon(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the condition does not hold");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A random model with a chat template and a long context, whose replies do not end.
pub fn endless_model(folder: &Path) -> ModelSource {
    let shape = Shape { context: 32_768, ..EVEN };
    write_model(&folder.join("endless.gguf"), shape, &random_weights(Format::Q8_0, shape), Some(TEMPLATE))
}

/// An endless model that is large enough to take a moment to load.
pub fn large_model(folder: &Path) -> ModelSource {
    let shape = Shape { hidden: 512, feed_forward: 2048, vocabulary: 40_000, ..EVEN };
    write_model(&folder.join("large.gguf"), shape, &random_weights(Format::F32, shape), Some(TEMPLATE))
}

/// Random tensors of a Llama with two layers; norms are ones.
pub fn random_weights(format: Format, shape: Shape) -> Vec<Stored> {
    let Shape { hidden, heads, kv_heads, feed_forward, vocabulary, .. } = shape;
    let keys = hidden / heads * kv_heads;
    let mut tensors = Vec::new();
    let mut matrix = |name: String, rows: usize, columns: usize| {
        tensors.push(Stored::random(name, [rows, columns], format, 0.05));
    };
    matrix("token_embd.weight".into(), vocabulary, hidden);
    for layer in 0..2 {
        let name = |part| format!("blk.{layer}.{part}.weight");
        matrix(name("attn_q"), hidden, hidden);
        matrix(name("attn_k"), keys, hidden);
        matrix(name("attn_v"), keys, hidden);
        matrix(name("attn_output"), hidden, hidden);
        matrix(name("ffn_gate"), feed_forward, hidden);
        matrix(name("ffn_up"), feed_forward, hidden);
        matrix(name("ffn_down"), hidden, feed_forward);
    }
    let ones = Tensor::ones(hidden, candle_core::DType::F32, &Device::Cpu).unwrap();
    for name in ["blk.0.attn_norm", "blk.0.ffn_norm", "blk.1.attn_norm", "blk.1.ffn_norm", "output_norm"] {
        tensors.push(Stored::of(format!("{name}.weight"), &ones, Format::F32));
    }
    tensors
}

/// Writes a Llama with the tensors of [`random_weights`] and a byte-level vocabulary.
pub fn write_model(path: &Path, shape: Shape, tensors: &[Stored], template: Option<&str>) -> ModelSource {
    write_model_file(path, shape, tensors, template);
    ModelSource::open(path).unwrap()
}

/// Writes the file of [`write_model`], which may be one that cannot be opened.
pub fn write_model_file(path: &Path, shape: Shape, tensors: &[Stored], template: Option<&str>) {
    let Shape { hidden, heads, kv_heads, feed_forward, vocabulary, context } = shape;
    let number = |value: usize| Value::U32(value as u32);
    let mut metadata = vec![
        ("general.architecture", Value::String("llama".into())),
        ("llama.context_length", Value::U32(context)),
        ("llama.embedding_length", number(hidden)),
        ("llama.feed_forward_length", number(feed_forward)),
        ("llama.block_count", number(2)),
        ("llama.attention.head_count", number(heads)),
        ("llama.attention.head_count_kv", number(kv_heads)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("llama.rope.dimension_count", number(hidden / heads)),
        ("llama.vocab_size", number(vocabulary)),
        ("tokenizer.ggml.model", Value::String("gpt2".into())),
        ("tokenizer.ggml.pre", Value::String("gpt-2".into())),
        ("tokenizer.ggml.tokens", Value::Array(byte_level_tokens(vocabulary))),
        ("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(1); vocabulary])),
        ("tokenizer.ggml.merges", Value::Array(vec![Value::String("t h".into())])),
    ];
    metadata.extend(template.map(|text| ("tokenizer.chat_template", Value::String(text.into()))));
    gguf_file::write(path, &metadata, tensors);
}

/// Printable stand-ins of all bytes, "th", and fillers.
fn byte_level_tokens(vocabulary: usize) -> Vec<Value> {
    let printable = |byte: &u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut shifted = 0x100..;
    let bytes = (0..256).map(|byte| if printable(&byte) { byte } else { shifted.next().unwrap() });
    let letters = bytes.map(|code| char::from_u32(code).unwrap().to_string());
    let fillers = (257..vocabulary).map(|token| format!(" filler{token}"));
    letters.chain(["th".to_owned()]).chain(fillers).map(Value::String).collect()
}
