//! A draft head: a block that guesses from hidden states of its target, at a small part of the target's cost
//! (EAGLE-3, Li et al. 2025). What it has heard and computed of the text is `hearing`'s.
//!
//! Of the text `x` and the target's fused states `g`, row `p` of its cache is of the pair `(x[p + 1], g[p])`, which
//! tells what may follow `x[p + 1]`. A guess is run with what the head gave itself for the token before, and
//! forgotten after the draft: what follows the text is run again with true states.

mod hearing;

use self::hearing::Hearing;
use super::chain::Chain;
use super::{Cost, Draft, DraftRequest, Drafter, Seen};
use crate::accept::Guess;
use crate::context::{After, Context};
use crate::drafter_kind::DrafterKind;
use crate::error::Result;
use crate::forward::{Carried, Features, Model, Row, Taps, Want};
use crate::governor::Shape;
use crate::model::{DraftHead, ModelSource};
use crate::sampler::Sampler;
use crate::speculation::MAX_TREE_WIDTH;
use crate::token::TokenId;
use crate::trace::LengthReason;

/// See the module.
pub struct HeadDrafter {
    hearing: Hearing,
    /// The target's states it reads.
    taps: Taps,
    /// Its own that it goes on with.
    own: Taps,
    tokens: Tokens,
}

/// The tokens it guesses.
struct Tokens {
    /// Of each row of its output matrix the target's; `None` where rows are tokens.
    guessed: Option<Vec<TokenId>>,
    /// Tokens of the target.
    vocabulary: usize,
    /// Those that end a reply: nothing is drafted after one.
    ends: Vec<TokenId>,
}

/// A place that guesses shall follow.
struct Place {
    /// The guess there; `None` at the end of the text.
    guess: Option<usize>,
    /// Its node in the shape, where there is one, and in the tree that is run.
    shape: usize,
    node: usize,
}

impl HeadDrafter {
    /// Of the head that `source` describes, which is [for its target](ModelSource::for_target) and loaded as `model`.
    /// `ends` are the target's.
    ///
    /// # Errors
    /// `Error::BadModel` for a table of tokens that cannot be used.
    pub fn new(source: &ModelSource, model: Box<dyn Model>, ends: &[TokenId]) -> Result<Self> {
        let config = source.config()?;
        let head = config.draft_head.as_ref();
        let entering = head.and_then(|head| head.entering.clone()).unwrap_or_default();
        let own = match head.is_some_and(|head| head.normed_output) {
            true => Taps { entering: Vec::new(), last: true },
            false => Taps { entering: vec![config.layers], last: false },
        };
        let width = head.map_or(0, |head| DraftHead::STATES * head.target_hidden);
        Ok(Self {
            taps: Taps { entering, last: false },
            own,
            tokens: Tokens {
                guessed: source.guessed_tokens()?,
                vocabulary: config.tokens(),
                ends: ends.to_vec(),
            },
            hearing: Hearing::new(model, width),
        })
    }

    /// Tokens that may still be drafted.
    fn room(&self, context: &Context) -> usize {
        self.hearing.model.config().context.saturating_sub(context.len())
    }

    /// A chain, or a tree of a shape.
    fn grow(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        shape: Option<&Shape>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let Self { hearing, own, tokens, .. } = self;
        let mut chain = Chain::new(request);
        let Some((model, mut tree, states)) = hearing.unrun(context) else { return Ok(chain.draft) };
        let text = tree.len();
        let most = if shape.is_some() { MAX_TREE_WIDTH } else { 1 };
        let interest = sampler.interest(most);
        let want = |rows| Want::rows(rows).interest(interest).features(own);
        let mut pass = model.run(&tree, &want(text - 1..text).carrying(Carried::Target(states)))?;
        let mut places = vec![Place { guess: None, shape: Shape::ROOT, node: text - 1 }];
        // The first row of features that is a place's.
        let mut first = text - 1;
        loop {
            let logits = pass.logits();
            let mut next = Vec::new();
            for (row, place) in places.iter().enumerate() {
                let path = chain.draft.guesses.path(place.guess);
                let after = After { text: context, guesses: &path };
                let children = shape.map_or(&[Shape::ROOT][..], |shape| shape.children(place.shape));
                let guesses = tokens.guess(logits.row(row), after, children.len(), sampler)?;
                for (guess, &child) in guesses.into_iter().zip(children) {
                    let guess = Guess { parent: place.guess, drafter: DrafterKind::Head, ..guess };
                    let ended = tokens.ends.contains(&guess.token);
                    let goes_on = match shape {
                        None => chain.extend(guess, ended),
                        Some(shape) => {
                            chain.draft.guesses.push(guess);
                            !ended && !shape.children(child).is_empty()
                        }
                    };
                    if goes_on {
                        next.push((chain.draft.guesses.len() - 1, child, place.node, first + row));
                    }
                }
            }
            let Some(features) = pass.features().filter(|_| !next.is_empty()) else { break };
            let parents: Vec<usize> = next.iter().map(|&(.., row)| row).collect();
            let (carried, width) = (features.gather(&parents), features.width());
            let feed = |(guess, shape, parent, _): (usize, usize, usize, usize)| {
                let node = tree.push(chain.draft.guesses[guess].token, Some(parent));
                Place { guess: Some(guess), shape, node }
            };
            (places, first) = (next.into_iter().map(feed).collect(), 0);
            let carried = Carried::Own(Features::new(&carried, width));
            pass = pass.grow(&tree, &want(0..usize::MAX).carrying(carried))?;
        }
        // What comes is run with true states.
        pass.keep(&(0..text).collect::<Vec<_>>())?;
        Ok(chain.draft)
    }
}

impl Tokens {
    /// Up to `count` guesses from a row of scores.
    fn guess(
        &self,
        row: Row<'_>,
        after: After<'_>,
        count: usize,
        sampler: &mut Sampler,
    ) -> Result<Vec<Guess>> {
        let Some(guessed) = &self.guessed else { return sampler.guess(row, after, count) };
        if !sampler.looks_at_all() {
            return sampler.guess(row.named(guessed), after, count);
        }
        let mut whole = vec![f32::NEG_INFINITY; self.vocabulary];
        for (&token, &logit) in guessed.iter().zip(row.logits()?) {
            whole[token as usize] = logit;
        }
        sampler.guess(Row::of(&whole), after, count)
    }
}

impl Drafter for HeadDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Head
    }

    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let room = self.room(context);
        // A tree is drafted only where all of it has room.
        if let Some(shape) = request.shape.filter(|shape| shape.len() < room) {
            return self.grow(context, request, Some(shape), sampler);
        }
        let fits = DraftRequest { length: request.length.min(room), ..*request };
        if fits.length == 0 {
            return Ok(Draft { shortened: Some(LengthReason::DraftContextFull), ..Draft::default() });
        }
        let mut draft = self.grow(context, &fits, None, sampler)?;
        if room < request.length && draft.shortened.is_none() {
            draft.shortened = Some(LengthReason::DraftContextFull);
        }
        Ok(draft)
    }

    fn observe(&mut self, seen: &Seen<'_>) -> Result<()> {
        if seen.at + seen.tokens.len() >= self.hearing.model.config().context {
            // It has no room to draft from then on.
            return Ok(());
        }
        self.hearing.hear(seen.at, seen.tokens, seen.features)
    }

    fn taps(&self) -> Option<&Taps> {
        Some(&self.taps)
    }

    fn deaf(&self, context: &Context) -> usize {
        if self.room(context) == 0 { 0 } else { self.hearing.deaf(context) }
    }

    fn grows_trees(&self) -> bool {
        true
    }

    fn forget(&mut self) {
        self.hearing.forget();
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}
