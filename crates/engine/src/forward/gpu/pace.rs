//! How much a device is handed at once, by how fast it was seen to read weights: systems reset a GPU that is busy for
//! long, and whoever waits for one that hangs shall know it soon.

use std::time::Duration;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// For a byte of weights that is read for a tile of rows.
    seconds: f64,
}

impl Pace {
    /// What is handed over at once should take about as long.
    const AT_ONCE: Duration = Duration::from_millis(300);

    /// Bytes that may be handed over at once.
    pub fn bytes(self) -> u64 {
        (Self::AT_ONCE.as_secs_f64() / self.seconds) as u64
    }

    /// Takes note of how long it took for so many `bytes`. The times may be too long, never too short.
    pub fn learn(&mut self, bytes: u64, taken: Duration) {
        if bytes > 0 {
            self.seconds = (self.seconds + taken.as_secs_f64() / bytes as f64) / 2.0;
        }
    }
}

impl Default for Pace {
    /// As slow as a program that plays a GPU, as long as nothing was seen.
    fn default() -> Self {
        Self { seconds: 4e-9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_device_is_handed_more_and_a_slow_one_less() {
        let seen = |nanoseconds: u64| {
            let mut pace = Pace::default();
            (0..40).for_each(|_| pace.learn(1 << 30, Duration::from_nanos(nanoseconds << 30)));
            pace.bytes()
        };
        assert_eq!(Pace::default().bytes(), 75_000_000);
        // A gigabyte a second.
        assert!((290_000_000..=310_000_000).contains(&seen(1)), "{}", seen(1));
        assert!((2_900_000..=3_100_000).contains(&seen(100)), "{}", seen(100));
    }

    #[test]
    fn what_reads_nothing_teaches_nothing() {
        let mut pace = Pace::default();
        pace.learn(0, Duration::from_secs(5));
        assert_eq!(pace.bytes(), Pace::default().bytes());
    }
}
