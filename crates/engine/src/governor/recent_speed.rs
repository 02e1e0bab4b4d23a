//! Recent speed of the present reply, whatever drafts.

/// Decayed tokens and milliseconds of the reply's rounds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentSpeed {
    tokens: f64,
    ms: f64,
}

impl RecentSpeed {
    /// Decay per round.
    const KEEP: f64 = 0.97;
    /// Plain rounds assumed before the reply.
    const PLAIN: f64 = 8.0;
    /// Maximum speedup that counts. Above it, repetition comes in long runs, and between them any
    /// other draft that pays is welcome.
    const MOST: f64 = 1.5;

    pub(super) fn learn(&mut self, tokens: usize, ms: f64) {
        (self.tokens, self.ms) = (self.tokens * Self::KEEP + tokens as f64, self.ms * Self::KEEP + ms);
    }

    /// Tokens per millisecond, if a plain round takes `plain` milliseconds.
    pub(super) fn rate(self, plain: f64) -> f64 {
        let rate = (self.tokens + Self::PLAIN) / (self.ms + Self::PLAIN * plain);
        rate.clamp(1.0 / plain, Self::MOST / plain)
    }
}
