//! Exact enumeration: the acceptance rule is driven through every branch of chance on a toy model,
//! and the joint distribution of the tokens it emits must be the target's to 1e-12.

use std::collections::HashMap;
use std::convert::Infallible;

use foretoken_engine::accept::{Guess, Verdict, accept};
use foretoken_engine::distribution::Distribution;
use foretoken_engine::forward::Row;
use foretoken_engine::random::Randomness;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::trace::TokenId;
use proptest::prelude::*;

const VOCABULARY: usize = 3;
const LENGTH: usize = 4;
const TOLERANCE: f64 = 1e-12;

/// Takes one branch after the other in place of drawing, and knows the weight of where it is.
#[derive(Default)]
struct Oracle {
    /// Branch taken at each choice, and how many there were.
    path: Vec<(usize, usize)>,
    depth: usize,
    weight: f64,
}

impl Oracle {
    fn choose(&mut self, weights: &[f64]) -> usize {
        if self.depth == self.path.len() {
            self.path.push((0, weights.len()));
        }
        let (branch, branches) = self.path[self.depth];
        assert_eq!(branches, weights.len(), "the same choices must come up again");
        self.depth += 1;
        self.weight *= weights[branch];
        branch
    }

    /// Moves on to the next leaf; false after the last.
    fn advance(&mut self) -> bool {
        while let Some((branch, branches)) = self.path.pop() {
            if branch + 1 < branches {
                self.path.push((branch + 1, branches));
                return true;
            }
        }
        false
    }

    fn leaves(mut visit: impl FnMut(&mut Self)) -> usize {
        let mut oracle = Self::default();
        let mut leaves = 0;
        loop {
            (oracle.depth, oracle.weight) = (0, 1.0);
            visit(&mut oracle);
            leaves += 1;
            if !oracle.advance() {
                return leaves;
            }
        }
    }
}

impl Randomness for Oracle {
    fn accepts(&mut self, probability: f64) -> bool {
        match probability {
            ..=0.0 => false,
            1.0.. => true,
            _ => self.choose(&[probability, 1.0 - probability]) == 0,
        }
    }

    fn draw(&mut self, _: usize, distribution: &Distribution) -> TokenId {
        let weights: Vec<f64> = distribution.entries().iter().map(|&(_, weight)| weight).collect();
        distribution.entries()[self.choose(&weights)].0
    }
}

/// A model that is a table: logits for every prefix.
#[derive(Debug, Clone)]
struct Toy {
    rows: Vec<[f32; VOCABULARY]>,
    sampling: Sampling,
}

impl Toy {
    fn next(&self, prefix: &[TokenId]) -> Distribution {
        let index = prefix.iter().fold(1, |index, &token| index * (VOCABULARY + 1) + token as usize + 1);
        Distribution::processed(Row::of(&self.rows[index % self.rows.len()]), &self.sampling, prefix)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Drafting {
    /// Drawn from the draft's distribution.
    Drawn,
    /// The draft's likeliest token, as a certain guess.
    Certain,
    /// The same, but passed off as drawn from the softmax.
    Pretended,
}

struct Pair {
    target: Toy,
    draft: Toy,
    drafting: Drafting,
    draft_length: usize,
}

impl Pair {
    fn guess(&self, context: &[TokenId], oracle: &mut Oracle) -> Guess {
        let q = self.draft.next(context);
        let likeliest = q.entries().iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0;
        let (token, drawn_from) = match self.drafting {
            Drafting::Drawn => (oracle.draw(context.len(), &q), Some(q)),
            Drafting::Certain => (likeliest, None),
            Drafting::Pretended => (likeliest, Some(q)),
        };
        Guess { token, drawn_from, probability: 1.0 }
    }

    /// The joint distribution of the first tokens that decoding by `rule` emits.
    fn decode(&self, rule: Rule) -> HashMap<Vec<TokenId>, f64> {
        let mut joint = HashMap::new();
        Oracle::leaves(|oracle| {
            let mut text = Vec::new();
            while text.len() < LENGTH {
                self.round(rule, &mut text, oracle);
            }
            *joint.entry(text).or_insert(0.0) += oracle.weight;
        });
        joint
    }

    fn round(&self, rule: Rule, text: &mut Vec<TokenId>, oracle: &mut Oracle) {
        let start = text.len();
        let mut context = text.clone();
        let mut guesses = Vec::new();
        // As the decoder does: no draft reaches beyond the end.
        for _ in 0..self.draft_length.min(LENGTH - start - 1) {
            let guess = self.guess(&context, oracle);
            context.push(guess.token);
            guesses.push(guess);
        }
        let verdict = rule(&guesses, &mut |row| self.target.next(&context[..start + row]), oracle);
        text.extend(guesses[..verdict.accepted].iter().map(|guess| guess.token));
        text.push(verdict.extra);
    }

    /// Half the summed difference to the target's own joint distribution.
    fn total_variation(&self, rule: Rule) -> f64 {
        let mut joint = self.decode(rule);
        let mut difference = 0.0;
        Oracle::leaves(|oracle| {
            let mut text = Vec::new();
            while text.len() < LENGTH {
                text.push(oracle.draw(text.len(), &self.target.next(&text)));
            }
            difference += (joint.remove(&text).unwrap_or(0.0) - oracle.weight).abs();
        });
        // What is left the target would never have written.
        (difference + joint.values().sum::<f64>()) / 2.0
    }
}

type Target<'a> = &'a mut dyn FnMut(usize) -> Distribution;
type Rule = fn(&[Guess], Target<'_>, &mut Oracle) -> Verdict;

fn as_shipped(guesses: &[Guess], target: Target<'_>, oracle: &mut Oracle) -> Verdict {
    accept(guesses, 0, |row| Ok::<_, Infallible>(target(row)), oracle).unwrap()
}

fn row() -> impl Strategy<Value = [f32; VOCABULARY]> {
    // Equal logits make ties, -inf makes zeros and, between two models, disjoint supports.
    let logit = prop_oneof![6 => -3f32..3.0, 2 => Just(0.5f32), 2 => Just(f32::NEG_INFINITY)];
    prop::array::uniform3(logit).prop_map(|mut row| {
        if row.iter().all(|logit| logit.is_infinite()) {
            row[0] = 0.0;
        }
        row
    })
}

fn sampling() -> impl Strategy<Value = Sampling> {
    let temperature = prop_oneof![Just(0f32), Just(1e-3), Just(0.7), Just(1.0), Just(2.0)];
    let top_k = prop_oneof![3 => Just(0u32), 1 => Just(1), 1 => Just(2)];
    let top_p = prop_oneof![2 => Just(1f32), 1 => Just(0.6)];
    let min_p = prop_oneof![2 => Just(0f32), 1 => Just(0.3)];
    let penalty = prop_oneof![2 => Just(1f32), 1 => Just(1.5), 1 => Just(0.7)];
    (temperature, top_k, top_p, min_p, penalty).prop_map(
        |(temperature, top_k, top_p, min_p, repetition_penalty)| Sampling {
            temperature,
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            ..Sampling::default()
        },
    )
}

fn pair() -> impl Strategy<Value = Pair> {
    let rows = || prop::collection::vec(row(), 1..30);
    let drafting = prop_oneof![Just(Drafting::Drawn), Just(Drafting::Certain)];
    (rows(), rows(), sampling(), sampling(), drafting, 0usize..LENGTH, any::<[bool; 2]>()).prop_map(
        |(target, draft, ours, theirs, drafting, draft_length, [same_rows, same_sampling])| {
            let draft = if same_rows { target.clone() } else { draft };
            let theirs = if same_sampling { ours.clone() } else { theirs };
            Pair {
                target: Toy { rows: target, sampling: ours },
                draft: Toy { rows: draft, sampling: theirs },
                drafting,
                draft_length,
            }
        },
    )
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { target, draft, drafting, draft_length } = self;
        write!(f, "{drafting:?} x {draft_length}\ntarget {target:?}\ndraft {draft:?}")
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_emitted_text_has_exactly_the_targets_distribution(pair in pair()) {
        let found = pair.total_variation(as_shipped);
        prop_assert!(found < TOLERANCE, "total variation {found:e}");
    }
}

/// A pair on which every mistake below shows.
fn telling_pair(drafting: Drafting) -> Pair {
    let sampling = Sampling { temperature: 1.0, top_p: 1.0, ..Sampling::default() };
    let toy = |shift: usize| Toy {
        rows: (0..11).map(|i| [0, 1, 2].map(|t| ((i * 5 + t * 7 + shift * 3) % 9) as f32 / 3.0)).collect(),
        sampling: sampling.clone(),
    };
    Pair { target: toy(0), draft: toy(1), drafting, draft_length: 3 }
}

#[track_caller]
fn assert_caught(pair: &Pair, mutant: Rule) {
    assert!(pair.total_variation(as_shipped) < TOLERANCE, "the pair itself must be sound");
    let found = pair.total_variation(mutant);
    assert!(found > 1e-3, "the mistake went unseen: total variation {found:e}");
}

#[test]
fn dropping_the_last_accepted_token_is_caught() {
    assert_caught(&telling_pair(Drafting::Drawn), |guesses, target, oracle| {
        let verdict = as_shipped(guesses, target, oracle);
        Verdict { accepted: verdict.accepted.saturating_sub(1), ..verdict }
    });
}

#[test]
fn an_argmax_draft_that_claims_its_softmax_is_caught() {
    let pair = telling_pair(Drafting::Pretended);
    let found = pair.total_variation(as_shipped);
    assert!(found > 1e-3, "the mistake went unseen: total variation {found:e}");
}

#[test]
fn recovering_from_the_target_instead_of_the_residual_is_caught() {
    assert_caught(&telling_pair(Drafting::Drawn), |guesses, target, oracle| {
        for (accepted, guess) in guesses.iter().enumerate() {
            let p = target(accepted);
            let q = guess.drawn_from.as_ref().unwrap().probability(guess.token);
            if !oracle.accepts(p.probability(guess.token) / q) {
                return Verdict { accepted, extra: oracle.draw(0, &p) };
            }
        }
        Verdict { accepted: guesses.len(), extra: oracle.draw(0, &target(guesses.len())) }
    });
}

#[test]
fn a_bonus_token_from_the_wrong_row_is_caught() {
    assert_caught(&telling_pair(Drafting::Drawn), |guesses, target, oracle| {
        let last = guesses.len();
        as_shipped(guesses, &mut |row| target(if row == last { last.saturating_sub(1) } else { row }), oracle)
    });
}

#[test]
fn accepting_without_looking_is_caught() {
    assert_caught(&telling_pair(Drafting::Certain), |guesses, target, oracle| Verdict {
        accepted: guesses.len(),
        extra: oracle.draw(0, &target(guesses.len())),
    });
}

#[test]
fn the_oracle_visits_every_leaf_once() {
    let mut total = 0.0;
    let leaves = Oracle::leaves(|oracle| {
        let first = oracle.choose(&[0.5, 0.25, 0.25]);
        if first > 0 {
            oracle.accepts(0.125);
        }
        total += oracle.weight;
    });
    assert_eq!((leaves, total), (5, 1.0));
}
