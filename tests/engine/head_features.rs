//! A draft head with constructed weights: the hidden states of a mock target encode the next token,
//! and the head decodes it and counts on. Every token that it drafts is accepted, whatever happened
//! before. A state that is a row off, a wrong tap or a state of a rejected token would show as a
//! rejection.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::{Device, Tensor};
use foretoken_engine::decoder::{Decoder, Progress, Request};
use foretoken_engine::draft::{Drafter, Drafters, EvaluationText, HeadDrafter, NgramDrafter};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::speculation::{DraftLength, DrafterChoice, Speculation, Tree};
use foretoken_engine::trace::{Drafted, Outcome};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, Logits, Model, Pass, Peak, Runner, Want};
use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_tests::{Flags, RandomHead, loaded, starter_target};

/// Period of the mock target's positions: a prime, so that no step other than one keeps their
/// order.
const PERIOD: usize = 61;

/// Index of the tapped state that encodes the position; the others are noise.
const ENCODING: usize = 1;

/// Token at a position, whatever precedes it. All are among the head's tokens.
fn token_at(position: usize) -> TokenId {
    (position * 23 % PERIOD) as TokenId * 3 + 302
}

/// Encodes a position in a state: a one at its index, and a constant one.
fn encode_position(position: usize, state: &mut [f32]) {
    state.fill(0.0);
    state[position % PERIOD] = 1.0;
    state[PERIOD] = 1.0;
}

/// Mock target whose likeliest next token depends only on the position, and whose middle state
/// encodes it.
struct EncodingTarget {
    config: ModelConfig,
    cached: Vec<TokenId>,
    logits: Vec<f32>,
    peaks: Vec<Peak>,
    /// Value of the noise in the present row.
    noise: f32,
    /// The states are NaN or infinite.
    broken: bool,
    features: Vec<f32>,
}

impl EncodingTarget {
    fn new(config: &ModelConfig, broken: bool) -> Self {
        let (config, logits, features) = (config.clone(), Vec::new(), Vec::new());
        Self { config, cached: Vec::new(), logits, peaks: Vec::new(), noise: 0.0, broken, features }
    }
}

impl Model for EncodingTarget {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn cached(&self) -> &[TokenId] {
        &self.cached
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        Pass::run(self, tree, want)
    }

    fn truncate(&mut self, length: usize) -> usize {
        self.cached.truncate(length);
        self.cached.len()
    }
}

impl Runner for EncodingTarget {
    fn extend(&mut self, tree: &TokenTree, first: usize, want: &Want<'_>) -> Result<()> {
        self.logits.clear();
        self.peaks.clear();
        self.features.clear();
        let (at, depths) = (self.cached.len() - first, tree.depths());
        self.cached.extend(tree.tokens().skip(first));
        for &depth in &depths[first..] {
            for state in 0..want.features.map_or(0, |taps| taps.entering.len()) {
                let from = self.features.len();
                self.noise = (self.noise + 0.37) % 1.0;
                self.features.resize(from + self.config.hidden, self.noise);
                if state == ENCODING {
                    encode_position(at + depth + 1, &mut self.features[from..]);
                }
                if self.broken {
                    self.features[from..].fill([f32::NAN, f32::INFINITY][state % 2]);
                }
            }
        }
        for node in want.rows_between(first, tree.len()) {
            let from = self.logits.len();
            self.logits.resize(from + self.config.vocabulary, 0.0);
            self.logits[from + token_at(at + depths[first + node] + 1) as usize] = 30.0;
            self.peaks.push(Peak::of(&self.logits[from..]));
        }
        Ok(())
    }

    fn logits(&self) -> Logits<'_> {
        Logits::of(&self.logits, &self.peaks)
    }

    fn features(&self) -> Option<Features<'_>> {
        (!self.features.is_empty()).then(|| Features::new(&self.features, 3 * self.config.hidden))
    }

    fn keep(&mut self, nodes: usize, path: &[usize]) -> Result<()> {
        let base = self.cached.len() - nodes;
        let kept: Vec<TokenId> = path.iter().map(|&node| self.cached[base + node]).collect();
        self.cached.truncate(base);
        self.cached.extend(kept);
        Ok(())
    }
}

/// A matrix with these values and zeros elsewhere.
fn matrix(rows: usize, columns: usize, set: impl IntoIterator<Item = (usize, usize, f32)>) -> Tensor {
    let mut numbers = vec![0.0; rows * columns];
    set.into_iter().for_each(|(row, column, number)| numbers[row * columns + column] = number);
    Tensor::from_vec(numbers, (rows, columns), &Device::Cpu).unwrap()
}

/// A head that copies the encoding state, adds nothing in attention, and advances by one position
/// in its feed-forward network. The gate is so large that its activation is the identity, which
/// makes the network a matrix.
fn decoding_head(folder: &Path, config: &ModelConfig) -> HeadDrafter {
    let source = starter_target();
    let mut head = RandomHead::new(config, Flags::default());
    head.entering = vec![1, 3, 5];
    let hidden = config.hidden;
    let (intermediate, queries) = head.inner();
    // Approximate factor of a norm on a state that encodes a position, because two components are
    // one.
    let normed = (hidden as f32 / 2.0).sqrt();
    let gate = 30.0;
    let positions = || 0..PERIOD;
    let before = |position: usize| (position + PERIOD - 1) % PERIOD;
    let position_of = |token: TokenId| (0..PERIOD).find(|&position| token_at(position) == token);
    let guesses = head.guessed.clone();
    let rows = guesses.iter().enumerate().filter_map(|(row, &token)| Some((row, position_of(token)?, 1.0)));
    let moves = positions().flat_map(|position| {
        [(position, before(position), 1.0 / normed), (position, position, -1.0 / normed)]
    });
    for (name, tensor) in [
        ("fc", matrix(hidden, 3 * hidden, (0..hidden).map(|at| (at, ENCODING * hidden + at, 1.0)))),
        ("lm_head", matrix(guesses.len(), hidden, rows)),
        ("midlayer.self_attn.o_proj", matrix(hidden, queries, [])),
        (
            "midlayer.mlp.gate_proj",
            matrix(intermediate, hidden, positions().map(|at| (at, PERIOD, gate / normed))),
        ),
        ("midlayer.mlp.up_proj", matrix(intermediate, hidden, moves)),
        ("midlayer.mlp.down_proj", matrix(hidden, intermediate, positions().map(|at| (at, at, 1.0 / gate)))),
        (
            "midlayer.post_attention_layernorm",
            Tensor::ones(hidden, candle_core::DType::F32, &Device::Cpu).unwrap(),
        ),
        ("norm", (Tensor::ones(hidden, candle_core::DType::F32, &Device::Cpu).unwrap() * 4.0).unwrap()),
    ] {
        assert!(head.tensors.insert(format!("{name}.weight"), tensor).is_some(), "{name}");
    }
    let head = head.gguf(folder, GgmlDType::F32).unwrap().for_target(&source).unwrap();
    HeadDrafter::new(&head, loaded(&head), &[]).unwrap()
}

/// The mock target, and its drafters: the head and n-grams.
fn decoder_and_drafters(broken: bool) -> (Decoder, Drafters) {
    let (folder, source) = (tempfile::tempdir().unwrap(), starter_target());
    let config = source.config().unwrap();
    let tokenizer = Arc::new(source.tokenizer().unwrap());
    let both: Vec<Box<dyn Drafter>> =
        vec![Box::new(decoding_head(folder.path(), config)), Box::<NgramDrafter>::default()];
    (Decoder::new(Box::new(EncodingTarget::new(config, broken)), tokenizer), Drafters::new(both))
}

#[test]
fn an_evaluated_head_observes_the_same_states_as_in_a_reply() {
    let (mut decoder, mut drafters) = decoder_and_drafters(false);
    let text: Vec<TokenId> = (0..150).map(token_at).collect();
    let go_on = &mut || ControlFlow::Continue(());
    let target = decoder.target_mut();
    let prepared = EvaluationText::prepare(target, &text, &Sampling::greedy(), go_on).unwrap().unwrap();
    // The second time it has observed part of the text already.
    for _ in 0..2 {
        let head = drafters.first().unwrap();
        let evaluation = prepared.evaluate(target, head, go_on).unwrap().unwrap();
        assert!(evaluation.acceptance > 0.999 && evaluation.tokens > 90, "{evaluation:?}");
    }
}

#[test]
fn nan_and_infinite_states_change_no_text() {
    let (mut decoder, mut drafters) = decoder_and_drafters(true);
    for sampling in [Sampling::greedy(), Sampling { seed: Some(3), ..Sampling::default() }] {
        for tree in [1, 3].map(Tree::Width) {
            let speculation = Speculation { tree, ..Speculation::fixed(4) };
            let prompt = (0..40).map(token_at).collect();
            let (max_tokens, sampling) = (Some(20), sampling.clone());
            let request =
                Request { sampling, speculation, max_tokens, ignore_end: true, ..Request::new(prompt) };
            let reply = decoder.reply(&request, &mut drafters, &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(reply.tokens, (40..60).map(token_at).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_head_that_decodes_the_next_token_from_hidden_states_is_always_accepted() {
    let (mut decoder, mut drafters) = decoder_and_drafters(false);
    let mut random = 5u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut text: Vec<TokenId> = Vec::new();
    let (mut accepted, mut wrong_others) = (0, 0);
    for reply in 0..200 {
        // The next turn, an edit, or a new text, with tokens that n-grams continue wrongly.
        text.truncate(if next(3) == 0 { next(text.len() + 1) } else { text.len() });
        text.truncate(300);
        let wrong = next(20);
        text.extend((0..20 + next(30)).map(|at| token_at(at) + TokenId::from(at == wrong)));
        let choice = [DrafterChoice::Combined, DrafterChoice::Model, DrafterChoice::Ngram][next(3)];
        let length = match next(6) {
            0 => DraftLength::Auto,
            1 => DraftLength::Off,
            _ => DraftLength::Fixed(1 + next(8) as u32),
        };
        let speculation = Speculation {
            drafter: choice,
            length,
            tree: Tree::Width(1 + next(3) as u32),
            ..Speculation::default()
        };
        let sampling = match next(2) {
            0 => Sampling::greedy(),
            _ => Sampling {
                temperature: 0.7,
                seed: Some(reply),
                mode: Mode::Reproducible,
                ..Sampling::default()
            },
        };
        let stopped = next(3) == 0;
        let request = Request {
            sampling,
            speculation,
            max_tokens: Some(40),
            ignore_end: true,
            ..Request::new(text.clone())
        };
        let mut rounds = 0;
        let found = decoder.reply(&request, &mut drafters, &mut |progress| {
            if let Progress::Round(round) = progress {
                rounds += 1;
                let heads = || round.drafted.iter().filter(|drafted| drafted.drafter == DrafterKind::Head);
                let right = || heads().filter(|drafted| drafted.outcome == Outcome::Accepted);
                let wrong = heads().filter(|drafted| drafted.outcome == Outcome::Rejected);
                // Another guess for the same position, of which there may be several.
                let beside = |wrong: &Drafted| right().any(|right| right.parent == wrong.parent);
                assert!(wrong.into_iter().all(beside), "reply {reply}: {round:?}");
                accepted += right().count();
                let others = round.drafted.iter().filter(|drafted| drafted.drafter != DrafterKind::Head);
                wrong_others += others.filter(|drafted| drafted.outcome == Outcome::Rejected).count();
            }
            if stopped && rounds > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let written = found.unwrap();
        let expected: Vec<TokenId> = (text.len()..text.len() + written.tokens.len()).map(token_at).collect();
        assert_eq!(written.tokens, expected);
        text.extend(written.tokens);
    }
    assert!(accepted > 800, "only {accepted} tokens of the head were accepted");
    assert!(wrong_others > 5, "only {wrong_others} tokens of others were rejected");
}
