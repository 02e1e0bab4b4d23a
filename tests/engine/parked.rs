//! Texts put aside and resumed: a model continues them with the bits of a fresh run, whatever it
//! ran meanwhile, and a draft model drafts as from a fresh start.

use std::ops::ControlFlow;

use candle_core::quantized::GgmlDType;
use foretoken_engine::draft::{Drafter, ModelDrafter, Vocabulary};
use foretoken_forward::cpu::Isa;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, Parked, Want, catch_up};
use foretoken_model::token::TokenId;
use foretoken_tests::{
    endless_model, family, loaded, loaded_with, nightly_or, tested_families, with_both_caches,
};
use proptest::prelude::*;

use super::recurrent::{self, Deed, act, deed};
use super::replay::assert_drafts_for;

/// Rows that are compared after a text.
const FURTHER: usize = 8;

#[derive(Debug, Clone)]
enum Step {
    Act(Deed),
    Park,
    /// Returns to a text put aside, cut to a length, in this model or another of the same weights,
    /// perhaps by way of its bytes.
    Resume {
        which: prop::sample::Index,
        length: prop::sample::Index,
        elsewhere: bool,
        as_bytes: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let resume = (index(), index(), any::<bool>(), any::<bool>());
    prop_oneof![
        5 => deed().prop_map(Step::Act),
        2 => Just(Step::Park),
        3 => resume.prop_map(|(which, length, elsewhere, as_bytes)| {
            Step::Resume { which, length, elsewhere, as_bytes }
        }),
    ]
}

/// Scores of eight tokens after the cached ones, which stay cached.
fn further(model: &mut dyn Model) -> Vec<Vec<f32>> {
    recurrent::next(model, FURTHER)
}

/// The text as it comes back from a file.
fn through_bytes(text: &Parked) -> Parked {
    let mut text = text.clone();
    let pages: Vec<Vec<u8>> = (0..text.pages()).map(|number| text.page(number)).collect();
    assert!(pages.iter().all(|page| page.len() == text.page_bytes()));
    let states = text.states();
    text.read(text.tokens(), text.is_long(), &pages, &states).unwrap()
}

/// Scores of eight tokens after `text`, by a model with an empty cache.
fn fresh(model: &mut dyn Model, text: &[TokenId]) -> Vec<Vec<f32>> {
    recurrent::fresh(model, text, FURTHER)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(nightly_or(16, 4)))]

    #[test]
    fn a_resumed_text_continues_with_the_bits_of_a_fresh_run(steps in prop::collection::vec(step(), 1..16)) {
        let folder = tempfile::tempdir().unwrap();
        let sources = tested_families().into_iter().flat_map(|family| {
            let sources = with_both_caches(&family.gguf(folder.path(), GgmlDType::Q8_0));
            sources.map(move |source| (family.label, source)).collect::<Vec<_>>()
        });
        for (label, source) in sources {
            let mut models = [(); 2].map(|()| loaded_with(&source, Isa::choose().unwrap(), 2));
            let mut other = loaded_with(&source, Isa::Scalar, 1);
            let mut parked: Vec<Parked> = Vec::new();
            for (number, step) in steps.iter().enumerate() {
                match step {
                    Step::Act(deed) => act(models[0].as_mut(), number, deed).unwrap(),
                    Step::Park => parked.extend(models[0].park()),
                    Step::Resume { .. } if parked.is_empty() => {}
                    Step::Resume { which, length, elsewhere, as_bytes } => {
                        let mut text = which.get(&parked).clone();
                        if *as_bytes {
                            text = through_bytes(&text);
                        }
                        models.swap(0, usize::from(*elsewhere));
                        prop_assert!(models[0].resume(&text));
                        let length = length.index(text.tokens().len() + 1);
                        prop_assert!(models[0].truncate(length) <= length);
                        prop_assert!(text.tokens().starts_with(models[0].cached()));
                    }
                }
                let text = models[0].cached().to_vec();
                let expected = fresh(other.as_mut(), &text);
                prop_assert!(
                    further(models[0].as_mut()) == expected,
                    "{label} with a KV cache in {}, step {number}", source.config().unwrap().kv_dtype
                );
            }
        }
    }
}

#[test]
fn a_resumed_text_of_several_pages_shares_them_until_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let source = endless_model(folder.path());
    let (mut model, mut other) = (loaded(&source), loaded(&source));
    let text = |from: TokenId| (0..700).map(move |index: TokenId| 3 + (from + index * 37) % 300);
    model.run(&TokenTree::chain(text(0)), &Want::nothing()).unwrap();
    let Some(first) = model.park() else { return };
    let mut expected = Vec::new();
    for cut in [0, 255, 256, 300, 512, 699, 700] {
        model.resume(&first);
        model.truncate(cut);
        model.run(&TokenTree::chain(text(cut as TokenId + 5)), &Want::nothing()).unwrap();
        let branch = model.park().unwrap();
        let shared = branch.buffers().filter(|buffer| first.buffers().any(|other| other == *buffer));
        // Two layers with a buffer of keys and one of values in each page.
        assert_eq!(shared.count(), cut / 256 * 4, "cut to {cut}");
        expected.push((branch, fresh(other.as_mut(), model.cached())));
    }
    for (branch, expected) in expected {
        model.resume(&branch);
        assert!(further(model.as_mut()) == expected);
    }
    model.resume(&first);
    assert!(further(model.as_mut()) == fresh(other.as_mut(), first.tokens()));
}

#[test]
fn a_resumed_text_keeps_its_list_of_rope_factors() {
    let folder = tempfile::tempdir().unwrap();
    let source = family("phi3 with two lists of factors").gguf(folder.path(), GgmlDType::Q8_0);
    let switch = source.config().unwrap().rope_switch_length().unwrap();
    let (mut model, mut other) = (loaded(&source), loaded(&source));
    for length in [switch - 1, switch, switch + 1, switch + 5] {
        let text: Vec<TokenId> = (0..length as TokenId).map(|index| 3 + index * 37 % 300).collect();
        let go_on = &mut |_, _| ControlFlow::Continue(());
        model.truncate(0);
        let _ = catch_up(model.as_mut(), &text, go_on).unwrap();
        let Some(parked) = model.park() else { return };
        // A text of the other length.
        let _ = catch_up(model.as_mut(), &text[..if length > switch { 3 } else { 1 }], go_on).unwrap();
        assert!(loaded(&source).resume(&parked));
        assert!(model.resume(&through_bytes(&parked)));
        let (reused, _) = catch_up(model.as_mut(), &text, go_on).unwrap();
        assert_eq!(reused, length - 1);
        other.truncate(0);
        let _ = catch_up(other.as_mut(), &text, go_on).unwrap();
        assert!(further(model.as_mut()) == further(other.as_mut()), "{length} tokens");
    }
}

#[test]
fn bytes_of_a_text_hold_nothing_behind_it_and_other_bytes_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let sources = ["llama", "glm", "qwen35"].into_iter().flat_map(|label| {
        let source = family(label).gguf(folder.path(), GgmlDType::Q8_0);
        with_both_caches(&source).map(move |source| (label, source)).collect::<Vec<_>>()
    });
    for (label, source) in sources {
        let chain = |length: TokenId| TokenTree::chain((0..length).map(|index| 3 + index * 37 % 300));
        let (mut model, mut other) = (loaded(&source), loaded(&source));
        model.run(&chain(100), &Want::nothing()).unwrap();
        model.truncate(90);
        model.run(&chain(1), &Want::nothing()).unwrap();
        let left = model.cached().len();
        other.run(&TokenTree::chain(model.cached().iter().copied()), &Want::nothing()).unwrap();
        let (Some(mut text), Some(mut fresh)) = (model.park(), other.park()) else { return };
        let page = text.page(0);
        assert!(page == fresh.page(0), "{label}: {left} tokens");
        let states = text.states();
        let one = std::slice::from_ref(&page);
        let read = |tokens: &[TokenId], pages: &[Vec<u8>], states: &[u8]| {
            text.read(tokens, false, pages, states).is_some()
        };
        assert!(read(text.tokens(), one, &states));
        assert!(
            !read(text.tokens(), &[], &states)
                && !read(text.tokens(), &[page.clone(), page.clone()], &states)
        );
        assert!(!read(text.tokens(), &[page[1..].to_vec()], &states));
        for length in [0, 7, 8, states.len().saturating_sub(4)] {
            assert!(
                length == states.len() || !read(text.tokens(), one, &states[..length]),
                "{label}: {length}"
            );
        }
        let huge = [&[0xff; 8], &states[8..]].concat();
        assert!(!read(text.tokens(), one, &huge), "{label}");
    }
}

#[test]
fn a_model_rejects_a_text_of_other_layers_or_of_a_cache_in_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let source = |label| family(label).gguf(folder.path(), GgmlDType::Q8_0);
    let sources = ["llama", "qwen3", "gemma3", "qwen35", "lfm2", "glm"].map(source);
    let mut models: Vec<_> =
        sources.iter().flat_map(with_both_caches).map(|source| loaded(&source)).collect();
    for model in &mut models {
        model.run(&TokenTree::chain([3, 4, 5]), &Want::nothing()).unwrap();
    }
    let parked: Vec<Option<Parked>> = models.iter().map(|model| model.park()).collect();
    for (number, model) in models.iter_mut().enumerate() {
        for (other, parked) in parked.iter().enumerate() {
            let Some(parked) = parked else { continue };
            model.truncate(2);
            assert_eq!(model.resume(parked), other == number, "model {number}, text of {other}");
            assert_eq!(model.cached().len(), if other == number { 3 } else { 2 });
        }
    }
}

#[test]
fn a_draft_model_drafts_as_from_a_fresh_start_after_returning_to_a_text() {
    let folder = tempfile::tempdir().unwrap();
    for label in ["llama", "qwen35", "phi3 with two lists of factors"] {
        let source = family(label).gguf(folder.path(), GgmlDType::Q8_0);
        let drafter = || -> Box<dyn Drafter> {
            let model = || ModelDrafter::new(loaded(&source), Vocabulary::Same(320), &[]);
            Box::new(model().drafted_by(model()))
        };
        assert_drafts_for(&source, &drafter, 5);
    }
}
