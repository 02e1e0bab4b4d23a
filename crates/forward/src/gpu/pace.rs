//! Work per submission, by the measured speed of the device. Systems reset a GPU that is busy for
//! long, and a hanging GPU should be noticed soon.

use std::time::Duration;

/// Estimated speed of a device.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Seconds per byte of weights that a tile of rows reads.
    seconds: f64,
}

impl Pace {
    /// Target duration of a submission.
    const AT_ONCE: Duration = Duration::from_millis(300);

    /// Bytes that one submission may read.
    pub fn bytes(self) -> u64 {
        (Self::AT_ONCE.as_secs_f64() / self.seconds) as u64
    }

    /// Updates the estimate with a submission that read `bytes`. `taken` may be too long, never too
    /// short.
    pub fn learn(&mut self, bytes: u64, taken: Duration) {
        if bytes > 0 {
            self.seconds = (self.seconds + taken.as_secs_f64() / bytes as f64) / 2.0;
        }
    }
}

impl Default for Pace {
    /// Speed of a software renderer, until something is measured.
    fn default() -> Self {
        Self { seconds: 4e-9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_device_gets_larger_submissions_than_a_slow_one() {
        let seen = |nanoseconds: u64| {
            let mut pace = Pace::default();
            (0..40).for_each(|_| pace.learn(1 << 30, Duration::from_nanos(nanoseconds << 30)));
            pace.bytes()
        };
        assert_eq!(Pace::default().bytes(), 75_000_000);
        // One gigabyte per second.
        assert!((290_000_000..=310_000_000).contains(&seen(1)), "{}", seen(1));
        assert!((2_900_000..=3_100_000).contains(&seen(100)), "{}", seen(100));
    }

    #[test]
    fn a_submission_that_reads_nothing_does_not_change_the_pace() {
        let mut pace = Pace::default();
        pace.learn(0, Duration::from_secs(5));
        assert_eq!(pace.bytes(), Pace::default().bytes());
    }
}
