//! Draft heads. [`head_drafter`] tells those that guess token by token, which are here, from those that guess a block
//! at once, which are `block`'s. What both do is `growth`'s and `tokens`'s.
//!
//! One that guesses token by token is a layer that guesses from hidden states of its target, at a small part of the
//! target's cost (EAGLE-3, Li et al. 2025). What it has heard and computed of the text is `hearing`'s.
//!
//! An assistant attends to what its target cached and caches nothing of its own; its rows of the text are
//! `text_rows`'s, as those of heads that guess blocks are.
//!
//! Of the text `x` and the target's fused states `g`, row `p` of its cache is of the pair `(x[p + 1], g[p])`, which
//! tells what may follow `x[p + 1]`. A guess is run with what the head gave itself for the token before, and
//! forgotten after the draft: what follows the text is run again with true states.

mod beginning;
mod block;
mod growth;
mod hearing;
mod shortlist;
mod text_rows;
mod tokens;

use self::beginning::Beginning;
use self::block::BlockDrafter;
use self::growth::{Growth, Place};
use self::hearing::Hearing;
use self::text_rows::TextRows;
use self::tokens::Tokens;
use super::{Cost, Draft, DraftRequest, Drafter, Seen};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::error::Result;
use crate::forward::{Carried, Features, Model, Taps, Want};
use crate::governor::Shape;
use crate::model::{DraftHead, ModelSource};
use crate::sampler::Sampler;
use crate::token::TokenId;
use crate::trace::LengthReason;

/// See the module.
pub struct HeadDrafter {
    heard: Heard,
    /// The target's states it reads.
    taps: Taps,
    /// Its own that it goes on with.
    own: Taps,
    tokens: Tokens,
    /// It guesses from a [part](shortlist) of the tokens where that is enough.
    shortlists: bool,
}

/// What it has heard and computed of the text.
enum Heard {
    Pairs(Hearing),
    /// In an assistant.
    Rows(TextRows),
}

impl Heard {
    fn model(&self) -> &dyn Model {
        match self {
            Self::Pairs(hearing) => hearing.model.as_ref(),
            Self::Rows(rows) => rows.model.as_ref(),
        }
    }

    fn begin(&mut self, context: &Context) -> Result<Option<Beginning<'_>>> {
        match self {
            Self::Pairs(hearing) => Ok(hearing.begin(context)),
            Self::Rows(rows) => rows.begin(context),
        }
    }
}

/// The drafter of the head that `source` describes, which is [for its target](ModelSource::for_target) and loaded as
/// `model`: token by token or a block at once, as it was made. `ends` are the target's.
///
/// # Errors
/// `Error::BadModel` for a table of tokens that cannot be used.
pub fn head_drafter(
    source: &ModelSource,
    model: Box<dyn Model>,
    ends: &[TokenId],
) -> Result<Box<dyn Drafter>> {
    let head = source.config()?.draft_head.as_ref();
    Ok(match head.and_then(|head| Some((head, head.block.as_ref()?))) {
        Some((head, block)) => Box::new(BlockDrafter::new(head, block, model, Tokens::of(source, ends)?)),
        None => Box::new(HeadDrafter::new(source, model, ends)?),
    })
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
            true => Taps { last: true, ..Taps::default() },
            false => Taps { entering: vec![config.layers], ..Taps::default() },
        };
        let width = head.map_or(0, DraftHead::states);
        let heard = match config.assistant() {
            Some(_) => Heard::Rows(TextRows::new(model, width, config.carried())),
            None => Heard::Pairs(Hearing::new(model, width)),
        };
        let cached = config.assistant().map_or_else(Vec::new, |assistant| assistant.sees.clone());
        Ok(Self {
            taps: Taps { entering, last: head.is_some_and(DraftHead::reads_last), cached },
            own,
            shortlists: head.is_some_and(|head| head.mtp),
            tokens: Tokens::of(source, ends)?,
            heard,
        })
    }

    /// Tokens that may still be drafted.
    fn room(&self, context: &Context) -> usize {
        self.heard.model().config().context.saturating_sub(context.len())
    }

    /// A chain, or a tree of a shape.
    fn grow(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        shape: Option<&Shape>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let vocabulary = self.heard.model().config().vocabulary;
        let guessed = if self.shortlists { shortlist::length(context, vocabulary) } else { vocabulary };
        let Self { heard, own, tokens, .. } = self;
        let mut growth = Growth::new(context, tokens, request, shape);
        let Some(beginning) = heard.begin(context)? else { return Ok(growth.draft()) };
        let Beginning { model, mut tree, carried, text } = beginning;
        let last = tree.len() - 1;
        let interest = growth.interest(sampler);
        let want = |rows| Want::rows(rows).interest(interest).features(own).vocabulary(guessed);
        let mut pass = model.run(&tree, &want(last..last + 1).carrying(carried))?;
        // Each with its node in the tree that is run.
        let mut places = vec![(Place::ROOT, last)];
        // The first row of features that is a place's.
        let mut first = last;
        loop {
            let logits = pass.logits();
            let mut next = Vec::new();
            for (row, &(place, node)) in places.iter().enumerate() {
                let places = growth.guess(place, logits.row(row).first(guessed)?, None, sampler)?;
                next.extend(places.into_iter().map(|place| (place, node, first + row)));
            }
            let Some(features) = pass.features().filter(|_| !next.is_empty()) else { break };
            let parents: Vec<usize> = next.iter().map(|&(.., row)| row).collect();
            let (carried, width) = (features.gather(&parents), features.width());
            let feed = |(place, parent, _)| (place, tree.push(growth.token(place), Some(parent)));
            (places, first) = (next.into_iter().map(feed).collect(), 0);
            let carried = Carried::Own(Features::new(&carried, width));
            pass = pass.grow(&tree, &want(0..usize::MAX).carrying(carried))?;
        }
        // What comes is run with true states.
        pass.keep(&(0..text).collect::<Vec<_>>())?;
        Ok(growth.draft())
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
        if seen.at + seen.tokens.len() >= self.heard.model().config().context {
            // It has no room to draft from then on.
            return Ok(());
        }
        match &mut self.heard {
            Heard::Pairs(hearing) => hearing.hear(seen.at, seen.tokens, seen.features),
            Heard::Rows(rows) => rows.hear(seen.at, seen.tokens, seen.features),
        }
    }

    fn taps(&self) -> Option<&Taps> {
        Some(&self.taps)
    }

    fn deaf(&self, context: &Context) -> usize {
        match &self.heard {
            _ if self.room(context) == 0 => 0,
            Heard::Pairs(hearing) => hearing.deaf(context),
            Heard::Rows(rows) => rows.deaf(context),
        }
    }

    fn grows_trees(&self) -> bool {
        true
    }

    fn forget(&mut self) {
        match &mut self.heard {
            Heard::Pairs(hearing) => hearing.forget(),
            Heard::Rows(rows) => rows.cut(0),
        }
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}
