//! How fast prompts are read, learned from those that take more than a moment.

use std::time::Instant;

/// Tokens that tell: fewer are read as fast as a device starts and no faster.
const LEAST: usize = 200;

/// A prompt while it is read.
#[derive(Default)]
pub(super) struct Reading {
    /// When the first part was read, and how many tokens were by then.
    first: Option<(Instant, usize)>,
    last: usize,
}

impl Reading {
    /// Hears that `done` tokens are read; returns tokens per second once that is known.
    pub(super) fn hear(&mut self, done: usize, now: Instant) -> Option<f64> {
        // A drafter that reads the prompt later begins anew.
        let (since, from) = self.first.filter(|_| done > self.last).unwrap_or((now, done));
        (self.first, self.last) = (Some((since, from)), done);
        let seconds = now.duration_since(since).as_secs_f64();
        let read = done - from;
        (read >= LEAST && seconds > 0.0).then(|| read as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_speed_is_known_after_a_few_hundred_tokens_and_is_that_since_the_first_part() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut reading = Reading::default();
        assert_eq!(reading.hear(256, after(5_000)), None, "what came before the first part is no reading");
        assert_eq!(reading.hear(400, after(6_000)), None);
        assert_eq!(reading.hear(512, after(7_000)), Some(128.0));
        assert_eq!(reading.hear(1024, after(8_000)), Some(256.0));
        assert_eq!(reading.hear(256, after(9_000)), None, "another who reads begins anew");
        assert_eq!(reading.hear(512, after(10_000)), Some(256.0));
    }
}
