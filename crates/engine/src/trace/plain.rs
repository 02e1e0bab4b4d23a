//! Cost of plain decoding by position in the context, from the rounds of a reply.

/// Least number of samples per knot: a run of plain rounds between drafts has as many.
const SAMPLES: usize = 3;
/// Least number of positions per knot.
const SPAN: u32 = 32;

/// Milliseconds of a plain pass at a position.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Knot {
    position: f64,
    ms: f64,
}

/// Plain passes at nearby positions.
#[derive(Debug, Clone, Default)]
struct Group {
    begin: u32,
    positions: f64,
    /// Milliseconds, ascending.
    ms: Vec<f64>,
}

impl Group {
    fn add(&mut self, position: u32, ms: f64) {
        if self.ms.is_empty() {
            self.begin = position;
        }
        self.positions += f64::from(position);
        let at = self.ms.partition_point(|&other| other < ms);
        self.ms.insert(at, ms);
    }

    /// Median at the mean position: one interrupted pass of three does not move it.
    fn knot(&self) -> Option<Knot> {
        let ms = *self.ms.get(self.ms.len() / 2)?;
        Some(Knot { position: self.positions / self.ms.len() as f64, ms })
    }
}

/// Measured and estimated cost of plain decoding.
#[derive(Debug, Clone, Default)]
pub(super) struct PlainCosts {
    groups: Vec<Knot>,
    open: Group,
    /// The governor's estimates of a plain round, by the decisions of the trace.
    estimates: Vec<Knot>,
}

impl PlainCosts {
    /// Adds a plain pass that took `ms` milliseconds.
    pub(super) fn measure(&mut self, position: u32, ms: f64) {
        let spans = position.saturating_sub(self.open.begin) >= SPAN;
        if self.open.ms.len() >= SAMPLES && spans {
            self.groups.extend(self.open.knot());
            self.open = Group::default();
        }
        self.open.add(position, ms);
    }

    /// Adds the governor's estimate of plain decoding at a position.
    pub(super) fn expect(&mut self, position: u32, tokens_per_second: f32) {
        if tokens_per_second > 0.0 {
            let ms = 1e3 / f64::from(tokens_per_second);
            self.estimates.push(Knot { position: f64::from(position), ms });
        }
    }

    /// Cost by position; `None` without any measurement or estimate.
    pub(super) fn curve(&self) -> Option<Curve> {
        let mut knots = self.groups.clone();
        if self.open.ms.len() >= SAMPLES {
            knots.extend(self.open.knot());
        }
        if knots.is_empty() {
            knots.clone_from(&self.estimates);
        }
        if knots.is_empty() {
            knots.extend(self.open.knot());
        }
        // Imported traces may have any positions.
        knots.sort_by(|one, other| one.position.total_cmp(&other.position));
        (!knots.is_empty()).then_some(Curve(knots))
    }
}

/// Linear interpolation between knots, constant before the first and after the last. Has at least
/// one knot.
pub(super) struct Curve(Vec<Knot>);

impl Curve {
    /// Milliseconds of plain decoding for a token at `position`.
    pub(super) fn at(&self, position: f64) -> f64 {
        let after = self.0.partition_point(|knot| knot.position < position);
        match (after.checked_sub(1).map(|before| self.0[before]), self.0.get(after)) {
            (Some(before), Some(after)) => {
                let share = (position - before.position) / (after.position - before.position);
                before.ms + share * (after.ms - before.ms)
            }
            (Some(nearest), None) => nearest.ms,
            (None, nearest) => nearest.map_or(0.0, |knot| knot.ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_interpolated_between_measurements_and_constant_beyond() {
        let mut costs = PlainCosts::default();
        for position in [99, 100, 101, 299, 300, 301] {
            costs.measure(position, f64::from(position) / 10.0);
        }
        let curve = costs.curve().unwrap();
        for (position, expected) in [(0.0, 10.0), (100.0, 10.0), (150.0, 15.0), (300.0, 30.0), (900.0, 30.0)]
        {
            assert!((curve.at(position) - expected).abs() < 1e-9, "{position}: {}", curve.at(position));
        }
    }

    #[test]
    fn one_interrupted_pass_changes_nothing() {
        let mut costs = PlainCosts::default();
        for (position, ms) in [(10, 5.0), (11, 500.0), (12, 5.0)] {
            costs.measure(position, ms);
        }
        assert_eq!(costs.curve().unwrap().at(11.0), 5.0);
    }

    #[test]
    fn with_too_few_plain_passes_the_governors_estimates_count() {
        let mut costs = PlainCosts::default();
        assert!(costs.curve().is_none());
        costs.measure(10, 7.0);
        assert_eq!(costs.curve().unwrap().at(10.0), 7.0, "better than nothing");
        costs.expect(10, 100.0);
        costs.expect(74, 50.0);
        assert_eq!(costs.curve().unwrap().at(42.0), 15.0);
        (11..13).for_each(|position| costs.measure(position, 7.0));
        assert_eq!(costs.curve().unwrap().at(42.0), 7.0);
    }
}
