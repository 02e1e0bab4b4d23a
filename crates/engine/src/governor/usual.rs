//! How fast the present text comes, by whatever means.

/// Rounds of the present text, later ones counting more.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usual {
    tokens: f64,
    ms: f64,
}

impl Usual {
    /// What a round counts after the next.
    const KEEP: f64 = 0.97;
    /// A text begins as if so many plain rounds had been before it.
    const PLAIN: f64 = 8.0;
    /// Where a text is faster than plain decoding by more, repetition comes in long runs, and between them every
    /// other draft that pays is welcome.
    const MOST: f64 = 1.5;

    pub(super) fn learn(&mut self, tokens: usize, ms: f64) {
        (self.tokens, self.ms) = (self.tokens * Self::KEEP + tokens as f64, self.ms * Self::KEEP + ms);
    }

    /// Tokens per millisecond, where a plain round takes `plain` milliseconds.
    pub(super) fn rate(self, plain: f64) -> f64 {
        let rate = (self.tokens + Self::PLAIN) / (self.ms + Self::PLAIN * plain);
        rate.clamp(1.0 / plain, Self::MOST / plain)
    }
}
