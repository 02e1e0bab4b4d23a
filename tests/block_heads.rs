//! Draft heads that guess blocks (DFlash, DFlash 2, DSpark): their rows are those of implementations nobody here wrote,
//! from every form in which they are published; what they hear is what a fresh start would have them hear; and no text
//! depends on them.

use std::ops::ControlFlow;
use std::path::Path;

use candle_core::DType;
use candle_core::quantized::GgmlDType;
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::draft::{Draft, DraftRequest, Drafter, Drafters, NgramDrafter, Seen, head_drafter};
use foretoken_engine::forward::{Carried, CpuModel, Features, Model, Want, catch_up_with};
use foretoken_engine::model::ModelSource;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::sampling::{Mode, Sampling};
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_engine::token::TokenId;
use foretoken_engine::tree::TokenTree;
use foretoken_tests::{
    BLOCK_ROWS, BlockKind, MASK, RandomBlockHead, chat_prompt, decoder, family, loaded, made_up,
    starter_target,
};

/// How far apart rows may be since the CPU keeps keys and values in half precision.
const IN_HALVES: f32 = 1.5e-3;

/// Tokens of the text that a block follows.
const TEXT: usize = 17;

fn tokens() -> Vec<TokenId> {
    (0..TEXT as TokenId + BLOCK_ROWS as TokenId).map(|i| 8 + i * 97 % 300).collect()
}

/// The family's small Llama as a target, and a head for it.
fn pair(folder: &Path, kind: BlockKind) -> (ModelSource, RandomBlockHead) {
    let target = family("llama").folder(folder, DType::F32);
    let head = RandomBlockHead::new(target.config().unwrap(), kind);
    (target, head)
}

fn on_the_cpu(source: &ModelSource) -> Box<dyn Model> {
    Box::new(CpuModel::load(source).unwrap())
}

/// The scores of a block of `rows` after a text, with made-up states of a target, each given the token of the text before
/// it; and what the head's confidence is of each.
fn block(head: &mut dyn Model, kind: BlockKind, rows: usize) -> (Vec<Vec<f32>>, Vec<Option<f32>>) {
    head.truncate(0);
    let tokens = tokens();
    let width = head.config().draft_head.as_ref().unwrap().states();
    let states = made_up("states", TEXT * width);
    // In two parts, as texts come.
    for (from, to) in [(0, 5), (5, TEXT)] {
        let carried = Carried::Target(Features::new(&states[from * width..to * width], width));
        let tree = TokenTree::chain(tokens[from..to].iter().copied());
        drop(head.run(&tree, &Want::nothing().carrying(carried)).unwrap());
    }
    let masks = std::iter::repeat_n(MASK, rows - 1);
    let tree = TokenTree::chain(std::iter::once(tokens[TEXT]).chain(masks));
    let mut pass = head.run(&tree, &Want::rows(kind.first()..rows)).unwrap();
    let of_row = |row: usize| {
        let (scores, confidence) = pass.row_after(row, tokens[TEXT + row]).unwrap();
        (scores.logits().unwrap().to_vec(), confidence)
    };
    let found = (0..rows - kind.first()).map(of_row).unzip();
    pass.keep(&[]).unwrap();
    assert_eq!(head.cached(), &tokens[..TEXT]);
    found
}

fn difference(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    let pairs = || found.iter().flatten().zip(expected.iter().flatten());
    // What cannot be guessed cannot be guessed in either.
    assert!(pairs().all(|(a, b)| a.is_finite() == b.is_finite()), "other candidates");
    let squares = |of: fn((&f32, &f32)) -> f32| {
        pairs().filter(|(a, _)| a.is_finite()).map(of).map(|x| x * x).sum::<f32>().sqrt()
    };
    squares(|(a, b)| a - b) / squares(|(_, b)| *b)
}

#[test]
fn the_forms_in_which_block_heads_are_published_are_one_head() {
    let folder = tempfile::tempdir().unwrap();
    for kind in BlockKind::ALL {
        let (target, head) = pair(folder.path(), kind);
        let mut forms = vec![head.speculators(folder.path()), head.gguf(folder.path(), GgmlDType::F32)];
        if kind != BlockKind::DSpark {
            forms.push(head.authors(folder.path()));
        }
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

/// A head for the starter's target.
fn starter_head(folder: &Path, kind: BlockKind) -> Box<dyn Drafter> {
    let target = starter_target();
    let mut head = RandomBlockHead::new(target.config().unwrap(), kind);
    head.entering = vec![2, 6];
    let source = head.gguf(folder, GgmlDType::Q8_0).for_target(&target).unwrap();
    head_drafter(&source, on_the_cpu(&source), target.tokenizer().unwrap().ends()).unwrap()
}

fn coupled() -> Sampling {
    Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() }
}

#[test]
fn a_block_head_that_guesses_at_random_changes_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut decoder = decoder(&starter_target());
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
            for drafters in [&mut head, &mut both] {
                let widths = [1, 3].map(Tree::Width);
                for way in [Speculation::fixed(1), Speculation::fixed(16), Speculation::default()]
                    .into_iter()
                    .flat_map(|way| widths.map(|tree| Speculation { tree, ..way.clone() }))
                {
                    request.speculation = way;
                    let drafted = write(&mut decoder, &request, drafters);
                    assert_eq!(drafted.tokens, plain.tokens, "{kind:?} {:?}", request.speculation);
                    let failed = drafters.has_failed(foretoken_engine::drafter_kind::DrafterKind::Head);
                    assert!(!failed, "{kind:?} {:?}", request.speculation);
                }
            }
        }
    }
}

/// Runs the target over a text and lets the head hear it from where its cache differs.
fn hear(target: &mut dyn Model, head: &mut dyn Drafter, context: &Context) {
    let deaf = head.deaf(context);
    target.truncate(context.len() - 1 - deaf);
    let taps = head.taps().unwrap().clone();
    let mut on_part = |part: foretoken_engine::forward::Part<'_>| {
        let seen = Seen { at: part.at, tokens: part.tokens, rows: None, features: part.features };
        head.observe(&seen).unwrap();
        ControlFlow::Continue(())
    };
    let _ = catch_up_with(target, context, &taps, &mut on_part).unwrap();
    assert_eq!(head.deaf(context), 0);
}

fn guesses(head: &mut dyn Drafter, context: &Context, length: usize) -> Draft {
    let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
    head.draft(context, &DraftRequest::chain(length), &mut sampler).unwrap()
}

#[test]
fn whatever_was_heard_before_a_block_head_drafts_what_it_would_from_a_fresh_start() {
    let folder = tempfile::tempdir().unwrap();
    let source = starter_target();
    let mut target = loaded(&source);
    let mut head = starter_head(folder.path(), BlockKind::DFlash2);
    let mut random = 7u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut text: Vec<TokenId> = (0..60).map(|_| 3 + next(900) as TokenId).collect();
    let mut context = Context::new(text.clone());
    for round in 0..60 {
        // Some tokens more, as after a round; now and then an edit, a shorter text, or a long page.
        match next(8) {
            0 => {
                let length = 2 + next(text.len() - 2);
                text.truncate(length);
                context.truncate(length);
            }
            1 => text.extend((0..100).map(|_| 3 + next(900) as TokenId)),
            2 => {
                // Often the last token, after which was drafted and which was not heard yet.
                let at = [text.len() - 1, next(text.len())][next(2)];
                text[at] = 3 + next(900) as TokenId;
                text.push(3 + next(900) as TokenId);
                context.truncate(at);
            }
            _ => text.extend((0..1 + next(4)).map(|_| 3 + next(900) as TokenId)),
        }
        text.truncate(480);
        context.truncate(text.len());
        context.extend(text[context.len()..].iter().copied());
        hear(target.as_mut(), head.as_mut(), &context);
        let found = guesses(head.as_mut(), &context, 1 + next(7));
        assert!(!found.guesses.is_empty());
        assert_eq!(guesses(head.as_mut(), &context, found.guesses.len()), found, "asked again");
        if round % 4 == 0 {
            let mut fresh = starter_head(folder.path(), BlockKind::DFlash2);
            hear(loaded(&source).as_mut(), fresh.as_mut(), &context);
            assert_eq!(guesses(fresh.as_mut(), &context, found.guesses.len()), found, "round {round}");
        }
    }
}
