//! Drafts a block of tokens in one pass: DFlash, DFlash 2, DSpark, Domino and LiLiCorr. `text_rows`
//! keeps the head's rows of the text.
//!
//! A block is the last token of the text followed by masks. In DFlash its positions are guessed
//! independently. With a Markov bias, the logits of a position depend on the token actually guessed
//! before it, and with Domino's GRU on all of them, so that a guess is drawn from exactly the
//! reported distribution.

use std::rc::Rc;

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, LogitSubset, Model, Taps, Want};
use foretoken_model::error::Result;
use foretoken_model::{BlockHead, DraftHead};

use super::growth::{Growth, Position};
use super::text_rows::TextRows;
use super::tokens::Tokens;
use crate::context::Context;
use crate::draft::{Cost, Draft, DraftRequest, Drafter, Observation};
use crate::drafter_kind::DrafterKind;
use crate::governor::Shape;
use crate::sampler::Sampler;
use crate::trace::LengthReason;

/// See the module.
pub struct BlockDrafter {
    rows: TextRows,
    head: BlockHead,
    /// Hidden states of the target that the head reads.
    taps: Taps,
    tokens: Tokens,
}

impl BlockDrafter {
    /// Creates the drafter of a head with configuration `config` and its `block`.
    pub(super) fn new(config: &DraftHead, block: &BlockHead, model: Box<dyn Model>, tokens: Tokens) -> Self {
        let entering = config.entering.clone().unwrap_or_default();
        Self {
            rows: TextRows::new(model, config.states(), block.lilicorr().map_or(0, |_| config.states())),
            head: block.clone(),
            taps: Taps { entering, ..Taps::default() },
            tokens,
        }
    }

    /// Tokens that may still be drafted.
    fn room(&self, context: &Context) -> usize {
        self.rows.model.config().context.saturating_sub(context.len())
    }

    /// Drafts a chain of up to the requested length, or a tree of that depth.
    fn guess(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        shape: Option<&Shape>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let pairs = self.head.lilicorr().is_some();
        // A path of the likeliest pairs was not drawn.
        let mut growth = Growth::new(context, &self.tokens, request, shape).certain(pairs);
        if !self.rows.ready(context)? {
            return Ok(growth.draft());
        }
        let (first, length) = (self.head.first(), request.length);
        // The candidates of all positions see each other.
        let rows = if pairs { self.room(context).min(self.head.longest()) } else { length };
        let masks = std::iter::repeat_n(self.head.mask, first + rows - 1);
        let block = TokenTree::chain(std::iter::once(growth.token(Position::ROOT)).chain(masks));
        let subset = if pairs { LogitSubset::Everything } else { growth.logit_subset(sampler) };
        let want = Want::rows(first..first + rows).subset(subset);
        let anchor = self.rows.state().to_vec();
        let mut pass = self.rows.model.run(&block, &want)?;
        let anchor = pairs.then(|| Features::new(&anchor, anchor.len()));
        // Each position with the state of the block before its token.
        let mut positions = vec![(Position::ROOT, Rc::new(pass.begin_block(anchor)?))];
        for row in 0..length {
            let mut next = Vec::new();
            for (position, before) in positions {
                let state = Rc::new(pass.next_state(&before, growth.token(position))?);
                let (scores, confidence) = pass.row_after(row, &state)?;
                let guessed = growth.guess(position, scores, confidence, sampler)?;
                next.extend(guessed.into_iter().map(|position| (position, Rc::clone(&state))));
            }
            positions = next;
        }
        // Block rows never stay cached.
        pass.keep(&[])?;
        Ok(growth.draft())
    }
}

impl Drafter for BlockDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Head
    }

    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let (room, longest) = (self.room(context), self.head.longest());
        // A tree is drafted only where all of it has room.
        let shape = request.shape.filter(|shape| shape.depth() <= room);
        let length = shape.map_or(request.length, Shape::depth).min(longest);
        if length.min(room) == 0 {
            return Ok(Draft { shortened: Some(LengthReason::DraftContextFull), ..Draft::default() });
        }
        let request = DraftRequest { length: length.min(room), ..*request };
        let mut draft = self.guess(context, &request, shape, sampler)?;
        if room < length && draft.shortened.is_none() {
            draft.shortened = Some(LengthReason::DraftContextFull);
        }
        Ok(draft)
    }

    fn observe(&mut self, observed: &Observation<'_>) -> Result<()> {
        if observed.at + observed.tokens.len() >= self.rows.model.config().context {
            // There is no room to draft from here on.
            return Ok(());
        }
        self.rows.observe(observed.at, observed.tokens, observed.features)
    }

    fn taps(&self) -> Option<&Taps> {
        Some(&self.taps)
    }

    fn missing_features(&self, context: &Context) -> usize {
        if self.room(context) == 0 { 0 } else { self.rows.missing_features(context) }
    }

    fn grows_trees(&self) -> bool {
        true
    }

    fn forget(&mut self) {
        self.rows.cut(0);
    }

    fn cost(&self) -> Cost {
        Cost::AtOnce { longest: self.head.longest() }
    }
}
