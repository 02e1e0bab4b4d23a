//! Expert routing: top-k selection and weights from router scores. `gpu/kernels/rank.wgsl` does the
//! same with the same bits, except for sigmoids.

use super::cpu::exp;
use crate::model::{Experts, Sigmoids};

/// Selects the `used` highest of `scores`, highest first, the lower index first of equals, and
/// computes their weights. NaN scores come last. `choice_bias` is a bias per expert, used if the
/// config's sigmoids are biased.
pub fn choose(scores: &[f32], config: &Experts, choice_bias: Option<&[f32]>) -> Vec<(usize, f32)> {
    match config.sigmoids {
        None => by_softmax(scores, config),
        Some(sigmoids) => by_sigmoids(scores, config, sigmoids, choice_bias),
    }
}

/// Weights from the softmax over all experts, or over the selected ones if `normalised`.
fn by_softmax(scores: &[f32], config: &Experts) -> Vec<(usize, f32)> {
    let chosen = ranking(scores, config.used);
    let largest = number(scores[chosen[0]]);
    let power = |&expert: &usize| exp(number(scores[expert]) - largest);
    let all: f32 = if config.normalised {
        chosen.iter().map(power).sum()
    } else {
        (0..scores.len()).map(|expert| power(&expert)).sum()
    };
    chosen.iter().map(|expert| (*expert, power(expert) / all * config.scale)).collect()
}

/// Weights from sigmoids, divided by their sum if `normalised`. The bias affects the selection
/// only.
fn by_sigmoids(
    scores: &[f32],
    config: &Experts,
    Sigmoids { least, .. }: Sigmoids,
    choice_bias: Option<&[f32]>,
) -> Vec<(usize, f32)> {
    let sigmoids: Vec<f32> = scores.iter().map(|&score| 1.0 / (1.0 + exp(-number(score)))).collect();
    let bias = |expert: usize| choice_bias.map_or(0.0, |bias| bias[expert]);
    let ranked: Vec<f32> = sigmoids.iter().enumerate().map(|(expert, share)| share + bias(expert)).collect();
    let chosen = ranking(&ranked, config.used);
    let all = match config.normalised {
        true => chosen.iter().map(|&expert| sigmoids[expert]).sum::<f32>() + least,
        false => 1.0,
    };
    chosen.into_iter().map(|expert| (expert, sigmoids[expert] / all * config.scale)).collect()
}

/// Indices of the `used` highest scores.
fn ranking(scores: &[f32], used: usize) -> Vec<usize> {
    let mut ranking: Vec<usize> = (0..scores.len()).collect();
    ranking.sort_by(|&left, &right| number(scores[right]).total_cmp(&number(scores[left])));
    ranking.truncate(used);
    ranking
}

fn number(score: f32) -> f32 {
    if score.is_nan() { f32::NEG_INFINITY } else { score }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(normalised: bool, sigmoids: Option<Sigmoids>) -> Experts {
        let (count, used, intermediate) = (5, 3, 1);
        let (biases, beside, shared, after) = (false, false, None, 0);
        let scale = if sigmoids.is_some() { 1.5 } else { 1.0 };
        Experts { count, used, intermediate, normalised, biases, beside, shared, scale, sigmoids, after }
    }

    fn experts(chosen: &[(usize, f32)]) -> Vec<usize> {
        chosen.iter().map(|(expert, _)| *expert).collect()
    }

    #[test]
    fn the_highest_are_chosen_and_the_lower_of_equals_first() {
        let scores = [1.0, 3.0, f32::NAN, 3.0, 2.0];
        let chosen = choose(&scores, &config(true, None), None);
        assert_eq!(experts(&chosen), [1, 3, 4]);
        assert!((chosen.iter().map(|(_, share)| share).sum::<f32>() - 1.0).abs() < 1e-6);
        let all = 2.0 + (-1f32).exp() + (-2f32).exp();
        assert!((choose(&scores, &config(false, None), None)[0].1 - 1.0 / all).abs() < 1e-6);
    }

    #[test]
    fn a_bias_says_who_is_chosen_and_sigmoids_are_the_shares() {
        let scores = [1.0, 3.0, f32::NAN, 3.0, 2.0];
        let of = |normalised, biased| config(normalised, Some(Sigmoids { biased, least: 1e-6 }));
        let sigmoid = |score: f32| 1.0 / (1.0 + (-score).exp());
        let plain = choose(&scores, &of(false, false), None);
        assert_eq!(experts(&plain), [1, 3, 4]);
        assert!((plain[2].1 - 1.5 * sigmoid(2.0)).abs() < 1e-6);
        let bias = [0.4, 0.0, -1.0, -0.5, 0.0];
        let chosen = choose(&scores, &of(true, true), Some(&bias));
        assert_eq!(experts(&chosen), [0, 1, 4]);
        let all = sigmoid(1.0) + sigmoid(3.0) + sigmoid(2.0);
        assert!((chosen[0].1 - 1.5 * sigmoid(1.0) / all).abs() < 1e-5);
        // Experts with scores of -infinity still have weights.
        let silent = choose(&[f32::NEG_INFINITY; 5], &of(true, false), None);
        assert!(silent.iter().all(|(_, share)| (0.0..1e-6).contains(share)), "{silent:?}");
    }
}
