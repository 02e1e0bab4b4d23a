//! Acceptance rule for the children of one node, judged one after the other.

use std::sync::Arc;

use foretoken_model::token::TokenId;

use super::guess::Guess;
use crate::distribution::Distribution;
use crate::random::Randomness;

/// Result of judging a node's children.
pub struct Choice {
    pub rejected: Vec<usize>,
    /// The accepted child, or the token drawn in its place.
    pub accepted: Result<usize, TokenId>,
}

/// Judges the children of `parent`, which would stand at `position`. `p` is the target's
/// distribution there.
///
/// A drawn child x is accepted if u q(x) < p(x), with u uniform. Otherwise p becomes norm((p -
/// q)+), and q loses x for the next sibling. (Leviathan et al. 2023; Chen et al. 2023; Miao et al.
/// 2023; without replacement: Chen et al. 2024.) If all drawn children are rejected, a token is
/// drawn from p. It is accepted as the certain child with this token, or else emitted by itself.
/// The output has exactly the target's distribution.
pub fn accept(
    guesses: &[Guess],
    parent: Option<usize>,
    position: usize,
    mut p: Distribution,
    random: &mut impl Randomness,
) -> Choice {
    let mut rejected = Vec::new();
    let children = || guesses.iter().enumerate().filter(|(_, guess)| guess.parent == parent);
    let mut left = Left::default();
    for (index, guess) in children() {
        let Some(drawn_from) = &guess.drawn_from else { continue };
        let q = left.of(drawn_from);
        let (p_token, q_token) = (p.probability(guess.token), q.probability(guess.token));
        if (p_token >= q_token && p_token > 0.0) || random.accepts(p_token / q_token) {
            return Choice { rejected, accepted: Ok(index) };
        }
        rejected.push(index);
        // The residual is empty only when p and q differ by rounding alone.
        p = p.residual(1.0, q).unwrap_or(p);
        left.take(guess.token);
    }
    let token = random.draw(position, &p);
    let mut accepted = Err(token);
    for (index, guess) in children().filter(|(_, guess)| guess.drawn_from.is_none()) {
        if guess.token == token && accepted.is_err() {
            accepted = Ok(index);
        } else {
            rejected.push(index);
        }
    }
    Choice { rejected, accepted }
}

/// Remaining distribution of siblings drawn without replacement.
#[derive(Default)]
struct Left {
    whole: Option<Arc<Distribution>>,
    rest: Option<Distribution>,
}

impl Left {
    /// Distribution the next sibling was drawn from.
    fn of<'a>(&'a mut self, drawn_from: &'a Arc<Distribution>) -> &'a Distribution {
        if self.whole.as_ref().is_none_or(|whole| !Arc::ptr_eq(whole, drawn_from)) {
            *self = Self { whole: Some(Arc::clone(drawn_from)), rest: None };
        }
        self.rest.as_ref().unwrap_or(drawn_from)
    }

    fn take(&mut self, token: TokenId) {
        let rest = self.rest.as_ref().or(self.whole.as_deref());
        // With nothing left no further sibling can have been drawn.
        self.rest = rest.and_then(|rest| rest.without(token));
    }
}
