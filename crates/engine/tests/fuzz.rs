//! Damaged files by the thousands: each gives a model or one clear sentence, never a panic, and never takes
//! more memory than a file of its size justifies. The damage is drawn from a fixed seed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code)]
#[path = "../src/model/fixture.rs"]
mod fixture;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use candle_core::quantized::gguf_file::Value;
use candle_core::{DType, Tensor};
use fixture::{Gguf, ramp, text};
use foretoken_engine::Error;
use foretoken_engine::model::{ModelSource, Renderer, Special};

const ROUNDS: usize = 10_000;

/// Counts what each thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn grown(by: usize) {
    // Threads allocate after their own variables are gone, too.
    let _ = HELD.try_with(|held| {
        held.set(held.get().saturating_add(by));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn shrunk(by: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(by)));
}

// SAFETY: every call is passed on as it is to the system's allocator; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        shrunk(layout.size());
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes this thread held at a time in `run`, beyond what it held before.
fn peak_of<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.get();
    PEAK.set(before);
    let result = run();
    (PEAK.get() - before, result)
}

/// A folder in memory where the system has one: tens of thousands of files are written.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// One to three pieces of damage to the first `header` bytes.
fn damage(file: &[u8], header: usize, random: &mut Random) -> Vec<u8> {
    const NUMBERS: [u64; 12] =
        [0, 1, 2, 7, 255, 1 << 16, 1 << 31, u32::MAX as u64, 1 << 40, 1 << 62, 1 << 63, u64::MAX];
    let mut file = file.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(header.min(file.len()));
        let length = random.below(64).min(file.len() - at);
        match random.below(8) {
            0 | 1 => file[at] ^= 1 << random.below(8),
            2 => file[at] = random.next() as u8,
            3 | 4 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(file.len() - at);
                file[at..at + width].copy_from_slice(&number[..width]);
            }
            5 => drop(file.drain(at..at + length)),
            6 => {
                let piece = file[at..at + length].to_vec();
                let to = random.below(header.min(file.len()));
                file.splice(to..to, piece);
            }
            _ => file.truncate(at.max(random.below(file.len()))),
        }
        if file.is_empty() {
            break;
        }
    }
    file
}

/// Looks at everything that a file says.
fn look(path: &Path) -> Result<(), Error> {
    let source = ModelSource::open(path)?;
    source.describe();
    source.special_tokens()?;
    let tokenizer = source.tokenizer()?;
    let tokens = tokenizer.encode("Hello, hell </s>", Special::Parse)?;
    tokenizer.decode(&tokens);
    source.config()?;
    source.template(&Renderer::in_this_process()).map(|_| ())
}

/// What a file whose size is `size` came to: the sentence in which it was refused, if it was.
fn looked(path: &Path, size: usize, round: usize) -> Option<String> {
    let caught = catch_unwind(AssertUnwindSafe(|| peak_of(|| look(path))));
    let (peak, result) = caught.unwrap_or_else(|_| panic!("panicked in round {round}"));
    assert!(peak <= 16 * size + (1 << 20), "round {round}: {peak} bytes for a file of {size}");
    let message = result.err()?.to_string();
    assert!(!message.contains(char::is_control), "round {round}: {message:?}");
    assert!(message.ends_with('.') && message.chars().count() < 1200, "round {round}: {message}");
    Some(message)
}

#[test]
fn damaged_gguf_headers_are_refused_in_a_sentence() {
    let folder = folder();
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.chat_template", text("{% for m in messages %}{{ m.content }}{% endfor %}"));
    let path = gguf.write(folder.path());
    assert_eq!(looked(&path, 1 << 20, 0), None, "the whole file is a model");
    let whole = fs::read(&path).unwrap();
    let last = b"token_embd.weight";
    let header = whole.windows(last.len()).position(|window| window == last).unwrap() + 64;
    let mut random = Random(5);
    let mut refused = 0;
    for round in 0..ROUNDS {
        let file = damage(&whole, header, &mut random);
        fs::write(&path, &file).unwrap();
        refused += usize::from(looked(&path, file.len(), round).is_some());
    }
    assert!((ROUNDS / 3..ROUNDS).contains(&refused), "{refused} of {ROUNDS} were refused");
}

/// A model of the tiny Llama's sizes in Hugging Face form.
fn hugging_face(folder: &Path) {
    let config = serde_json::json!({
        "architectures": ["LlamaForCausalLM"], "vocab_size": 261, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true,
    });
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        fixture::alphabet().into_iter().zip(0..).map(|(text, id)| (text, serde_json::json!(id))).collect();
    let byte_level =
        serde_json::json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true});
    let tokenizer = serde_json::json!({
        "version": "1.0",
        "added_tokens": [{"id": 256, "content": "</s>", "special": true, "single_word": false,
                          "lstrip": false, "rstrip": false, "normalized": false}],
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    });
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = serde_json::json!({"eos_token": "</s>", "chat_template": "{{ messages }}"});
    fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
    let shapes: [(&str, &[usize]); 11] = [
        ("model.embed_tokens.weight", &[261, 32]),
        ("model.norm.weight", &[32]),
        ("model.layers.0.input_layernorm.weight", &[32]),
        ("model.layers.0.self_attn.q_proj.weight", &[32, 32]),
        ("model.layers.0.self_attn.k_proj.weight", &[16, 32]),
        ("model.layers.0.self_attn.v_proj.weight", &[16, 32]),
        ("model.layers.0.self_attn.o_proj.weight", &[32, 32]),
        ("model.layers.0.post_attention_layernorm.weight", &[32]),
        ("model.layers.0.mlp.gate_proj.weight", &[64, 32]),
        ("model.layers.0.mlp.up_proj.weight", &[64, 32]),
        ("model.layers.0.mlp.down_proj.weight", &[32, 64]),
    ];
    let half = |shape: &[usize]| ramp(shape).to_dtype(DType::BF16).unwrap();
    let tensors: HashMap<String, Tensor> =
        shapes.into_iter().map(|(name, shape)| (name.to_owned(), half(shape))).collect();
    candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
}

#[test]
fn damaged_safetensors_headers_are_refused_in_a_sentence() {
    let folder = folder();
    hugging_face(folder.path());
    let path = folder.path().join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let mut random = Random(6);
    let mut refused = 0;
    for round in 0..ROUNDS {
        let file = damage(&whole, header, &mut random);
        fs::write(&path, &file).unwrap();
        let (peak, result) = peak_of(|| ModelSource::open(folder.path()).map(|source| source.describe()));
        assert!(peak <= 16 * file.len() + (1 << 20), "round {round}: {peak} bytes for {}", file.len());
        if let Err(error) = result {
            let message = error.to_string();
            assert!(!message.contains(char::is_control) && message.ends_with('.'), "{round}: {message:?}");
            refused += 1;
        }
    }
    assert!((ROUNDS * 9 / 10..=ROUNDS).contains(&refused), "{refused} of {ROUNDS} were refused");
}

#[test]
fn damaged_documents_of_a_folder_are_refused_in_a_sentence() {
    let folder = folder();
    hugging_face(folder.path());
    assert_eq!(looked(folder.path(), 1 << 20, 0), None, "the whole folder is a model");
    let mut random = Random(7);
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for round in 0..500 {
            let file = damage(&whole, whole.len(), &mut random);
            fs::write(&path, &file).unwrap();
            looked(folder.path(), file.len(), round);
        }
        fs::write(&path, whole).unwrap();
    }
}

/// Lists that no longer fit together: cut, repeated, shuffled, of other values.
fn disagree(list: &mut Vec<Value>, random: &mut Random) {
    let len = list.len();
    match random.below(7) {
        0 => list.truncate(random.below(len)),
        1 => list.extend_from_within(..random.below(len)),
        2 if len > 1 => list.swap(random.below(len), random.below(len)),
        3 if len > 0 => {
            let at = random.below(len);
            list[at] = match list[at].clone() {
                Value::String(text) => Value::String(text.chars().rev().chain(" x".chars()).collect()),
                Value::F32(_) => Value::F32([f32::NAN, f32::INFINITY, -1e30, 0.0][random.below(4)]),
                _ => Value::I32(random.below(9) as i32 - 1),
            };
        }
        4 if len > 1 => {
            let (from, to) = (random.below(len), random.below(len));
            list[to] = list[from].clone();
        }
        5 => list.reverse(),
        _ => list.clear(),
    }
}

#[test]
fn tokenizers_whose_lists_disagree_work_or_are_refused() {
    let folder = folder();
    let mut random = Random(8);
    let mut refused = 0;
    for round in 0..1500 {
        let mut gguf = match round % 2 {
            0 => Gguf::tiny(),
            _ => Gguf::sentence_piece(&[("▁", -3.0), ("a", -2.0), ("▁a", -1.0), ("he", -1.5)]),
        };
        gguf.tensors.clear();
        for _ in 0..=random.below(3) {
            let lists = ["tokens", "token_type", "scores", "merges"];
            let key = format!("tokenizer.ggml.{}", lists[random.below(4)]);
            if let Some(Value::Array(list)) = gguf.values.get_mut(&key) {
                disagree(list, &mut random);
            }
        }
        let path = gguf.write(folder.path());
        let size = fs::metadata(&path).unwrap().len() as usize;
        let message = looked(&path, size, round).expect("no weights");
        refused += usize::from(!message.contains("found only a tokenizer"));
    }
    assert!((300..1400).contains(&refused), "{refused}");
}

#[test]
fn a_long_list_takes_no_memory() {
    let folder = folder();
    let mut gguf = Gguf::tiny();
    gguf.set("a.list", Value::Array(vec![Value::U8(1); 8 << 20]));
    let path = gguf.write(folder.path());
    let (peak, source) = peak_of(|| ModelSource::open(&path));
    assert!(source.is_ok() && peak < 1 << 20, "{peak}");
}
