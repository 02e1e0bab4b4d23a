//! Models whose numbers overflow, and drafts that panic: a target ends its reply with a sentence,
//! and a draft is dropped with a reason while its target writes on. Replies that end within a
//! character.

use std::ops::ControlFlow;
use std::path::Path;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Progress, Reply, Request};
use foretoken_engine::draft::{
    Cost, Draft, DraftRequest, Drafter, Drafters, ModelDrafter, NgramDrafter, Observation, Vocabulary,
};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::{ModelSource, Tokenizer};
use foretoken_testkit::{Gguf, HIDDEN, VOCABULARY};
use foretoken_tests::{decoder, loaded};

/// A model of a few kilobytes; with `broken`, its last norm has finite weights that overflow.
fn model(folder: &Path, broken: bool) -> ModelSource {
    let mut gguf = Gguf::tiny();
    if broken {
        let weights = Tensor::full(3e38f32, HIDDEN, &Device::Cpu).unwrap();
        let weights = QTensor::quantize(&weights, GgmlDType::F32).unwrap();
        gguf.tensors.insert("output_norm.weight".to_owned(), weights);
    }
    ModelSource::open(&gguf.write(folder)).unwrap()
}

fn samplings() -> [Sampling; 4] {
    let fastest = Sampling { seed: Some(3), mode: Mode::Fastest, ..Sampling::default() };
    [
        Sampling::greedy(),
        Sampling { mode: Mode::Reproducible, ..fastest.clone() },
        Sampling { top_k: 5, repetition_penalty: 1.2, ..fastest.clone() },
        Sampling { temperature: 1.0, top_p: 1.0, ..fastest },
    ]
}

fn request(sampling: &Sampling) -> Request {
    Request {
        sampling: sampling.clone(),
        speculation: Speculation::fixed(3),
        max_tokens: Some(20),
        ignore_end: true,
        ..Request::new("Hello, hello".bytes().map(u32::from).collect())
    }
}

fn write(decoder: &mut Decoder, request: &Request, drafters: &mut Drafters) -> Result<Reply> {
    decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn a_target_without_a_finite_score_ends_the_reply_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let mut decoder = decoder(&model(folder.path(), true));
    for sampling in samplings() {
        for mut drafters in [Drafters::default(), Drafters::one(NgramDrafter::default())] {
            let mut rounds = 0;
            let reply = decoder.reply(&request(&sampling), &mut drafters, &mut |progress| {
                rounds += usize::from(matches!(progress, Progress::Round(_)));
                ControlFlow::Continue(())
            });
            let error = reply.map(|reply| reply.tokens).unwrap_err();
            assert!(matches!(error, Error::NotFinite), "{error}");
            assert!(error.to_string().starts_with("the model computed no usable score"), "{error}");
            assert_eq!(rounds, 0);
        }
    }
}

#[test]
fn a_draft_without_a_finite_score_is_dropped_with_its_reason_and_the_target_writes_on() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let target = model(folders[0].path(), false);
    let broken = model(folders[1].path(), true);
    let tokenizer: Tokenizer = target.tokenizer().unwrap();
    let mut decoder = decoder(&target);
    for sampling in samplings() {
        for tree in [Tree::Off, Tree::Width(2)] {
            let base = request(&sampling);
            let speculation = Speculation { tree, ..base.speculation.clone() };
            let request = Request { speculation, ..base };
            let off = Request { speculation: Speculation::off(), ..request.clone() };
            let plain = write(&mut decoder, &off, &mut Drafters::default()).unwrap();
            let vocabulary = Vocabulary::Same(VOCABULARY);
            let drafter = ModelDrafter::new(loaded(&broken), vocabulary, tokenizer.ends());
            let mut drafters = Drafters::one(drafter);
            let reply = write(&mut decoder, &request, &mut drafters).unwrap();
            assert_eq!(reply.tokens.len(), 20);
            if sampling.is_greedy() || sampling.mode == Mode::Reproducible {
                assert_eq!(reply.tokens, plain.tokens);
            }
            assert_eq!(reply.summary.drafted, 0, "{sampling:?}");
            let reason = drafters.failure().unwrap();
            assert!(reason.starts_with("the model computed no usable score"), "{reason}");
        }
    }
}

/// Methods of a drafter that panic.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PanicIn {
    Prepare,
    Draft,
    Observe,
    Remember,
}

/// A drafter whose one method panics.
struct Panicking(PanicIn, usize);

impl Panicking {
    fn call(&self, method: PanicIn) {
        assert!(self.0 != method, "a scripted panic");
    }
}

impl Drafter for Panicking {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Model
    }

    fn prepare(
        &mut self,
        _: &Context,
        _: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.call(PanicIn::Prepare);
        Ok(ControlFlow::Continue(()))
    }

    fn draft(&mut self, _: &Context, _: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        self.1 += 1;
        self.call(PanicIn::Draft);
        Ok(Draft::default())
    }

    fn observe(&mut self, _: &Observation<'_>) -> Result<()> {
        self.call(PanicIn::Observe);
        Ok(())
    }

    fn remember(&mut self, _: &[Vec<u32>]) {
        self.call(PanicIn::Remember);
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}

#[test]
fn a_draft_that_panics_is_dropped_and_never_asked_again_and_the_target_writes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut decoder = decoder(&model(folder.path(), false));
    let request = request(&Sampling::greedy());
    let plain = write(&mut decoder, &request, &mut Drafters::default()).unwrap();
    for method in [PanicIn::Prepare, PanicIn::Draft, PanicIn::Observe, PanicIn::Remember] {
        let members: Vec<Box<dyn Drafter>> =
            vec![Box::new(Panicking(method, 0)), Box::<NgramDrafter>::default()];
        let mut drafters = Drafters::new(members);
        drafters.remember(&[vec![1, 2, 3]]);
        for _ in 0..2 {
            let reply = write(&mut decoder, &request, &mut drafters).unwrap();
            assert_eq!(reply.tokens, plain.tokens, "{method:?}");
            assert!(drafters.has_failed(DrafterKind::Model), "{method:?}");
            let reason = drafters.failure().unwrap();
            assert!(reason.contains("internal error"), "{reason}");
        }
    }
}

#[test]
fn a_reply_that_ends_within_a_character_is_continued_to_the_whole_text() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path(), false);
    let tokenizer = source.tokenizer().unwrap();
    let mut decoder = decoder(&source);
    let mut cut = 0;
    for seed in 0..4 {
        // Nearly all bytes are as likely, also those that begin a character.
        let (seed, mode) = (Some(seed), Mode::Reproducible);
        let sampling = Sampling { temperature: 5.0, top_p: 1.0, seed, mode, ..Sampling::default() };
        let base = Request { continues: true, ..request(&sampling) };
        let whole = write(&mut decoder, &base, &mut Drafters::default()).unwrap();
        for length in 1..20 {
            let first = Request { max_tokens: Some(length), ..base.clone() };
            let first = write(&mut decoder, &first, &mut Drafters::default()).unwrap();
            let unfinished = first.summary.unfinished.clone();
            cut += usize::from(!unfinished.is_empty());
            // The last bytes again, as a stored reply has them.
            let mut prompt = base.prompt.clone();
            prompt.extend(&first.tokens[..first.tokens.len() - unfinished.len()]);
            prompt.extend(tokenizer.byte_tokens(&unfinished));
            let rest = Request { prompt, unfinished, max_tokens: Some(20 - length), ..base.clone() };
            let rest = write(&mut decoder, &rest, &mut Drafters::default()).unwrap();
            assert_eq!(first.text + &rest.text, whole.text, "cut after {length} tokens");
        }
    }
    assert!(cut > 5, "only {cut} replies ended within a character");
}
