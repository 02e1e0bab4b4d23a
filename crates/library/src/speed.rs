//! Download speed, averaged over the last seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(4);

#[derive(Debug, Default)]
pub(crate) struct Speed {
    /// Times and the bytes downloaded by then.
    seen: VecDeque<(Instant, u64)>,
}

impl Speed {
    /// Returns bytes per second, given that `bytes` are downloaded at `now`.
    pub(crate) fn at(&mut self, now: Instant, bytes: u64) -> f64 {
        self.seen.push_back((now, bytes));
        while self.seen.len() > 2 && now - self.seen[1].0 >= WINDOW {
            self.seen.pop_front();
        }
        let (since, before) = self.seen[0];
        let seconds = (now - since).as_secs_f64();
        if seconds > 0.0 { bytes.saturating_sub(before) as f64 / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_the_average_of_the_last_seconds() {
        let start = Instant::now();
        let mut speed = Speed::default();
        assert_eq!(speed.at(start, 500), 0.0);
        assert_eq!(speed.at(start + Duration::from_secs(1), 600), 100.0);
        for second in 2..=20 {
            speed.at(start + Duration::from_secs(second), 600 + 10 * (second - 1));
        }
        assert_eq!(speed.at(start + Duration::from_secs(21), 800), 10.0);
    }
}
