//! Draft heads: layers that draft from hidden states of their target, at a small part of its cost.
//!
//! - [`HeadDrafter`]: token by token. EAGLE-3 (Li et al. 2025) and MTP heads have a cache of their
//!   own (`pair_rows`). An assistant attends to the target's cache and has none (`text_rows`).
//! - `block`: a block of tokens in one pass (`text_rows`).
//! - `tokens`: shared by both.
//!
//! For text `x` and the target's fused states `g`, cache row `p` of an EAGLE-3 head is computed
//! from `(x[p + 1], g[p])` and predicts the token after `x[p + 1]`. A guess is run with the head's
//! own output for the token before it. Its row is dropped after the draft, and accepted tokens are
//! run again with the target's states.

mod block;
mod pair_rows;
mod shortlist;
mod start;
mod text_rows;
mod tokens;

use std::collections::HashMap;

use foretoken_forward::{Features, HeadInput, Model, Taps, Want};
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;
use foretoken_model::{DraftHead, HeadKind, ModelSource};

use self::block::BlockDrafter;
use self::pair_rows::PairRows;
use self::start::DraftStart;
use self::text_rows::TextRows;
use self::tokens::Tokens;
use super::{Cost, Draft, DraftRequest, Drafter, Observation, ParkedDrafter, Search};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::sampler::Sampler;
use crate::trace::LengthReason;

/// See the module.
pub struct HeadDrafter {
    rows: HeadRows,
    /// Hidden states of the target that the head reads.
    taps: Taps,
    /// The head's own output that its next step reads.
    own: Taps,
    tokens: Tokens,
    /// True if the head may restrict its guesses to a [part](shortlist) of the vocabulary.
    shortlists: bool,
}

/// Rows of the text that the head has observed and run.
enum HeadRows {
    Pairs(PairRows),
    /// Rows of an assistant.
    Text(TextRows),
}

impl HeadRows {
    fn model(&self) -> &dyn Model {
        match self {
            Self::Pairs(rows) => rows.model.as_ref(),
            Self::Text(rows) => rows.model.as_ref(),
        }
    }

    fn begin(&mut self, context: &Context) -> Result<Option<DraftStart<'_>>> {
        match self {
            Self::Pairs(rows) => Ok(rows.begin(context)),
            Self::Text(rows) => rows.begin(context),
        }
    }
}

/// Creates the drafter of the head `source`, which is [adapted to its
/// target](ModelSource::for_target) and loaded as `model`: token by token or in blocks. `ends` are
/// the target's end tokens.
///
/// # Errors
/// `Error::BadModel` for an invalid table of tokens.
pub fn head_drafter(
    source: &ModelSource,
    model: Box<dyn Model>,
    ends: &[TokenId],
) -> Result<Box<dyn Drafter>> {
    let head = source.config()?.draft_head.as_ref();
    Ok(match head.and_then(|head| Some((head, head.block()?))) {
        Some((head, block)) => Box::new(BlockDrafter::new(head, block, model, Tokens::of(source, ends)?)),
        None => Box::new(HeadDrafter::new(source, model, ends)?),
    })
}

impl HeadDrafter {
    /// Creates the drafter of the head `source`, which is [adapted to its
    /// target](ModelSource::for_target) and loaded as `model`. `ends` are the target's end tokens.
    ///
    /// # Errors
    /// `Error::BadModel` for an invalid table of tokens.
    pub fn new(source: &ModelSource, model: Box<dyn Model>, ends: &[TokenId]) -> Result<Self> {
        let config = source.config()?;
        let head = config.draft_head.as_ref();
        let entering = head.and_then(|head| head.entering.clone()).unwrap_or_default();
        let own = match head.is_some_and(DraftHead::normed_output) {
            true => Taps { last: true, ..Taps::default() },
            false => Taps { entering: vec![config.depth()], ..Taps::default() },
        };
        let width = head.map_or(0, DraftHead::states);
        let rows = match config.assistant() {
            Some(_) => HeadRows::Text(TextRows::new(model, width, config.carried())),
            None => HeadRows::Pairs(PairRows::new(model, width)),
        };
        let cached = config.assistant().map_or_else(Vec::new, |assistant| assistant.sees.clone());
        Ok(Self {
            taps: Taps { entering, last: head.is_some_and(DraftHead::reads_last), cached },
            own,
            shortlists: head.is_some_and(|head| head.kind == HeadKind::Mtp),
            tokens: Tokens::of(source, ends)?,
            rows,
        })
    }

    /// Tokens that may still be drafted.
    fn room(&self, context: &Context) -> usize {
        self.rows.model().config().context.saturating_sub(context.len())
    }

    /// Drafts a chain or a tree.
    fn search(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let vocabulary = self.rows.model().config().vocabulary;
        let guessed = if self.shortlists { shortlist::length(context, vocabulary) } else { vocabulary };
        let Self { rows, own, tokens, .. } = self;
        let mut search = Search::new(request, context, DrafterKind::Head, tokens.ends());
        let Some(start) = rows.begin(context)? else { return Ok(search.finish()) };
        let DraftStart { model, mut tree, head_input, text } = start;
        let last = tree.len() - 1;
        let subset = sampler.logit_subset(request.width);
        let want = |rows| Want::rows(rows).subset(subset).features(own).vocabulary(guessed);
        let mut pass = model.run(&tree, &want(last..last + 1).head_input(head_input))?;
        // Node and own output of each candidate that was run.
        let mut run: HashMap<Option<usize>, (usize, Vec<f32>)> = HashMap::new();
        let mut places = search.next_step();
        // Number of the first place's node, and its row of the pass's features.
        let (mut node, mut first) = (last, last);
        loop {
            let (logits, features) = (pass.logits(), pass.features());
            for (row, &place) in places.iter().enumerate() {
                let state = features.map_or_else(Vec::new, |features| features.row(first + row).to_vec());
                run.insert(place, (node + row, state));
                let row = tokens.name(logits.row(row).first(guessed)?);
                search.expand(place, row, None, sampler)?;
            }
            places = search.next_step();
            if places.is_empty() {
                break;
            }
            (node, first) = (tree.len(), 0);
            let mut states = Vec::new();
            for &place in places.iter().flatten() {
                let (parent, state) = &run[&search.parent(place)];
                tree.push(search.token(Some(place)), Some(*parent));
                states.extend_from_slice(state);
            }
            let head_input = HeadInput::Own(Features::new(&states, states.len() / places.len()));
            pass = pass.grow(&tree, &want(0..usize::MAX).head_input(head_input))?;
        }
        // Accepted guesses are run again with the target's states.
        pass.keep(&(0..text).collect::<Vec<_>>())?;
        Ok(search.finish())
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
        let fits = request.within(room);
        if fits.length == 0 {
            return Ok(Draft { shortened: Some(LengthReason::DraftContextFull), ..Draft::default() });
        }
        let mut draft = self.search(context, &fits, sampler)?;
        if room < request.length && draft.shortened.is_none() {
            draft.shortened = Some(LengthReason::DraftContextFull);
        }
        Ok(draft)
    }

    fn observe(&mut self, observed: &Observation<'_>) -> Result<()> {
        if observed.at + observed.tokens.len() >= self.rows.model().config().context {
            // There is no room to draft from here on.
            return Ok(());
        }
        match &mut self.rows {
            HeadRows::Pairs(rows) => rows.observe(observed.at, observed.tokens, observed.features),
            HeadRows::Text(rows) => rows.observe(observed.at, observed.tokens, observed.features),
        }
    }

    fn taps(&self) -> Option<&Taps> {
        Some(&self.taps)
    }

    fn missing_features(&self, context: &Context) -> usize {
        match &self.rows {
            _ if self.room(context) == 0 => 0,
            HeadRows::Pairs(rows) => rows.missing_features(context),
            HeadRows::Text(rows) => rows.missing_features(context),
        }
    }

    fn grows_trees(&self) -> bool {
        true
    }

    fn forget(&mut self) {
        match &mut self.rows {
            HeadRows::Pairs(rows) => rows.forget(),
            HeadRows::Text(rows) => rows.cut(0),
        }
    }

    fn park(&self) -> Option<ParkedDrafter> {
        let parked = match &self.rows {
            HeadRows::Pairs(rows) => rows.park(),
            HeadRows::Text(rows) => rows.park(),
        };
        parked.map(ParkedDrafter::Head)
    }

    fn resume(&mut self, parked: &ParkedDrafter) {
        let ParkedDrafter::Head(parked) = parked else { return };
        match &mut self.rows {
            HeadRows::Pairs(rows) => rows.resume(parked),
            HeadRows::Text(rows) => rows.resume(parked),
        }
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}
