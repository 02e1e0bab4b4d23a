//! Which experts a token goes through, by what the router gives it. `gpu/kernels/rank.wgsl` does the same, with the same
//! bits.

use super::cpu::exp;
use crate::model::Experts;

/// The `used` highest of `scores`, highest first, of equals the lower one first, and their shares: of the softmax
/// over all, or over these where they are `normalised`. Ones that are not numbers come last.
pub fn choose(scores: &[f32], config: &Experts) -> Vec<(usize, f32)> {
    let number = |score: f32| if score.is_nan() { f32::NEG_INFINITY } else { score };
    let mut ranking: Vec<usize> = (0..scores.len()).collect();
    ranking.sort_by(|&left, &right| number(scores[right]).total_cmp(&number(scores[left])));
    let largest = number(scores[ranking[0]]);
    let power = |&expert: &usize| exp(number(scores[expert]) - largest);
    let all: f32 = if config.normalised {
        ranking[..config.used].iter().map(power).sum()
    } else {
        (0..scores.len()).map(|expert| power(&expert)).sum()
    };
    ranking[..config.used].iter().map(|expert| (*expert, power(expert) / all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_are_chosen_and_the_lower_of_equals_first() {
        let scores = [1.0, 3.0, f32::NAN, 3.0, 2.0];
        let config = |normalised| Experts {
            count: 5,
            used: 3,
            intermediate: 1,
            normalised,
            biases: false,
            beside: false,
            shared: false,
        };
        let chosen = choose(&scores, &config(true));
        assert_eq!(chosen.iter().map(|(expert, _)| *expert).collect::<Vec<_>>(), [1, 3, 4]);
        assert!((chosen.iter().map(|(_, share)| share).sum::<f32>() - 1.0).abs() < 1e-6);
        let all = 2.0 + (-1f32).exp() + (-2f32).exp();
        assert!((choose(&scores, &config(false))[0].1 - 1.0 / all).abs() < 1e-6);
    }
}
