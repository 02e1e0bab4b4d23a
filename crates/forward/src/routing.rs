//! Routing: selects a token's experts and their weights by the router's scores.
//! `gpu/kernels/top_k.wgsl` computes the same bits.

use foretoken_model::{Experts, SigmoidGating};

use super::cpu::exp;

/// Selects the `top_k` experts with the highest of `scores`, with their weights; highest first, of
/// equals the lower index first. NaN scores come last. `selection_bias` has a number for each
/// expert, if [`SigmoidGating::selection_bias`] is set.
pub fn choose(scores: &[f32], config: &Experts, selection_bias: Option<&[f32]>) -> Vec<(usize, f32)> {
    match config.sigmoid {
        None => by_softmax(scores, config),
        Some(gating) => by_sigmoid(scores, config, gating, selection_bias),
    }
}

/// Weights are the softmax over all experts, or over the selected ones if `normalised`.
fn by_softmax(scores: &[f32], config: &Experts) -> Vec<(usize, f32)> {
    let chosen = ranking(scores, config.top_k);
    let largest = number(scores[chosen[0]]);
    let power = |&expert: &usize| exp(number(scores[expert]) - largest);
    let all: f32 = if config.normalised {
        chosen.iter().map(power).sum()
    } else {
        (0..scores.len()).map(|expert| power(&expert)).sum()
    };
    chosen.iter().map(|expert| (*expert, power(expert) / all * config.scale)).collect()
}

/// Weights are the sigmoids, divided by their sum if `normalised`. The bias changes only the
/// selection.
fn by_sigmoid(
    scores: &[f32],
    config: &Experts,
    SigmoidGating { sum_epsilon, .. }: SigmoidGating,
    selection_bias: Option<&[f32]>,
) -> Vec<(usize, f32)> {
    let sigmoids: Vec<f32> = scores.iter().map(|&score| 1.0 / (1.0 + exp(-number(score)))).collect();
    let bias = |expert: usize| selection_bias.map_or(0.0, |bias| bias[expert]);
    let ranked: Vec<f32> =
        sigmoids.iter().enumerate().map(|(expert, weight)| weight + bias(expert)).collect();
    let chosen = ranking(&ranked, config.top_k);
    let all = match config.normalised {
        true => chosen.iter().map(|&expert| sigmoids[expert]).sum::<f32>() + sum_epsilon,
        false => 1.0,
    };
    chosen.into_iter().map(|expert| (expert, sigmoids[expert] / all * config.scale)).collect()
}

/// Indices of the `top_k` highest scores.
fn ranking(scores: &[f32], top_k: usize) -> Vec<usize> {
    let mut ranking: Vec<usize> = (0..scores.len()).collect();
    ranking.sort_by(|&left, &right| number(scores[right]).total_cmp(&number(scores[left])));
    ranking.truncate(top_k);
    ranking
}

fn number(score: f32) -> f32 {
    if score.is_nan() { f32::NEG_INFINITY } else { score }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(normalised: bool, sigmoid: Option<SigmoidGating>) -> Experts {
        let (count, top_k, width) = (5, 3, 1);
        let scale = if sigmoid.is_some() { 1.5 } else { 1.0 };
        Experts { count, top_k, width, normalised, biases: false, scale, sigmoid }
    }

    fn experts(chosen: &[(usize, f32)]) -> Vec<usize> {
        chosen.iter().map(|(expert, _)| *expert).collect()
    }

    #[test]
    fn the_highest_are_chosen_and_the_lower_of_equals_first() {
        let scores = [1.0, 3.0, f32::NAN, 3.0, 2.0];
        let chosen = choose(&scores, &config(true, None), None);
        assert_eq!(experts(&chosen), [1, 3, 4]);
        assert!((chosen.iter().map(|(_, weight)| weight).sum::<f32>() - 1.0).abs() < 1e-6);
        let all = 2.0 + (-1f32).exp() + (-2f32).exp();
        assert!((choose(&scores, &config(false, None), None)[0].1 - 1.0 / all).abs() < 1e-6);
    }

    #[test]
    fn a_bias_changes_the_selection_but_not_the_weights() {
        let scores = [1.0, 3.0, f32::NAN, 3.0, 2.0];
        let of = |normalised, selection_bias| {
            config(normalised, Some(SigmoidGating { selection_bias, sum_epsilon: 1e-6 }))
        };
        let sigmoid = |score: f32| 1.0 / (1.0 + (-score).exp());
        let plain = choose(&scores, &of(false, false), None);
        assert_eq!(experts(&plain), [1, 3, 4]);
        assert!((plain[2].1 - 1.5 * sigmoid(2.0)).abs() < 1e-6);
        let bias = [0.4, 0.0, -1.0, -0.5, 0.0];
        let chosen = choose(&scores, &of(true, true), Some(&bias));
        assert_eq!(experts(&chosen), [0, 1, 4]);
        let all = sigmoid(1.0) + sigmoid(3.0) + sigmoid(2.0);
        assert!((chosen[0].1 - 1.5 * sigmoid(1.0) / all).abs() < 1e-5);
        // Experts with a score of -infinity have weights, too.
        let silent = choose(&[f32::NEG_INFINITY; 5], &of(true, false), None);
        assert!(silent.iter().all(|(_, weight)| (0.0..1e-6).contains(weight)), "{silent:?}");
    }
}
