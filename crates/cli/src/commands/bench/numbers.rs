//! Formats figures for tables, and computes medians.

pub fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

/// The middle value, or the mean of the two in the middle; `None` for no values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_outliers() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1000.0, 1.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0, 1000.0, 2.0]), Some(3.0));
    }
}
