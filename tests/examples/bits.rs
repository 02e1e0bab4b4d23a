//! Prints hashes of what the CPU engine computes, to compare before and after a change that must
//! keep every bit: `cargo run --release -p foretoken-tests --example bits > before.txt`. One line
//! for the logits of each family and format, and one for the drafts and the text of each drafter.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::ops::ControlFlow;
use std::path::Path;

use candle_core::DType;
use candle_core::quantized::GgmlDType;
use foretoken_engine::decoder::Request;
use foretoken_engine::draft::{Drafter, Drafters, NgramDrafter, RecyclingDrafter, head_drafter};
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_model::ModelSource;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_tests::{
    BlockKind, Flags, RandomAssistant, RandomBlockHead, RandomHead, chat_prompt, decoder, families, family,
    loaded, logits_in_chunks, model_drafter, repository, smollm2, starter_target,
};
use sha2::{Digest, Sha256};

const QUESTIONS: [&str; 3] = [
    "Tell me a story about a fox who finds a lantern.",
    "Count from one to twelve.",
    "Repeat after me: the cat and the dog and the cat and the dog and the cat.",
];

fn main() {
    let folder = tempfile::tempdir().unwrap();
    logits_of_families(folder.path());
    starter_replies(folder.path());
    own_heads(folder.path());
    smollm2_replies();
}

fn print(label: &str, bytes: &[u8]) {
    let digest: String = Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("{digest} {label}");
}

fn logits_of_families(folder: &Path) {
    let tokens: Vec<TokenId> = (0..40).map(|i| 3 + i * 97 % 310).collect();
    let print_logits = |label: String, source: &ModelSource| {
        let rows = logits_in_chunks(loaded(source).as_mut(), &tokens, &[7]);
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|logit| logit.to_le_bytes()).collect();
        print(&label, &bytes);
    };
    for family in families() {
        let label = family.label;
        print_logits(format!("{label}, safetensors, F32"), &family.folder(folder, DType::F32));
        for format in [GgmlDType::F32, GgmlDType::Q8_0, GgmlDType::Q4_0] {
            print_logits(format!("{label}, GGUF, {format:?}"), &family.gguf(folder, format));
        }
    }
}

/// Prints the replies of `target` to each of `prompts`, greedy and sampled, plain, with chains and
/// with trees of drafts.
fn print_replies(
    label: &str,
    target: &ModelSource,
    prompts: &[Vec<TokenId>],
    drafter: impl Fn() -> Box<dyn Drafter>,
) {
    let mut decoder = decoder(target);
    let sampled =
        Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() };
    let mut written = String::new();
    for sampling in [Sampling::greedy(), sampled] {
        for tree in [1, 3].map(Tree::Width) {
            let mut drafters = Drafters::new(vec![drafter()]);
            for prompt in prompts {
                let speculation = Speculation { tree, ..Speculation::fixed(5) };
                let request = Request {
                    sampling: sampling.clone(),
                    max_tokens: Some(50),
                    speculation,
                    ..Request::new(prompt.clone())
                };
                let reply =
                    decoder.reply(&request, &mut drafters, &mut |_| ControlFlow::Continue(())).unwrap();
                let drafts = reply.rounds.iter().map(|round| (&round.drafted, &round.extra));
                written += &format!("{:?}{:?}", reply.tokens, drafts.collect::<Vec<_>>());
            }
        }
    }
    print(label, written.as_bytes());
}

fn starter_replies(folder: &Path) {
    let target = starter_target();
    let tokenizer = target.tokenizer().unwrap();
    let prompts = QUESTIONS.map(|question| chat_prompt(&target, &tokenizer, question));
    let replies = |label: &str, drafter: &dyn Fn() -> Box<dyn Drafter>| {
        print_replies(&format!("starter, {label}"), &target, &prompts, drafter);
    };
    replies("draft model", &|| Box::new(model_drafter(&tokenizer)));
    replies("n-grams", &|| Box::<NgramDrafter>::default());
    replies("token recycling", &|| Box::<RecyclingDrafter>::default());
    let config = target.config().unwrap();
    for flags in [
        Flags::default(),
        Flags { norm_before_residual: true, ..Flags::default() },
        Flags { norm_before_fc: true, ..Flags::default() },
        Flags { fc_norm: true, norm_output: true, ..Flags::default() },
        Flags { head_norms: true, ..Flags::default() },
    ] {
        let head = RandomHead::new(config, flags);
        let mut sources =
            vec![("eagle", head.eagle(folder).unwrap()), ("speculators", head.speculators(folder).unwrap())];
        if !flags.head_norms {
            // GGUF has no names for norms of queries and keys in a head.
            sources.push(("GGUF", head.gguf(folder, GgmlDType::Q8_0).unwrap()));
        }
        for (form, source) in sources {
            replies(&format!("{} head, {form}", flags.name()), &|| drafter_of(&source, &target));
        }
    }
    for kind in BlockKind::ALL.into_iter().filter(|kind| !kind.is_of_authors()) {
        let mut head = RandomBlockHead::new(config, kind);
        head.entering = vec![2, 6];
        let sources = [head.authors(folder), head.speculators(folder), head.gguf(folder, GgmlDType::Q8_0)];
        for (form, source) in ["authors", "speculators", "GGUF"].into_iter().zip(sources) {
            replies(&format!("{kind:?}, {form}"), &|| drafter_of(&source, &target));
        }
    }
}

fn drafter_of(head: &ModelSource, target: &ModelSource) -> Box<dyn Drafter> {
    let source = head.for_target(target).unwrap();
    let tokenizer = target.tokenizer().unwrap();
    head_drafter(&source, loaded(&source), tokenizer.ends()).unwrap()
}

/// Replies of models that come with a draft head of their own: MTP blocks and assistants.
fn own_heads(folder: &Path) {
    let prompts = [(0..24).map(|i| 3 + i * 97 % 310).collect(), (0..24).map(|i| 3 + i * 37 % 77).collect()];
    for label in ["qwen35", "glm"] {
        let family = family(label).with_mtp();
        for format in [GgmlDType::F32, GgmlDType::Q8_0] {
            let target = family.gguf(folder, format);
            let head = || drafter_of(&target.mtp_head().unwrap(), &target);
            print_replies(&format!("{label}, MTP, {format:?}"), &target, &prompts, head);
        }
    }
    for label in ["gemma4", "gemma4 with experts"] {
        let family = family(label);
        let target = family.gguf(folder, GgmlDType::Q8_0);
        for clustered in [false, true] {
            let assistant = RandomAssistant::new(&family, clustered);
            let sources =
                [assistant.folder(folder).unwrap(), assistant.gguf(folder, GgmlDType::Q8_0).unwrap()];
            for (form, source) in ["safetensors", "GGUF"].into_iter().zip(sources) {
                let label = format!("{label}, assistant, clustered {clustered}, {form}");
                print_replies(&label, &target, &prompts, || drafter_of(&source, &target));
            }
        }
    }
}

fn smollm2_replies() {
    let target = ModelSource::open(&smollm2()).unwrap();
    let head = ModelSource::open(&repository().join("smollm2/smollm2-head.gguf")).unwrap();
    let tokenizer = target.tokenizer().unwrap();
    let prompts = QUESTIONS.map(|question| chat_prompt(&target, &tokenizer, question));
    print_replies("SmolLM2 with its head", &target, &prompts, || drafter_of(&head, &target));
}
