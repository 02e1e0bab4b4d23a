//! Draft heads that draft blocks (DFlash, DFlash 2, DSpark, Domino, LiLiCorr): rows equal those of
//! reference implementations in every published format. Observed states do not depend on history,
//! and no text depends on the head.

use std::ops::ControlFlow;
use std::path::Path;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device, Tensor};
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::distribution::Distribution;
use foretoken_engine::draft::{DraftRequest, Drafter, Drafters, NgramDrafter, head_drafter};
use foretoken_engine::penalties::Penalties;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{BlockState, CpuModel, Features, HeadInput, Model, TensorModel, Want, catch_up_with};
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_model::{Domino, ModelSource};
use foretoken_tests::{
    BLOCK_ROWS, BlockKind, MASK, RandomBlockHead, chat_prompt, decoder, family, loaded, made_up, nightly_or,
    repository, starter_target,
};
use serde_json::json;

use super::replay::{assert_drafts_like_new, replay};

/// Largest difference of rows, because the CPU stores keys and values in half precision.
const IN_HALVES: f32 = 1.5e-3;

/// Tokens of the text before a block.
const TEXT: usize = 17;

fn tokens() -> Vec<TokenId> {
    (0..=TEXT as TokenId + BLOCK_ROWS as TokenId).map(|i| 8 + i * 97 % 300).collect()
}

/// The small Llama family as a target, and a head for it.
fn pair(folder: &Path, kind: BlockKind) -> (ModelSource, RandomBlockHead) {
    let target = family("llama").folder(folder, DType::F32);
    let head = RandomBlockHead::new(target.config().unwrap(), kind);
    (target, head)
}

fn on_the_cpu(source: &ModelSource) -> Box<dyn Model> {
    Box::new(CpuModel::load(source).unwrap())
}

fn on_tensors(source: &ModelSource) -> Box<dyn Model> {
    Box::new(TensorModel::exact(source, &Device::Cpu).unwrap())
}

/// Scores of a block of `rows` after a text with random states of a target, each given the token
/// before it, and the head's confidence in each.
fn block(head: &mut dyn Model, kind: BlockKind, rows: usize) -> (Vec<Vec<f32>>, Vec<Option<f32>>) {
    head.truncate(0);
    let tokens = tokens();
    let width = head.config().draft_head.as_ref().unwrap().states();
    let states = made_up("states", TEXT * width);
    // In two parts, as the parts of a prompt arrive.
    for (from, to) in [(0, 5), (5, TEXT)] {
        let head_input = HeadInput::Target(Features::new(&states[from * width..to * width], width));
        let tree = TokenTree::chain(tokens[from..to].iter().copied());
        drop(head.run(&tree, &Want::nothing().head_input(head_input)).unwrap());
    }
    let masks = std::iter::repeat_n(MASK, rows - 1);
    let tree = TokenTree::chain(std::iter::once(tokens[TEXT]).chain(masks));
    let mut pass = head.run(&tree, &Want::rows(kind.first()..rows)).unwrap();
    let anchor = Features::new(&states[(TEXT - 1) * width..], width);
    let mut state = pass.begin_block(Some(anchor)).unwrap();
    let mut next = tokens[TEXT];
    let of_row = |row: usize| {
        state = pass.next_state(&state, next).unwrap();
        let (scores, confidence) = pass.row_after(row, &state).unwrap();
        // Pairs are scored along the likeliest path, other heads along the text.
        next = if kind.is_lilicorr() { scores.likeliest() } else { tokens[TEXT + row + 1] };
        (scores.logits().unwrap().to_vec(), confidence)
    };
    let found = (0..rows - kind.first()).map(of_row).unzip();
    pass.keep(&[]).unwrap();
    assert_eq!(head.cached(), &tokens[..TEXT]);
    found
}

fn difference(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    let pairs = || found.iter().flatten().zip(expected.iter().flatten());
    // Excluded tokens are the same in both.
    assert!(pairs().all(|(a, b)| a.is_finite() == b.is_finite()), "other candidates");
    let squares = |of: fn((&f32, &f32)) -> f32| {
        pairs().filter(|(a, _)| a.is_finite()).map(of).map(|x| x * x).sum::<f32>().sqrt()
    };
    squares(|(a, b)| a - b) / squares(|(_, b)| *b)
}

#[test]
fn all_published_formats_of_a_block_head_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    for kind in BlockKind::ALL {
        let (target, head) = pair(folder.path(), kind);
        let forms = head.forms(folder.path(), GgmlDType::F32);
        let rows = |source: &ModelSource| {
            assert!(source.is_draft_head());
            let source = source.for_target(&target).unwrap();
            let head_config = source.config().unwrap().draft_head.clone().unwrap();
            assert_eq!(head_config.entering.as_ref(), Some(&head.entering));
            if let Some(guessed) = source.guessed_tokens().unwrap() {
                assert_eq!(guessed, head.guessed);
            }
            let mut model = on_the_cpu(&source);
            [2, 5, BLOCK_ROWS].map(|rows| block(model.as_mut(), kind, rows))
        };
        let forms: Vec<_> = forms.iter().map(rows).collect();
        for form in &forms {
            for (found, expected) in form.iter().zip(&forms[0]) {
                assert!(difference(&found.0, &expected.0) < 1e-6, "{kind:?}");
                assert_eq!(found.1, expected.1);
            }
        }
    }
}

/// Drops tokens from golden rows that a Domino head drops from `found`.
fn drop_others(kind: BlockKind, found: &[Vec<f32>], expected: &mut [Vec<f32>]) {
    for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
        let dropped: Vec<usize> = (0..found.len()).filter(|&token| found[token].is_infinite()).collect();
        let kept = if position < kind.plain_prefix() { found.len() } else { Domino::CANDIDATES };
        assert_eq!(found.len() - dropped.len(), kept, "{kind:?}, position {position}");
        dropped.into_iter().for_each(|token| expected[token] = f32::NEG_INFINITY);
    }
}

#[test]
fn a_domino_head_corrects_the_top_candidates_after_a_plain_prefix() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [BlockKind::Domino, BlockKind::MaskedDomino] {
        let (target, head) = pair(folder.path(), kind);
        let source = head.authors(folder.path()).for_target(&target).unwrap();
        for mut model in [on_the_cpu(&source), on_tensors(&source)] {
            let masks = std::iter::repeat_n(MASK, BLOCK_ROWS - 1);
            let tree = TokenTree::chain(std::iter::once(tokens()[TEXT]).chain(masks));
            let mut pass = model.run(&tree, &Want::rows(kind.first()..BLOCK_ROWS)).unwrap();
            let mut state = BlockState::default();
            for row in 0..BLOCK_ROWS - kind.first() {
                state = pass.next_state(&state, tokens()[TEXT + row]).unwrap();
                let plain = pass.logits().row(row).logits().unwrap().to_vec();
                let mut top = pass.logits().row(row).top(Domino::CANDIDATES).unwrap();
                let scores = pass.row_after(row, &state).unwrap().0.logits().unwrap().to_vec();
                if row < kind.plain_prefix() {
                    assert_eq!(scores, plain);
                    continue;
                }
                top.sort_unstable_by_key(|&(token, _)| token);
                let kept: Vec<usize> = (0..scores.len()).filter(|&token| scores[token].is_finite()).collect();
                assert_eq!(kept, top.iter().map(|&(token, _)| token as usize).collect::<Vec<_>>());
                assert!(top.iter().any(|&(token, score)| (scores[token as usize] - score).abs() > 0.1));
            }
        }
    }
}

/// Rows of `tests/goldens/block_heads.safetensors`.
fn golden(name: &str) -> Option<Vec<Vec<f32>>> {
    let path = repository().join("tests/goldens/block_heads.safetensors");
    let tensors = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    let tensor = tensors.get(name)?;
    Some(tensor.reshape((tensor.dim(0).unwrap(), ())).unwrap().to_vec2().unwrap())
}

#[test]
fn block_head_rows_equal_those_of_speculators_and_torch() {
    let folder = tempfile::tempdir().unwrap();
    for kind in BlockKind::ALL {
        let (target, head) = pair(folder.path(), kind);
        let forms = head.with_own_matrices().forms(folder.path(), GgmlDType::F32);
        let source = forms[0].for_target(&target).unwrap();
        let engines = [(on_the_cpu(&source), IN_HALVES), (on_tensors(&source), 1e-4)];
        for (mut model, most) in engines {
            for rows in [2, 5, BLOCK_ROWS] {
                let mut expected = golden(&format!("{kind:?} {rows}")).unwrap();
                let (found, confidences) = block(model.as_mut(), kind, rows);
                if kind.is_domino() {
                    drop_others(kind, &found, &mut expected);
                }
                let apart = difference(&found, &expected);
                assert!(apart < most, "{kind:?}, {rows} rows: {apart}");
                let expected = golden(&format!("{kind:?} {rows} confidence"));
                let found: Option<Vec<f32>> = confidences.into_iter().collect();
                assert_eq!(found.is_some(), expected.is_some());
                for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                    assert!((found - expected[0]).abs() < most, "{kind:?}: {found}, {}", expected[0]);
                }
            }
        }
    }
}

/// A head for the starter target.
fn starter_source(folder: &Path, kind: BlockKind) -> ModelSource {
    let target = starter_target();
    let mut head = RandomBlockHead::new(target.config().unwrap(), kind);
    head.entering = vec![2, 6];
    head.any_form(folder).for_target(&target).unwrap()
}

fn starter_head(folder: &Path, kind: BlockKind) -> Box<dyn Drafter> {
    drafter(&starter_source(folder, kind), on_the_cpu)
}

fn drafter(source: &ModelSource, load: fn(&ModelSource) -> Box<dyn Model>) -> Box<dyn Drafter> {
    head_drafter(source, load(source), starter_target().tokenizer().unwrap().ends()).unwrap()
}

fn coupled() -> Sampling {
    Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() }
}

#[test]
fn a_random_block_head_changes_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut decoder = decoder(&starter_target());
    let widths = [1, 3].map(Tree::Width);
    let ways: Vec<Speculation> = [Speculation::fixed(1), Speculation::fixed(16), Speculation::default()]
        .into_iter()
        .flat_map(|way| widths.map(|tree| Speculation { tree, ..way.clone() }))
        .collect();
    // Each of the drafters below takes its turn with a part of the ways.
    let (mut turn, every) = (0, nightly_or(1, 9));
    for sampling in [Sampling::greedy(), coupled(), Sampling { repetition_penalty: 1.2, ..coupled() }] {
        let prompt = chat_prompt(&starter_target(), decoder.tokenizer(), "Count from one to twelve.");
        let mut request = Request { sampling, max_tokens: Some(40), ..Request::new(prompt) };
        let write = |decoder: &mut Decoder, request: &Request, drafters: &mut Drafters| {
            decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
        };
        let plain = write(&mut decoder, &request, &mut Drafters::default());
        for kind in BlockKind::ALL {
            let mut head = Drafters::new(vec![starter_head(folder.path(), kind)]);
            let mut both =
                Drafters::new(vec![starter_head(folder.path(), kind), Box::<NgramDrafter>::default()]);
            let mut tensors = Drafters::new(vec![drafter(&starter_source(folder.path(), kind), on_tensors)]);
            for drafters in [&mut head, &mut both, &mut tensors] {
                turn += 1;
                for way in ways.iter().skip(turn % every).step_by(every) {
                    request.speculation = way.clone();
                    let drafted = write(&mut decoder, &request, drafters);
                    assert_eq!(drafted.tokens, plain.tokens, "{kind:?} {:?}", request.speculation);
                    let failed = drafters.has_failed(foretoken_engine::drafter_kind::DrafterKind::Head);
                    assert!(!failed, "{kind:?} {:?}", request.speculation);
                }
            }
        }
    }
}

/// The model of `head` after the starter target's states for `context`.
fn after_text(source: &ModelSource, head: &dyn Drafter, context: &Context) -> Box<dyn Model> {
    let (mut model, mut target) = (on_the_cpu(source), loaded(&starter_target()));
    let _ = catch_up_with(target.as_mut(), context, head.taps().unwrap(), &mut |part| {
        let head_input = HeadInput::Target(part.features.unwrap());
        let tree = TokenTree::chain(part.tokens.iter().copied());
        drop(model.run(&tree, &Want::nothing().head_input(head_input)).unwrap());
        ControlFlow::Continue(())
    });
    model
}

#[test]
fn a_drawn_block_position_is_scored_by_the_tokens_drawn_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let sampling = Sampling { temperature: 1.5, ..Sampling::default() };
    let context = Context::new((0..40).map(|token| 3 + token * 7 % 900).collect());
    for kind in
        BlockKind::ALL.into_iter().filter(|kind| kind.is_corrected()).filter(|kind| !kind.is_lilicorr())
    {
        let mut head = starter_head(folder.path(), kind);
        replay(loaded(&starter_target()).as_mut(), head.as_mut(), &context);
        // The same head, with the rows requested.
        let source = starter_source(folder.path(), kind);
        let mut model = after_text(&source, head.as_ref(), &context);
        let last = context[context.len() - 1];
        let masks = std::iter::repeat_n(MASK, kind.first() + 4);
        let tree = TokenTree::chain(std::iter::once(last).chain(masks));
        let mut pass = model.run(&tree, &Want::rows(kind.first()..kind.first() + 5)).unwrap();
        let mut unlikely = 0;
        let mut sampler = Sampler::new(&sampling).unwrap();
        for _ in 0..20 {
            let draft = head.draft(&context, &DraftRequest::chain(5), &mut sampler).unwrap();
            let mut state = pass.next_state(&BlockState::default(), last).unwrap();
            for (place, guess) in draft.guesses.iter().enumerate() {
                let (scores, confidence) = pass.row_after(place, &state).unwrap();
                let guessed = source.guessed_tokens().unwrap();
                let scores = guessed.as_deref().map_or(scores, |tokens| scores.restricted_to(tokens));
                let expected =
                    Distribution::processed(scores, &sampling, &Penalties::new(&sampling).at(&context[..]))
                        .unwrap();
                unlikely += usize::from(scores.likeliest() != guess.token);
                assert_eq!(guess.drawn_from.as_deref(), Some(&expected), "{kind:?}, place {place}");
                assert_eq!(confidence.unwrap_or(guess.confidence), guess.confidence);
                state = pass.next_state(&state, guess.token).unwrap();
            }
        }
        assert!(unlikely > 10, "{kind:?}: hardly anything but the likeliest was drawn");
    }
}

#[test]
fn a_tree_of_a_block_head_follows_positions_and_the_selector() {
    let folder = tempfile::tempdir().unwrap();
    let context = Context::new((0..40).map(|token| 3 + token * 7 % 900).collect());
    for kind in [BlockKind::DFlash, BlockKind::DFlash2] {
        let mut head = starter_head(folder.path(), kind);
        replay(loaded(&starter_target()).as_mut(), head.as_mut(), &context);
        let request = DraftRequest::tree(4, 3, 14);
        let draft = head.draft(&context, &request, &mut Sampler::new(&Sampling::greedy()).unwrap()).unwrap();
        let guesses = &draft.guesses;
        assert_eq!(guesses.len(), 14);
        let depths = guesses.depths();
        // Positions that are drafted independently have the same likeliest token, whatever was
        // drawn before.
        let firsts = |depth: usize| {
            let parents = (0..14).filter(|&guess| depths[guess] + 1 == depth).collect::<Vec<_>>();
            let children = parents.iter().filter_map(|&parent| {
                guesses.iter().find(|guess| guess.parent == Some(parent)).map(|guess| guess.token)
            });
            children.collect::<std::collections::HashSet<_>>()
        };
        let kinds = firsts(1).len();
        assert_eq!(kinds == 1, kind == BlockKind::DFlash, "{kind:?}: {kinds} likeliest tokens in one place");
    }
}

#[test]
fn each_guess_of_a_domino_tree_is_scored_by_the_tokens_on_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let context = Context::new((0..40).map(|token| 3 + token * 7 % 900).collect());
    let kind = BlockKind::MaskedDomino;
    let mut head = starter_head(folder.path(), kind);
    replay(loaded(&starter_target()).as_mut(), head.as_mut(), &context);
    let request = DraftRequest::tree(4, 3, 14);
    let draft = head.draft(&context, &request, &mut Sampler::new(&Sampling::greedy()).unwrap()).unwrap();
    let mut model = after_text(&starter_source(folder.path(), kind), head.as_ref(), &context);
    let last = context[context.len() - 1];
    let tree = TokenTree::chain([last].into_iter().chain(std::iter::repeat_n(MASK, request.length)));
    let mut pass = model.run(&tree, &Want::rows(kind.first()..tree.len())).unwrap();
    let (mut parents, mut different) = (0, std::collections::HashSet::new());
    for parent in [None].into_iter().chain((0..draft.guesses.len()).map(Some)) {
        let children = draft.guesses.iter().filter(|guess| guess.parent == parent);
        let children: Vec<_> = children.map(|guess| (guess.token, guess.probability.to_bits())).collect();
        if children.is_empty() {
            continue;
        }
        let path = draft.guesses.path(parent);
        let next = |state, token| pass.next_state(&state, token).unwrap();
        let state = [last].into_iter().chain(path.iter().copied()).fold(BlockState::default(), next);
        let scores = pass.row_after(path.len(), &state).unwrap().0;
        let top = scores.top(children.len()).unwrap().into_iter();
        let expected: Vec<_> =
            top.map(|(token, _)| (token, scores.probability(token).unwrap().to_bits())).collect();
        assert_eq!(children, expected, "after {path:?}");
        (parents, _) = (parents + 1, different.insert(children));
    }
    assert!(parents > 4 && different.len() == parents, "{parents} parents, {different:?}");
}

#[test]
fn a_lilicorr_head_drafts_certain_guesses_along_the_likeliest_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let context = Context::new((0..40).map(|token| 3 + token * 7 % 900).collect());
    for kind in [BlockKind::LiliCorr, BlockKind::WideLiliCorr] {
        let mut head = starter_head(folder.path(), kind);
        let mut target = loaded(&starter_target());
        replay(target.as_mut(), head.as_mut(), &context);
        let source = starter_source(folder.path(), kind);
        let mut model = after_text(&source, head.as_ref(), &context);
        let last = context[context.len() - 1];
        let tree = TokenTree::chain([last].into_iter().chain(std::iter::repeat_n(MASK, BLOCK_ROWS - 1)));
        let mut pass = model.run(&tree, &Want::rows(1..BLOCK_ROWS)).unwrap();
        target.truncate(0);
        let before = TokenTree::chain(context[..context.len() - 1].iter().copied());
        let observed = target.run(&before, &Want::nothing().features(head.taps().unwrap())).unwrap();
        let features = observed.features().unwrap();
        let anchor = Features::new(features.row(context.len() - 2), features.width());
        for sampling in [Sampling::greedy(), Sampling { temperature: 1.5, ..Sampling::default() }] {
            let mut sampler = Sampler::new(&sampling).unwrap();
            for length in [3, BLOCK_ROWS - 1] {
                let draft = head.draft(&context, &DraftRequest::chain(length), &mut sampler).unwrap();
                assert_eq!(draft.guesses.len(), length);
                let state = pass.begin_block(Some(anchor)).unwrap();
                let mut state = pass.next_state(&state, last).unwrap();
                for (position, guess) in draft.guesses.iter().enumerate() {
                    let scores = pass.row_after(position, &state).unwrap().0;
                    let expected = (scores.likeliest(), scores.probability(scores.likeliest()).unwrap());
                    assert_eq!((guess.token, guess.confidence), expected, "{kind:?}, {position}");
                    assert!(guess.drawn_from.is_none(), "a path of pairs was not drawn");
                    state = pass.next_state(&state, guess.token).unwrap();
                }
            }
        }
    }
}

#[test]
fn files_that_are_not_block_heads_are_rejected_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let (target, whole) = pair(folder.path(), BlockKind::DFlash);
    let refused = |head: &RandomBlockHead, part: &str| {
        let opened = head.try_authors(folder.path()).and_then(|source| source.for_target(&target));
        let loaded = opened.and_then(|source| {
            source.guessed_tokens()?;
            CpuModel::load(&source)
        });
        let error = loaded.map(|_| "none").unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    };
    for (key, value, part) in [
        ("block_size", 0.into(), "a block_size from 2 to 1024"),
        ("block_size", 1.into(), "found 1"),
        ("block_size", 100_000_000.into(), "found 100000000"),
        ("block_size", "eight".into(), "a whole number for block_size"),
        (
            "dflash_config",
            json!({ "mask_token_id": 320, "target_layer_ids": [0] }),
            "a mask_token_id below 320",
        ),
        ("dflash_config", json!({ "target_layer_ids": [0] }), "found none"),
        ("dflash_config", json!({ "mask_token_id": 5, "target_layer_ids": [1, 0] }), "ascending"),
        ("dflash_config", json!({ "mask_token_id": 5, "target_layer_ids": [] }), "ascending"),
        (
            "dflash_config",
            json!({ "mask_token_id": 5, "target_layer_ids": [0, 7] }),
            "reads the states that enter",
        ),
        ("input_embedding_scale", 16.into(), "input_embedding_scale of 1"),
        ("final_logit_softcapping", 30.into(), "soft-capping"),
        ("markov_head_type", "gated".into(), "'vanilla'"),
        ("markov_rank", 32.into(), "the tensor markov_w1.weight"),
        ("selector_rank", 0.into(), "the tensor"),
        ("conv_kernel_size", 2.into(), "attn_conv_base"),
        ("layer_types", json!(["full_attention"]), "layer_types for every layer"),
        ("target_hidden_size", 512.into(), "fc.weight of shape"),
        ("vocab_size", 300.into(), "knows 300 tokens"),
    ] {
        let mut head = whole.clone();
        if key == "selector_rank" || key == "conv_kernel_size" {
            head.spoiled.push(("conv_group_size", 16.into()));
            head.spoiled.push(("selector_top_k", 16.into()));
            head.spoiled.push(("selector_rank", if key == "selector_rank" { 32.into() } else { 0.into() }));
        }
        if key != "selector_rank" {
            head.spoiled.push((key, value));
        }
        refused(&head, part);
    }
    let spoil = |kind: BlockKind, spoil: &dyn Fn(&mut RandomBlockHead), part: &str| {
        let mut head = pair(folder.path(), kind).1;
        spoil(&mut head);
        refused(&head, part);
    };
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
    let without = |name: &'static str| move |head: &mut RandomBlockHead| drop(head.tensors.remove(name));
    let as_zeros = |name: &'static str, shape: &'static [usize]| {
        move |head: &mut RandomBlockHead| drop(head.tensors.insert(name.to_owned(), zeros(shape)))
    };
    spoil(BlockKind::DFlash, &without("fc.weight"), "the tensor fc.weight");
    spoil(BlockKind::DFlash, &without("hidden_norm.weight"), "enc.output_norm.weight");
    spoil(BlockKind::DFlash, &without("layers.1.self_attn.k_norm.weight"), "blk.1.attn_k_norm.weight");
    spoil(BlockKind::DFlash, &as_zeros("layers.0.self_attn.sinks", &[4]), "attn_sinks.weight as well");
    spoil(
        BlockKind::DFlash,
        &as_zeros("layers.2.input_layernorm.weight", &[256]),
        "blk.2.attn_norm.weight as well",
    );
    spoil(BlockKind::DFlash2, &without("candidate_selector.hidden_projection.weight"), "selector_hidden");
    spoil(
        BlockKind::DFlash2,
        &as_zeros("layers.0.mlp_conv.base_kernel", &[2, 3, 256]),
        "ffn_conv_base of shape",
    );
    spoil(BlockKind::Anchored, &without("markov_head.markov_w2.weight"), "markov_w2.weight");
    spoil(
        BlockKind::Anchored,
        &as_zeros("confidence_head.proj.weight", &[1, 300]),
        "columns in conf_proj.weight",
    );
    for name in
        ["prefix_gru.weight_ih_l0", "prefix_gru.weight_hh_l0", "embed_proj.0.weight", "embed_proj.2.weight"]
    {
        let lacks = |head: &mut RandomBlockHead| drop(head.tensors.remove(name));
        spoil(BlockKind::Domino, &lacks, &format!("the tensor {name}"));
        let other =
            |head: &mut RandomBlockHead| drop(head.tensors.insert(name.to_owned(), zeros(&[1080, 250])));
        spoil(BlockKind::Domino, &other, &format!("{name} of shape"));
        let nan = |head: &mut RandomBlockHead| {
            let tensor = head.tensors.get_mut(name).unwrap();
            *tensor = (&*tensor * f64::NAN).unwrap();
        };
        spoil(BlockKind::MaskedDomino, &nan, "infinity or NaN");
    }
    let names = pair(folder.path(), BlockKind::LiliCorr).1.tensors.into_keys();
    for name in names.filter(|name| name.starts_with("lilicorr.")) {
        let lacks = |head: &mut RandomBlockHead| drop(head.tensors.remove(&name));
        spoil(BlockKind::LiliCorr, &lacks, &format!("the tensor {name}"));
        let other = |head: &mut RandomBlockHead| drop(head.tensors.insert(name.clone(), zeros(&[3, 7])));
        spoil(BlockKind::LiliCorr, &other, &format!("{name} of shape"));
        let nan = |head: &mut RandomBlockHead| {
            let tensor = head.tensors.get_mut(&name).unwrap();
            *tensor = (&*tensor * f64::NAN).unwrap();
        };
        spoil(BlockKind::LiliCorr, &nan, "infinity or NaN");
    }
    let unknown = as_zeros("lilicorr.layers.2.attn_norm.weight", &[64]);
    spoil(BlockKind::LiliCorr, &unknown, "lilicorr.layers.2.attn_norm.weight as well");
    let projected = as_zeros("lilicorr.token_proj.weight", &[256, 256]);
    spoil(BlockKind::WideLiliCorr, &projected, "lilicorr.token_proj.weight as well");
    spoil(BlockKind::Domino, &as_zeros("prefix_gru.bias_ih_l0", &[1080]), "prefix_gru.bias_ih_l0 as well");
    spoil(
        BlockKind::DFlash,
        &as_zeros("prefix_gru.weight_hh_l0", &[1080, 360]),
        "prefix_gru.weight_hh_l0 as well",
    );
    spoil(BlockKind::Reduced, &|head| head.guessed[1] = head.guessed[0], "ascending tokens below 320 in d2t");
    spoil(
        BlockKind::Reduced,
        &|head| *head.guessed.last_mut().unwrap() = 320,
        "ascending tokens below 320 in d2t",
    );
    let nan = |head: &mut RandomBlockHead| {
        let not = Tensor::full(f32::NAN, 256, &Device::Cpu).unwrap();
        head.tensors.insert("hidden_norm.weight".to_owned(), not);
    };
    spoil(BlockKind::DFlash, &nan, "finite numbers in enc.output_norm.weight");
    std::fs::write(folder.path().join("authors DFlash/mask_embedding.pt"), []).unwrap();
    refused(&whole, "mask_embedding.pt");
}

#[test]
fn a_block_head_drafts_as_from_a_fresh_start() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [BlockKind::DFlash2, BlockKind::LiliCorr] {
        assert_drafts_like_new(&|| starter_head(folder.path(), kind), 7);
    }
}
