//! Embeddings of passages in memory, in signed bytes, and the exact search among them.

use std::cmp::Ordering;
use std::collections::HashMap;

/// Embeddings of the passages of each document.
#[derive(Debug, Default)]
pub(crate) struct Vectors(HashMap<i64, Rows>);

/// Embeddings of a document's first passages, in their order.
#[derive(Debug, Default)]
struct Rows {
    /// Number of the first passage.
    first: i64,
    /// What a byte of each row is worth.
    scales: Vec<f32>,
    bytes: Vec<i8>,
}

impl Vectors {
    /// Number of the last passage of a document with an embedding.
    pub(crate) fn last(&self, document: i64) -> Option<i64> {
        self.0.get(&document).map(|rows| rows.first + rows.scales.len() as i64 - 1)
    }

    /// Number of a document's passages with an embedding.
    pub(crate) fn count(&self, document: i64) -> usize {
        self.0.get(&document).map_or(0, |rows| rows.scales.len())
    }

    /// Adds the embedding of a document's next passage.
    pub(crate) fn add(&mut self, document: i64, passage: i64, vector: &[f32]) {
        let rows = self.0.entry(document).or_insert_with(|| Rows { first: passage, ..Rows::default() });
        let (bytes, scale) = in_bytes(vector);
        rows.bytes.extend(bytes);
        rows.scales.push(scale);
    }

    pub(crate) fn remove(&mut self, document: i64) {
        self.0.remove(&document);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the numbers of the passages of these documents whose embeddings are most similar to
    /// a vector, the most similar first.
    pub(crate) fn nearest(&self, documents: &[i64], vector: &[f32], most: usize) -> Vec<i64> {
        let (query, _) = in_bytes(vector);
        let mut found: Vec<(f32, i64)> = Vec::new();
        let rows = documents.iter().filter_map(|document| self.0.get(document));
        for rows in rows.filter(|rows| rows.scales.len() * query.len() == rows.bytes.len()) {
            let scores = rows.bytes.chunks_exact(query.len().max(1)).zip(&rows.scales);
            let scores = scores.map(|(row, scale)| dot(row, &query) as f32 * scale);
            found.extend(scores.zip(rows.first..));
        }
        let by_score = |(a, one): &(f32, i64), (b, other): &(f32, i64)| -> Ordering {
            b.total_cmp(a).then(one.cmp(other))
        };
        if found.len() > most {
            found.select_nth_unstable_by(most, by_score);
            found.truncate(most);
        }
        found.sort_unstable_by(by_score);
        found.into_iter().map(|(_, passage)| passage).collect()
    }
}

/// A vector in signed bytes, and the number that each is multiplied by.
fn in_bytes(vector: &[f32]) -> (Vec<i8>, f32) {
    let largest = vector.iter().fold(0.0f32, |largest, number| largest.max(number.abs()));
    let scale = largest / f32::from(i8::MAX);
    let byte = |number: &f32| if scale > 0.0 { (number / scale).round() as i8 } else { 0 };
    (vector.iter().map(byte).collect(), scale)
}

fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_passages_of_the_named_documents_come_first() {
        let mut vectors = Vectors::default();
        vectors.add(1, 10, &[1.0, 0.0]);
        vectors.add(1, 11, &[0.6, 0.8]);
        vectors.add(2, 12, &[0.0, 1.0]);
        vectors.add(2, 13, &[0.0, 0.0]);
        assert_eq!(vectors.nearest(&[1, 2, 3], &[0.0, 0.5], 9), [12, 11, 10, 13]);
        assert_eq!(vectors.nearest(&[1, 2], &[1.0, 0.1], 2), [10, 11]);
        assert_eq!(vectors.nearest(&[2], &[1.0, 0.1], 9), [12, 13]);
        assert!(vectors.nearest(&[1], &[], 9).is_empty(), "an embedding of another model");
        assert_eq!((vectors.last(1), vectors.last(3), vectors.count(2)), (Some(11), None, 2));
        vectors.remove(1);
        assert!(vectors.nearest(&[1], &[1.0, 0.0], 9).is_empty());
    }

    #[test]
    fn bytes_rank_as_the_numbers_do() {
        let vector = |seed: u64| -> Vec<f32> {
            let mut state = seed + 1;
            let mut number = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f32 / (1 << 23) as f32 - 1.0
            };
            let numbers: Vec<f32> = (0..384).map(|_| number()).collect();
            let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
            numbers.into_iter().map(|number| number / length).collect()
        };
        let mut vectors = Vectors::default();
        let all: Vec<Vec<f32>> = (0..500).map(vector).collect();
        (0..).zip(&all).for_each(|(passage, vector)| vectors.add(1, passage, vector));
        for seed in [3, 77, 401] {
            let query = vector(seed);
            let exact =
                |passage: i64| -> f32 { all[passage as usize].iter().zip(&query).map(|(a, b)| a * b).sum() };
            let found = vectors.nearest(&[1], &query, 10);
            assert_eq!(found[0], seed as i64);
            let mut best: Vec<f32> = (0..500).map(exact).collect();
            best.sort_by(|a, b| b.total_cmp(a));
            for (passage, best) in found.into_iter().zip(best) {
                assert!((exact(passage) - best).abs() < 0.01, "{passage}");
            }
        }
    }
}
