//! Drafts a block of tokens in one pass: DFlash, DFlash 2, DSpark, Domino and LiLiCorr. `text_rows`
//! keeps the head's rows of the text.
//!
//! A block is the last token of the text followed by masks. In DFlash its positions are guessed
//! independently. With a Markov bias, the logits of a position depend on the token actually guessed
//! before it, and with Domino's GRU on all of them, so that a guess is drawn from exactly the
//! reported distribution.

use std::collections::HashMap;

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, LogitSubset, Model, Taps, Want};
use foretoken_model::error::Result;
use foretoken_model::{BlockHead, DraftHead};

use super::text_rows::TextRows;
use super::tokens::Tokens;
use crate::context::Context;
use crate::draft::{Cost, Draft, DraftRequest, Drafter, Observation, ParkedDrafter, Search};
use crate::drafter_kind::DrafterKind;
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

    /// Drafts a chain or a tree of up to the requested length. One pass has all its steps.
    fn search(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let pairs = self.head.lilicorr().is_some();
        // A path of the likeliest pairs was not drawn.
        let search = Search::new(request, context, DrafterKind::Head, self.tokens.ends());
        let mut search = search.certain(pairs);
        if !self.rows.ready(context)? {
            return Ok(search.finish());
        }
        let (first, length) = (self.head.first(), request.length);
        // The candidates of all positions see each other.
        let rows = if pairs { self.room(context).min(self.head.longest()) } else { length };
        let masks = std::iter::repeat_n(self.head.mask, first + rows - 1);
        let block = TokenTree::chain(std::iter::once(search.token(None)).chain(masks));
        let subset = if pairs { LogitSubset::Everything } else { sampler.logit_subset(request.width) };
        let want = Want::rows(first..first + rows).subset(subset);
        let anchor = self.rows.state().to_vec();
        let mut pass = self.rows.model.run(&block, &want)?;
        let anchor = pairs.then(|| Features::new(&anchor, anchor.len()));
        let begin = pass.begin_block(anchor)?;
        // State of the block after each expanded candidate.
        let mut states = HashMap::new();
        loop {
            let places = search.next_step();
            if places.is_empty() {
                break;
            }
            for place in places {
                let before = place.map_or(&begin, |place| &states[&search.parent(place)]);
                let state = pass.next_state(before, search.token(place))?;
                let (scores, confidence) = pass.row_after(search.depth(place), &state)?;
                search.expand(place, self.tokens.name(scores), confidence, sampler)?;
                states.insert(place, state);
            }
        }
        // Block rows never stay cached.
        pass.keep(&[])?;
        Ok(search.finish())
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
        let length = request.length.min(longest);
        let fits = DraftRequest { length: length.min(room), ..*request };
        if fits.length == 0 {
            return Ok(Draft { shortened: Some(LengthReason::DraftContextFull), ..Draft::default() });
        }
        let mut draft = self.search(context, &fits, sampler)?;
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

    fn park(&self) -> Option<ParkedDrafter> {
        self.rows.park().map(ParkedDrafter::Head)
    }

    fn resume(&mut self, parked: &ParkedDrafter) {
        if let ParkedDrafter::Head(parked) = parked {
            self.rows.resume(parked);
        }
    }

    fn cost(&self) -> Cost {
        Cost::AtOnce { longest: self.head.longest() }
    }
}
