//! Prefill rate, measured on prompts that take more than a moment.

use std::time::Instant;

/// Fewest tokens for a measurement: the time of fewer is dominated by start-up.
const MIN_TOKENS: usize = 200;

/// Measurement of a running prefill.
#[derive(Default)]
pub(super) struct PrefillRate {
    /// Time and token count of the first part.
    first: Option<(Instant, usize)>,
    last: usize,
}

impl PrefillRate {
    /// Records that `done` tokens are processed; returns tokens per second once known.
    pub(super) fn update(&mut self, done: usize, now: Instant) -> Option<f64> {
        // A drafter that processes the prompt later starts at the first token.
        let (since, from) = self.first.filter(|_| done > self.last).unwrap_or((now, done));
        (self.first, self.last) = (Some((since, from)), done);
        let seconds = now.duration_since(since).as_secs_f64();
        let read = done - from;
        (read >= MIN_TOKENS && seconds > 0.0).then(|| read as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_rate_is_measured_from_the_first_part_over_a_few_hundred_tokens() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut rate = PrefillRate::default();
        assert_eq!(rate.update(256, after(5_000)), None, "the time before the first part does not count");
        assert_eq!(rate.update(400, after(6_000)), None);
        assert_eq!(rate.update(512, after(7_000)), Some(128.0));
        assert_eq!(rate.update(1024, after(8_000)), Some(256.0));
        assert_eq!(rate.update(256, after(9_000)), None, "another model starts a new measurement");
        assert_eq!(rate.update(512, after(10_000)), Some(256.0));
    }
}
