//! Distribution of the texts that the production decoder and drafters write by sampling: the
//! frequencies of 20,000 replies (60,000 in `make nightly`) against the target's probabilities, by
//! chi-square with fixed seeds at alpha 1e-4.

use std::ops::ControlFlow;
use std::sync::Arc;

use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::distribution::Distribution;
use foretoken_engine::draft::{Drafter, Drafters, Intersection, ModelDrafter, NgramDrafter, Vocabulary};
use foretoken_engine::speculation::{Speculation, Staged, Threshold, Tree, Verification};
use foretoken_forward::Row;
use foretoken_model::ModelConfig;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_tests::{TableModel, loaded, nightly_or, starter_target};

use super::statistics::critical;

/// Tokens that have a probability.
const LIKELY: usize = 5;
/// Tokens of a reply.
const LENGTH: usize = 3;
const CONTEXT: usize = 512;
/// Tokens of the prompt, enough to measure costs with.
const PROMPT: u32 = 200;

/// Logits of `vocabulary` tokens after each of the first [`LIKELY`], which alone have a
/// probability. Two models of different `taste` differ everywhere.
fn table(vocabulary: usize, taste: usize) -> Vec<Vec<f32>> {
    let logit = |token: usize, next: usize| match next {
        0..LIKELY => ((token * 5 + next * 7 + taste * 3) % 9) as f32 / 4.0,
        _ => f32::NEG_INFINITY,
    };
    (0..LIKELY).map(|token| (0..vocabulary).map(|next| logit(token, next)).collect()).collect()
}

/// Decoder with a table model, whose drafters draft with another one.
struct Pair {
    decoder: Decoder,
    drafters: Drafters,
    vocabulary: usize,
}

impl Pair {
    fn new(vocabulary: usize, by: Vocabulary) -> Self {
        let source = starter_target();
        let config: ModelConfig = loaded(&source).config().clone();
        let tokenizer = Arc::new(source.tokenizer().unwrap());
        let model = |taste| Box::new(TableModel::new(&config, CONTEXT, table(vocabulary, taste)));
        let draft = ModelDrafter::new(model(1), by, &[]);
        let drafters: Vec<Box<dyn Drafter>> = vec![Box::new(draft), Box::<NgramDrafter>::default()];
        Self { decoder: Decoder::new(model(0), tokenizer), drafters: Drafters::new(drafters), vocabulary }
    }

    fn small() -> Self {
        Self::new(LIKELY, Vocabulary::Same(LIKELY))
    }

    /// Chi-square of the replies' frequencies against the probabilities under `expected`.
    fn chi_square(&mut self, sampling: &Sampling, expected: &Sampling, speculation: &Speculation) -> f64 {
        let mut counts = vec![0u32; LIKELY.pow(LENGTH as u32)];
        let replies: u32 = nightly_or(60_000, 20_000);
        let mut accepted = 0;
        let prompt: Vec<TokenId> =
            (0..PROMPT).map(|place| (place * place / 7 + place) % LIKELY as u32).collect();
        for seed in 0..replies {
            let request = Request {
                sampling: Sampling { seed: Some(seed), ..sampling.clone() },
                speculation: speculation.clone(),
                max_tokens: Some(LENGTH),
                ignore_end: true,
                ..Request::new(prompt.clone())
            };
            let go_on = &mut |_: foretoken_engine::decoder::Progress<'_>| ControlFlow::Continue(());
            let reply = self.decoder.reply(&request, &mut self.drafters, go_on).unwrap();
            assert_eq!(reply.tokens.len(), LENGTH);
            accepted += reply.summary.accepted;
            counts[cell(&reply.tokens)] += 1;
        }
        assert!(accepted > replies / 5, "only {accepted} drafted tokens were accepted: nothing was tested");
        let rows = table(self.vocabulary, 0);
        let next =
            |token: TokenId| Distribution::processed(Row::of(&rows[token as usize]), expected, &[]).unwrap();
        let terms = (0..counts.len()).map(|cell| {
            let tokens = tokens(cell);
            let before = [&prompt[prompt.len() - 1..], &tokens].concat();
            let chances = before.windows(2).map(|pair| next(pair[0]).probability(pair[1]));
            let mean = f64::from(replies) * chances.product::<f64>();
            if mean > 0.0 { (f64::from(counts[cell]) - mean).powi(2) / mean } else { f64::from(counts[cell]) }
        });
        terms.sum()
    }

    #[track_caller]
    fn assert_exact(&mut self, sampling: &Sampling, speculation: &Speculation) {
        let found = self.chi_square(sampling, sampling, speculation);
        let critical = critical((LIKELY.pow(LENGTH as u32) - 1) as f64);
        assert!(found < critical, "chi-square {found:.1}, critical {critical:.1}: {speculation:?}");
    }
}

/// Index of a reply among all replies, and back.
fn cell(tokens: &[TokenId]) -> usize {
    tokens.iter().fold(0, |cell, &token| cell * LIKELY + token as usize)
}

fn tokens(cell: usize) -> [TokenId; LENGTH] {
    std::array::from_fn(|place| (cell / LIKELY.pow((LENGTH - 1 - place) as u32) % LIKELY) as TokenId)
}

fn drawn() -> Sampling {
    Sampling { temperature: 1.0, top_p: 1.0, mode: Mode::Fastest, ..Sampling::greedy() }
}

fn chain(verification: Verification) -> Speculation {
    Speculation { verification, ..Speculation::fixed(2) }
}

#[test]
fn replies_with_drafted_chains_follow_the_target() {
    for verification in [Verification::Token, Verification::Block] {
        Pair::small().assert_exact(&drawn(), &chain(verification));
    }
}

#[test]
fn replies_with_filters_follow_the_processed_target() {
    let filtered = Sampling { temperature: 1.3, top_k: 4, top_p: 0.95, min_p: 0.05, ..drawn() };
    let found = Pair::small().chi_square(&filtered, &filtered, &chain(Verification::Block));
    // Some replies have probability 0.
    assert!(found < critical((LIKELY.pow(LENGTH as u32) - 1) as f64), "chi-square {found:.1}");
}

#[test]
fn replies_with_drafted_trees_follow_the_target() {
    let tree = Speculation { tree: Tree::Width(3), ..Speculation::fixed(2) };
    Pair::small().assert_exact(&drawn(), &tree);
}

#[test]
fn replies_with_staged_drafts_follow_the_target() {
    let staged = Speculation { staged: Staged::On, ..chain(Verification::Block) };
    Pair::small().assert_exact(&drawn(), &staged);
}

#[test]
fn replies_with_drafts_cut_by_confidence_follow_the_target() {
    let cut = Speculation { threshold: Threshold::Fixed(0.35), ..chain(Verification::Block) };
    Pair::small().assert_exact(&drawn(), &cut);
}

#[test]
fn replies_with_a_draft_of_another_vocabulary_follow_the_target() {
    let tokenizer = starter_target().tokenizer().unwrap();
    let both = Intersection::of(&tokenizer, &tokenizer);
    let mut pair = Pair::new(tokenizer.vocabulary(), Vocabulary::Intersection(Box::new(both)));
    pair.assert_exact(&drawn(), &chain(Verification::Block));
}

#[test]
fn the_test_detects_a_slightly_warmer_target() {
    let warmer = Sampling { temperature: nightly_or(1.05, 1.1), ..drawn() };
    let found = Pair::small().chi_square(&warmer, &drawn(), &chain(Verification::Block));
    assert!(found > critical((LIKELY.pow(LENGTH as u32) - 1) as f64), "chi-square {found:.1}");
}
