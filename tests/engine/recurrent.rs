//! Recurrent layers and MLA: after any sequence of kept and dropped tokens, the state equals that
//! of a fresh run.

use std::ops::ControlFlow;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device};
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::draft::{DraftRequest, Drafter, Drafters, ModelDrafter, Vocabulary};
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::{Speculation, Staged, Tree};
use foretoken_forward::cpu::Isa;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, Pass, TensorModel, Want, catch_up};
use foretoken_model::error::Result;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelConfig, ModelSource};
use foretoken_tests::{RandomFamily, family, loaded, loaded_with, nightly_or, tested_families};
use proptest::prelude::*;
use serde_json::json;

use super::families::tokens;
use super::invariance::difference;
use super::lossless::Hostile;

/// Tested families with such layers.
fn recurrent() -> Vec<RandomFamily> {
    tested_families().into_iter().filter(RandomFamily::is_recurrent).collect()
}

/// Operation on a text.
#[derive(Debug, Clone)]
pub enum Deed {
    /// Runs a tree of nodes, each after a chosen earlier one, growing it once. Keeps the path to a
    /// node, or nothing.
    Tree { parents: Vec<prop::sample::Index>, grown: prop::sample::Index, kept: Option<prop::sample::Index> },
    /// Runs a chain of tokens that are not scored, and keeps some of them, or all.
    Read { tokens: usize, kept: Option<prop::sample::Index> },
    /// Drops this many tokens.
    Back(usize),
}

pub fn deed() -> impl Strategy<Value = Deed> {
    let index = any::<prop::sample::Index>;
    let tree = (prop::collection::vec(index(), 0..20), index(), prop::option::weighted(0.8, index()));
    let read = (1usize..90, prop::option::weighted(0.3, index()));
    prop_oneof![
        4 => tree.prop_map(|(parents, grown, kept)| Deed::Tree { parents, grown, kept }),
        2 => read.prop_map(|(tokens, kept)| Deed::Read { tokens, kept }),
        2 => (0usize..30).prop_map(Deed::Back),
        1 => (30usize..120).prop_map(Deed::Back),
    ]
}

/// Tokens that differ between operations.
fn token(deed: usize, index: usize) -> TokenId {
    (3 + (deed * 131 + index * 37) % 310) as TokenId
}

/// Applies the operation to a model, whose text stays shorter than its context.
pub fn act(model: &mut dyn Model, number: usize, deed: &Deed) -> Result<()> {
    match deed {
        Deed::Tree { parents, grown, kept } => {
            let mut tree = TokenTree::chain([token(number, 0)]);
            let mut paths = vec![vec![0]];
            let first = 1 + grown.index(parents.len() + 1);
            let mut part = None;
            for (node, parent) in parents.iter().enumerate() {
                if tree.len() == first {
                    part = Some(tree.clone());
                }
                let parent = parent.index(node + 1);
                let new = tree.push(token(number, node + 1), Some(parent));
                paths.push([&paths[parent][..], &[new]].concat());
            }
            if model.cached().len() + tree.len() > 200 {
                return Ok(());
            }
            let mut pass = model.run(part.as_ref().unwrap_or(&tree), &Want::all_rows())?;
            pass = if part.is_some() { pass.grow(&tree, &Want::all_rows())? } else { pass };
            pass.keep(kept.map_or(&[][..], |kept| &paths[kept.index(paths.len())]))
        }
        Deed::Read { tokens, kept } => {
            let chain = TokenTree::chain((0..*tokens).map(|index| token(number, index)));
            if model.cached().len() + tokens > 200 {
                return Ok(());
            }
            let pass: Pass<'_> = model.run(&chain, &Want::nothing())?;
            match kept {
                Some(kept) => pass.keep(&(0..kept.index(tokens + 1)).collect::<Vec<_>>()),
                None => Ok(()),
            }
        }
        Deed::Back(tokens) => {
            let length = model.cached().len().saturating_sub(*tokens);
            assert!(model.truncate(length) <= length);
            Ok(())
        }
    }
}

/// Scores of `rows` tokens after the cached ones, which stay cached.
pub fn next(model: &mut dyn Model, rows: usize) -> Vec<Vec<f32>> {
    let pass = model.run(&TokenTree::chain(11..11 + rows as TokenId), &Want::all_rows()).unwrap();
    let scores = (0..rows).map(|row| pass.logits().row(row).logits().unwrap().to_vec()).collect();
    pass.keep(&[]).unwrap();
    scores
}

/// Scores of `rows` tokens after `text`, by a model with an empty cache. Never changes the list of
/// RoPE factors, like [`act`].
pub fn fresh(model: &mut dyn Model, text: &[TokenId], rows: usize) -> Vec<Vec<f32>> {
    model.truncate(0);
    if !text.is_empty() {
        model.run(&TokenTree::chain(text.iter().copied()), &Want::nothing()).unwrap();
    }
    next(model, rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(nightly_or(16, 4)))]

    #[test]
    fn any_kept_and_dropped_tokens_leave_the_state_of_a_fresh_run(
        deeds in prop::collection::vec(deed(), 1..14),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for family in recurrent().into_iter().chain(tested_families().into_iter().filter(RandomFamily::is_latent)) {
            let source = family.gguf(folder.path(), GgmlDType::Q8_0);
            let mut model = loaded_with(&source, Isa::choose().unwrap(), 2);
            let mut other = loaded_with(&source, Isa::Scalar, 1);
            for (number, deed) in deeds.iter().enumerate() {
                let before = model.cached().to_vec();
                act(model.as_mut(), number, deed).unwrap();
                let text = model.cached().to_vec();
                prop_assert!(!matches!(deed, Deed::Back(_)) || before.starts_with(&text));
                prop_assert!(next(model.as_mut(), 2) == fresh(other.as_mut(), &text, 2), "{}, deed {number}", family.label);
                prop_assert_eq!(model.cached(), &text[..]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(nightly_or(4, 2)))]

    #[test]
    fn tensors_give_the_same_text_with_drafts(deeds in prop::collection::vec(deed(), 1..8)) {
        let folder = tempfile::tempdir().unwrap();
        for family in recurrent() {
            let source = family.gguf(folder.path(), GgmlDType::F32);
            let exact = || TensorModel::exact(&source, &Device::Cpu).unwrap();
            let (mut model, mut other) = (exact(), exact());
            for (number, deed) in deeds.iter().enumerate() {
                act(&mut model, number, deed).unwrap();
                let text = model.cached().to_vec();
                let found = difference(&next(&mut model, 2), &fresh(&mut other, &text, 2));
                prop_assert!(found < 1e-4, "{}, deed {number}: {found}", family.label);
            }
        }
    }
}

/// A model that counts its passes and their rows.
struct Counted {
    model: Box<dyn Model>,
    rows: Arc<std::sync::atomic::AtomicUsize>,
}

impl Model for Counted {
    fn config(&self) -> &ModelConfig {
        self.model.config()
    }

    fn cached(&self) -> &[TokenId] {
        self.model.cached()
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        self.rows.fetch_add(tree.len(), std::sync::atomic::Ordering::Relaxed);
        self.model.run(tree, want)
    }

    fn truncate(&mut self, length: usize) -> usize {
        self.model.truncate(length)
    }
}

#[test]
fn a_rejected_draft_is_rewound_exactly_without_rerunning_tokens() {
    let folder = tempfile::tempdir().unwrap();
    for family in recurrent() {
        let source = family.gguf(folder.path(), GgmlDType::Q8_0);
        let rows = Arc::default();
        let model = Counted { model: loaded(&source), rows: Arc::clone(&rows) };
        let mut drafter = ModelDrafter::new(Box::new(model), Vocabulary::Same(320), &[]);
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let mut context = Context::new(tokens());
        let _ = drafter.prepare(&context, &mut |_, _| ControlFlow::Continue(())).unwrap();
        for accepted in [0, 16, 3, 15, 0, 0, 7, 1, 16, 2] {
            rows.store(0, std::sync::atomic::Ordering::Relaxed);
            let unfed = context.len() - drafter.model().cached().len().min(context.len() - 1);
            let draft = drafter.draft(&context, &DraftRequest::chain(16), &mut sampler).unwrap();
            assert_eq!(draft.guesses.len(), 16);
            let run = rows.load(std::sync::atomic::Ordering::Relaxed);
            assert!(run <= unfed.min(2) + 15, "{}: {run} rows for a draft of 16", family.label);
            let mut fresh = ModelDrafter::new(loaded(&source), Vocabulary::Same(320), &[]);
            let expected = fresh.draft(&context, &DraftRequest::chain(16), &mut sampler).unwrap();
            assert_eq!(draft, expected, "{}", family.label);
            // The target accepts this many, and then emits another token.
            let taken: Vec<TokenId> = draft.guesses.iter().take(accepted).map(|guess| guess.token).collect();
            context.extend(taken.into_iter().chain([7 + accepted as TokenId]));
        }
    }
}

#[test]
fn arbitrary_drafts_and_trees_change_no_text() {
    let folder = tempfile::tempdir().unwrap();
    for family in recurrent() {
        let target = family.gguf(folder.path(), GgmlDType::Q8_0);
        let tokenizer = Arc::new(target.tokenizer().unwrap());
        let mut decoder = Decoder::new(loaded(&target), Arc::clone(&tokenizer));
        let request = Request {
            sampling: Sampling::greedy(),
            max_tokens: Some(60),
            ignore_end: true,
            ..Request::new(tokens())
        };
        let mut write = |request: &Request, drafters: &mut Drafters| {
            decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
        };
        let plain = write(&request, &mut Drafters::default());
        let draft = family.gguf(folder.path(), GgmlDType::Q4_0);
        let model = || {
            let ends = tokenizer.ends();
            ModelDrafter::new(loaded(&draft), Vocabulary::Same(tokenizer.vocabulary()), ends)
        };
        let hostile = Hostile(|_: &[_], length| Ok(vec![5; length + 3]));
        for (mut drafters, speculation) in [
            (Drafters::one(hostile), Speculation::fixed(8)),
            (Drafters::one(model()), Speculation { tree: Tree::Width(4), ..Speculation::fixed(5) }),
            (Drafters::one(model()), Speculation { staged: Staged::On, ..Speculation::fixed(7) }),
            (Drafters::one(model()), Speculation::fixed(16)),
        ] {
            let request = Request { speculation, ..request.clone() };
            let drafted = write(&request, &mut drafters);
            assert_eq!(drafted.tokens, plain.tokens, "{}, {:?}", family.label, request.speculation);
        }
    }
}

#[test]
fn a_regenerated_reply_starts_near_the_end_of_its_prompt() {
    let folder = tempfile::tempdir().unwrap();
    for family in recurrent() {
        let source = family.gguf(folder.path(), GgmlDType::Q8_0);
        let mut model = loaded(&source);
        let prompt: Vec<TokenId> = (0..130).map(|index| token(1, index)).collect();
        let go_on = &mut |_, _| ControlFlow::Continue(());
        let _ = catch_up(model.as_mut(), &prompt, go_on).unwrap();
        for index in 0..60 {
            model.run(&TokenTree::chain([token(2, index)]), &Want::all_rows()).unwrap();
        }
        // The template of the next prompt inserts something before the reply.
        let mut again = prompt.clone();
        again.truncate(126);
        again.extend([4, 5, 6]);
        let (reused, _) = catch_up(model.as_mut(), &again, go_on).unwrap();
        assert!((80..=126).contains(&reused), "{}: {reused} tokens were reused", family.label);
        assert!(next(model.as_mut(), 2) == fresh(loaded(&source).as_mut(), &again[..again.len() - 1], 2));
    }
}

#[test]
fn interleaved_and_grouped_value_heads_are_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let family = family("qwen35");
    let config = |source: &ModelSource| source.config().unwrap().recurrence().unwrap().clone();
    let grouped = config(&family.folder(folder.path(), DType::F32));
    let mut in_turns = config(&family.gguf(folder.path(), GgmlDType::F32));
    assert!(grouped.heads.grouped && !in_turns.heads.grouped);
    in_turns.heads.grouped = true;
    assert_eq!(in_turns, grouped);
}

#[test]
fn unsupported_layers_are_rejected_with_a_message() {
    let set = |key: &'static str, value: serde_json::Value| {
        move |family: &mut RandomFamily| family.config[key] = value.clone()
    };
    for (of, kind) in [("lfm2", "conv"), ("qwen35", "linear_attention")] {
        let message = family(of).refused(&set("layer_types", json!(vec![kind; 4])));
        assert!(message.contains("attention in some of the layers"), "{message}");
        let message = family(of).refused(&set("layer_types", json!([kind, "full_attention"])));
        assert!(
            message.contains("layer_types for every layer") || message.contains("each of 4 layers"),
            "{message}"
        );
        let message =
            family(of).refused(&set("layer_types", json!([kind, "chunked", kind, "full_attention"])));
        assert!(message.contains("layer_types"), "{message}");
    }
    family("qwen35").assert_refused(
        &[
            ("linear_num_key_heads", json!(3), "key heads of recurrent layers that divide their value heads"),
            ("linear_num_key_heads", json!(0), "a size in linear_num_key_heads"),
            ("linear_value_head_dim", json!(24), "heads of recurrent layers of a multiple of 32, found 24"),
            ("linear_key_head_dim", json!(40), "heads of recurrent layers of a multiple of 32, found 40"),
            ("linear_conv_kernel_dim", json!(1), "a convolution over 2 to 16 rows, found 1"),
            ("linear_conv_kernel_dim", json!(4000), "a convolution over 2 to 16 rows, found 4000"),
            ("linear_num_value_heads", json!(8), "of shape"),
        ],
        &[
            ("model.layers.0.linear_attn.A_log", "the tensor blk.0.ssm_a"),
            ("model.layers.2.self_attn.q_proj.weight", "the tensor blk.2.attn_q.weight"),
        ],
    );
    family("qwen35moe").assert_refused(
        &[
            ("num_experts", json!(0), "a size in num_experts, found none"),
            ("num_experts", json!(1u64 << 32), "num_experts of at most 16777216, found 4294967296"),
            ("num_experts_per_tok", json!(9), "up to 8 experts per token, found 9"),
            ("moe_intermediate_size", json!(64), "of shape [8, 256, 64], found [8, 256, 96]"),
            (
                "shared_expert_intermediate_size",
                json!(0),
                "a size in shared_expert_intermediate_size, found none",
            ),
            ("shared_expert_intermediate_size", json!(96), "ffn_gate_shexp.weight of shape [96, 256]"),
        ],
        &[
            ("model.layers.1.mlp.shared_expert.up_proj.weight", "blk.1.ffn_up_shexp.weight"),
            ("model.layers.1.mlp.shared_expert_gate.weight", "blk.1.ffn_gate_inp_shexp.weight"),
            ("model.layers.1.mlp.experts.down_proj", "the tensor blk.1.ffn_down.0.weight"),
        ],
    );
    family("lfm2").assert_refused(
        &[
            ("conv_bias", json!(true), "no biases in convolutions"),
            ("intermediate_size", json!(4096), "ffn_gate.weight of shape"),
        ],
        &[
            ("model.layers.1.conv.conv.weight", "the tensor blk.1.shortconv.conv.weight"),
            ("model.embedding_norm.weight", "the tensor output_norm.weight"),
        ],
    );
    let message = family("qwen35").refused(&|family| {
        let kernel = family.tensors["model.layers.0.linear_attn.conv1d.weight"].narrow(2, 0, 3).unwrap();
        family.tensors.insert(
            "model.layers.0.linear_attn.conv1d.weight".to_owned(),
            kernel.force_contiguous().unwrap(),
        );
    });
    assert!(message.contains("blk.0.ssm_conv1d.weight of shape [256, 4], found [256, 3]"), "{message}");
}
