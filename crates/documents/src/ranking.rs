//! Fusion of rankings: by words and by meaning.

use std::collections::HashMap;

/// Constant of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
const K: usize = 60;

/// Merges rankings, each best first without duplicates: the score of an entry is the sum of
/// 1 / (`K` + rank) over the rankings that have it. Of equal scores the one that an earlier ranking
/// has comes first.
pub(crate) fn fused(rankings: &[Vec<i64>], most: usize) -> Vec<i64> {
    let mut scores: HashMap<i64, (f64, usize)> = HashMap::new();
    let all = rankings.iter().flat_map(|ranking| (1..).zip(ranking));
    for (order, (rank, &entry)) in all.enumerate() {
        scores.entry(entry).or_insert((0.0, order)).0 += 1.0 / (K + rank) as f64;
    }
    let mut entries: Vec<(i64, (f64, usize))> = scores.into_iter().collect();
    entries.sort_unstable_by(|(_, (a, first)), (_, (b, second))| b.total_cmp(a).then(first.cmp(second)));
    entries.into_iter().take(most).map(|(entry, _)| entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_rankings_have_comes_first_and_the_first_ranking_decides() {
        assert_eq!(fused(&[vec![1, 2, 3], vec![4, 3, 5]], 9), [3, 1, 4, 2, 5]);
        assert_eq!(fused(&[vec![1, 2, 3], vec![]], 2), [1, 2]);
        assert_eq!(fused(&[vec![], vec![7]], 2), [7]);
    }
}
