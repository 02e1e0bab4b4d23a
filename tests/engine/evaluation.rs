//! Offline evaluation of drafts, and loading with progress and cancellation.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use foretoken_engine::decoder::Request;
use foretoken_engine::draft::{Drafters, Evaluation, EvaluationText, ModelDrafter, Vocabulary};
use foretoken_engine::speculation::Speculation;
use foretoken_forward::load;
use foretoken_model::error::Error;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Tokenizer};
use foretoken_tests::{chat_prompt, decoder, loaded, model_drafter, starter_draft, starter_target};

/// A story by the starter target, with its prompt.
fn story() -> Vec<TokenId> {
    let mut decoder = decoder(&starter_target());
    let prompt = chat_prompt(&starter_target(), decoder.tokenizer(), "Tell me a story about a red kite.");
    let request =
        Request { sampling: Sampling::greedy(), max_tokens: Some(120), ..Request::new(prompt.clone()) };
    let reply =
        decoder.reply(&request, &mut Drafters::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    [prompt, reply.tokens].concat()
}

fn evaluate(
    text: &[TokenId],
    source: &ModelSource,
    tokenizer: &Tokenizer,
    sampling: &Sampling,
) -> Evaluation {
    let vocabulary = Vocabulary::Same(tokenizer.vocabulary());
    let mut drafter = ModelDrafter::new(loaded(source), vocabulary, tokenizer.ends());
    let mut target = loaded(&starter_target());
    let go_on = &mut || ControlFlow::Continue(());
    let prepared = EvaluationText::prepare(target.as_mut(), text, sampling, go_on).unwrap().unwrap();
    prepared.evaluate(target.as_mut(), &mut drafter, go_on).unwrap().unwrap()
}

#[test]
fn an_evaluation_predicts_the_acceptance_of_a_reply() {
    let text = story();
    let tokenizer = starter_target().tokenizer().unwrap();
    let greedy = evaluate(&text, &starter_draft(), &tokenizer, &Sampling::greedy());
    assert_eq!(greedy.tokens, 96);
    assert!(greedy.plain_tokens_per_second > 0.0 && greedy.speedup() >= 1.0, "{greedy:?}");

    let mut decoder = decoder(&starter_target());
    let mut drafters = Drafters::one(model_drafter(decoder.tokenizer()));
    let request = Request {
        sampling: Sampling::greedy(),
        speculation: Speculation::fixed(1),
        max_tokens: Some(120),
        ..Request::new(text[..text.len() - 120].to_vec())
    };
    let reply = decoder.reply(&request, &mut drafters, &mut |_| ControlFlow::Continue(())).unwrap();
    let found = f64::from(reply.summary.accepted) / f64::from(reply.summary.judged);
    assert!((greedy.acceptance - found).abs() < 0.15, "predicted {}, found {found}", greedy.acceptance);
}

#[test]
fn a_draft_that_is_the_target_is_always_accepted() {
    let text = story();
    let tokenizer = starter_target().tokenizer().unwrap();
    for sampling in [Sampling::greedy(), Sampling { temperature: 0.8, top_p: 0.9, ..Sampling::default() }] {
        let evaluation = evaluate(&text, &starter_target(), &tokenizer, &sampling);
        assert!(evaluation.acceptance > 0.999_999, "{evaluation:?}");
        let other = evaluate(&text, &starter_draft(), &tokenizer, &sampling);
        assert!((0.3..0.99).contains(&other.acceptance), "{other:?}");
    }
}

#[test]
fn an_evaluation_can_be_cancelled() {
    let text = story();
    let mut drafter = model_drafter(&starter_target().tokenizer().unwrap());
    let mut target = loaded(&starter_target());
    for passes in [0, 3, 40] {
        let mut left = passes;
        let mut go_on = || {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let greedy = Sampling::greedy();
        let prepared = EvaluationText::prepare(target.as_mut(), &text, &greedy, &mut go_on).unwrap();
        let evaluation = prepared
            .and_then(|prepared| prepared.evaluate(target.as_mut(), &mut drafter, &mut go_on).unwrap());
        assert_eq!(evaluation, None);
    }
}

#[test]
fn loading_is_watched_from_the_first_byte_and_can_be_cancelled() {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let watched = |most: usize| {
        let reported = Arc::clone(&reported);
        starter_target().watched_by(Arc::new(move |done, total| {
            let mut reported = reported.lock().unwrap();
            reported.push((done, total));
            if reported.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }))
    };
    let device = foretoken_forward::device::Device::Cpu;
    load(&watched(usize::MAX), &device).unwrap();
    let whole = std::mem::take(&mut *reported.lock().unwrap());
    assert!(whole.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 == pair[1].1));
    let (last, total) = *whole.last().unwrap();
    assert_eq!(last, total);
    assert!(matches!(load(&watched(3), &device), Err(Error::Cancelled)));
    assert_eq!(reported.lock().unwrap().len(), 4);
}

#[test]
fn memory_grows_with_the_context_up_to_the_models_own() {
    let source = starter_target();
    let (file, config) = (std::fs::metadata(source.path()).unwrap().len(), source.config().unwrap());
    let [none, some, all, more] = [0, 100, config.context, 1 << 30].map(|n| source.memory_bytes(n).unwrap());
    assert!(none > file - 1_000_000 && none < file + 60_000_000, "{none} of {file}");
    let position = 2 * 2 * config.depth() * config.kv_heads() * config.head_size();
    assert_eq!(some - none, 100 * position as u64);
    assert_eq!(all, more);
}
