//! Production random generators: frequencies of a million draws against the intended distribution,
//! by chi-square with fixed seeds at alpha 1e-4.

use std::convert::Infallible;
use std::sync::Arc;

use foretoken_engine::accept::{Guess, Guesses, accept};
use foretoken_engine::distribution::Distribution;
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::random::{Generator, Randomness};
use foretoken_engine::speculation::Verification;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;

const DRAWS: usize = 1_000_000;
const VOCABULARY: u32 = 50;

fn zipf(shift: u32) -> Distribution {
    let weight = |token| 1.0 / f64::from(1 + (token + shift) % VOCABULARY);
    Distribution::from_weights((0..VOCABULARY).map(|token| (token, weight(token)))).unwrap()
}

fn generator(mode: Mode, seed: u32) -> Generator {
    Generator::new(&Sampling { mode, seed: Some(seed), ..Sampling::default() })
}

/// Value that chi-square with `freedom` degrees exceeds with probability 1e-4 (Wilson and Hilferty
/// 1931).
pub fn critical(freedom: f64) -> f64 {
    const NORMAL_QUANTILE: f64 = 3.719;
    let spread = 2.0 / (9.0 * freedom);
    freedom * (1.0 - spread + NORMAL_QUANTILE * spread.sqrt()).powi(3)
}

fn chi_square(counts: &[usize], expected: &Distribution) -> f64 {
    let draws = counts.iter().sum::<usize>() as f64;
    let cell = |token: usize| {
        let mean = draws * expected.probability(token as TokenId);
        (counts[token] as f64 - mean).powi(2) / mean
    };
    (0..counts.len()).map(cell).sum()
}

fn statistic(expected: &Distribution, mut draw: impl FnMut(usize) -> TokenId) -> f64 {
    let mut counts = vec![0; VOCABULARY as usize];
    (0..DRAWS).for_each(|index| counts[draw(index) as usize] += 1);
    chi_square(&counts, expected)
}

#[track_caller]
fn assert_follows(expected: &Distribution, draw: impl FnMut(usize) -> TokenId) {
    let found = statistic(expected, draw);
    let critical = critical(f64::from(VOCABULARY - 1));
    assert!(found < critical, "chi-square {found:.1}, critical {critical:.1}");
}

#[test]
fn independent_draws_follow_the_distribution() {
    let (p, mut generator) = (zipf(0), generator(Mode::Fastest, 1));
    assert_follows(&p, |_| generator.draw(0, &p));
}

#[test]
fn coupled_draws_follow_the_distribution_over_positions() {
    let (p, mut generator) = (zipf(0), generator(Mode::Reproducible, 2));
    assert_follows(&p, |position| generator.draw(position, &p));
}

#[test]
fn coupled_draws_follow_the_distribution_over_seeds() {
    let p = zipf(0);
    assert_follows(&p, |seed| generator(Mode::Reproducible, seed as u32).draw(7, &p));
}

#[test]
fn coupled_draws_at_neighbouring_positions_are_independent() {
    let (p, mut before, mut after) =
        (zipf(0), generator(Mode::Reproducible, 3), generator(Mode::Reproducible, 3));
    // Draws that follow a frequent token must still follow the distribution.
    let mut positions = (0..).filter(|&position| before.draw(position, &p) == 0);
    assert_follows(&p, |_| after.draw(positions.next().unwrap() + 1, &p));
}

fn drawn(token: TokenId, parent: Option<usize>, q: &Arc<Distribution>) -> Guess {
    Guess {
        token,
        parent,
        drawn_from: Some(Arc::clone(q)),
        probability: 0.0,
        confidence: 0.0,
        drafter: DrafterKind::Model,
    }
}

#[test]
fn a_drawn_guess_and_its_recovery_follow_the_target() {
    let (p, q, mut generator) = (zipf(0), Arc::new(zipf(20)), generator(Mode::Fastest, 4));
    assert_follows(&p, |_| {
        let guess = drawn(generator.draw(0, &q), None, &q);
        let target = |_| Ok::<_, Infallible>(p.clone());
        let verdict =
            accept(&Guesses::from(vec![guess.clone()]), Verification::Token, 0, target, &mut generator)
                .unwrap();
        if verdict.path.is_empty() { verdict.extra } else { guess.token }
    });
}

#[test]
fn the_second_token_of_a_block_follows_the_target() {
    let (p, q, mut generator) = (zipf(0), Arc::new(zipf(20)), generator(Mode::Fastest, 6));
    assert_follows(&p, |_| {
        let drawn = |i: usize| drawn(generator.draw(0, &q), i.checked_sub(1), &q);
        let guesses: Guesses = (0..3).map(drawn).collect();
        let target = |_| Ok::<_, Infallible>(p.clone());
        let verdict = accept(&guesses, Verification::Block, 0, target, &mut generator).unwrap();
        match verdict.path.len() {
            0 => generator.draw(0, &p),
            1 => verdict.extra,
            _ => guesses[1].token,
        }
    });
}

#[test]
fn siblings_drawn_without_replacement_follow_the_target() {
    let (p, q, mut generator) = (zipf(0), Arc::new(zipf(20)), generator(Mode::Fastest, 7));
    assert_follows(&p, |_| {
        let first = generator.draw(0, &q);
        let second = generator.draw(0, &q.without(first).unwrap());
        let guesses = Guesses::from(vec![drawn(first, None, &q), drawn(second, None, &q)]);
        let target = |_| Ok::<_, Infallible>(p.clone());
        let verdict = accept(&guesses, Verification::Block, 0, target, &mut generator).unwrap();
        verdict.path.first().map_or(verdict.extra, |&index| guesses[index].token)
    });
}

#[test]
fn the_test_detects_a_slightly_wrong_distribution() {
    let (p, mut generator) = (zipf(0), generator(Mode::Fastest, 5));
    let nearly = Distribution::from_weights(
        p.entries().iter().map(|&(token, weight)| (token, if token == 9 { weight * 1.1 } else { weight })),
    )
    .unwrap();
    assert!(statistic(&nearly, |_| generator.draw(0, &p)) > critical(f64::from(VOCABULARY - 1)));
}
