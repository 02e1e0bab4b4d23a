//! Draft model: a smaller language model that drafts step by step; a step runs all tokens of a tree
//! that are worth continuing in one pass (Spector and Re 2023; Miao et al. 2023). Staged drafting
//! is in `staged`.

mod draft_text;
mod staged;

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use foretoken_forward::device::Device;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, Row, Want, catch_up, load};
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Tokenizer};

use self::draft_text::DraftText;
use super::vocabulary::{Intersection, Vocabulary};
use super::{Cost, Draft, DraftRequest, Drafter, NgramDrafter, ParkedDrafter, Search};
use crate::accept::Guess;
use crate::compat::{Method, compare};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::sampler::Sampler;
use crate::trace::LengthReason;

/// Maximum number of unfed tokens that are run in the pass whose logits are needed.
const AT_ONCE: usize = 16;

/// Drafts with a model of the target's vocabulary, or of one that shares many tokens with it.
pub struct ModelDrafter {
    model: Box<dyn Model>,
    vocabulary: Vocabulary,
    /// Drafter for this model in staged drafting; it works on the draft model's tokens.
    stage: Box<dyn Drafter>,
    /// End tokens: nothing is drafted after one.
    ends: Vec<TokenId>,
    text: DraftText,
}

impl ModelDrafter {
    /// `ends` are the target's end tokens.
    pub fn new(model: Box<dyn Model>, vocabulary: Vocabulary, ends: &[TokenId]) -> Self {
        let (stage, ends) = (Box::<NgramDrafter>::default(), ends.to_vec());
        Self { model, vocabulary, stage, ends, text: DraftText::default() }
    }

    /// Sets the drafter for staged drafting. The default repeats n-grams of the conversation.
    #[must_use]
    pub fn drafted_by(self, stage: Self) -> Self {
        Self { stage: Box::new(stage), ..self }
    }

    /// Loads the model `source` to draft for a target with the tokenizer `target`.
    ///
    /// # Errors
    /// `Error::Incompatible` if the vocabularies share too few tokens, and errors of loading a
    /// model.
    pub fn open(source: &ModelSource, device: &Device, target: &Tokenizer) -> Result<Self> {
        Self::open_by(source, target, |source| load(source, device))
    }

    /// As [`Self::open`], but loads the model with `load`, which is called after the vocabularies
    /// were compared.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_by(
        source: &ModelSource,
        target: &Tokenizer,
        load: impl FnOnce(&ModelSource) -> Result<Box<dyn Model>>,
    ) -> Result<Self> {
        let tokenizer = source.tokenizer()?;
        let verdict = compare(target, &tokenizer);
        let vocabulary = match verdict.method {
            None | Some(Method::Head) => return Err(Error::Incompatible(verdict.whole())),
            Some(Method::Same) => Vocabulary::Same(target.vocabulary().min(tokenizer.vocabulary())),
            Some(Method::Intersection) => {
                Vocabulary::Intersection(Box::new(Intersection::of(target, &tokenizer)))
            }
        };
        Ok(Self::new(load(source)?, vocabulary, target.ends()))
    }

    /// Number of the target's first tokens among which all guesses are.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary.guessed()
    }

    /// Restricts guesses of a shared vocabulary to its first `scored` tokens.
    #[must_use]
    pub fn limited_to(mut self, scored: usize) -> Self {
        if let Vocabulary::Same(shared) = &mut self.vocabulary {
            *shared = (*shared).min(scored);
        }
        self
    }

    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }

    /// Tokens this model may still be fed.
    fn room(&self) -> usize {
        self.model.config().context.saturating_sub(self.text.tokens.len())
    }

    /// Prefills all but the tokens that fit into the next pass. Returns the number of cached
    /// tokens.
    fn catch_up(&mut self) -> Result<usize> {
        let known = self.text.tokens.len();
        let fed = self.text.common(self.model.cached()).min(known.saturating_sub(1));
        let fed = self.model.truncate(fed);
        // After full acceptance the last guess and the bonus token are both new, as are tokens that
        // others drafted meanwhile. They are fed in the pass that scores the last of them and cost
        // no pass of their own.
        if known - fed <= AT_ONCE {
            return Ok(fed);
        }
        let go_on = &mut |_, _| ControlFlow::Continue(());
        let _ = catch_up(self.model.as_mut(), &self.text.tokens, go_on)?;
        Ok(known - 1)
    }

    /// Requests the part of the logits of `rows` that up to `count` guesses from each need.
    fn want(&self, rows: Range<usize>, sampler: &Sampler, count: usize) -> Want<'static> {
        match self.vocabulary {
            Vocabulary::Same(shared) => {
                Want::rows(rows).subset(sampler.logit_subset(count)).vocabulary(shared)
            }
            Vocabulary::Intersection(_) => Want::rows(rows),
        }
    }

    /// All tokens that are not fed yet, as one chain.
    fn unfed(&self, fed: usize) -> TokenTree {
        TokenTree::chain(self.text.tokens[fed..].iter().copied())
    }

    /// Drafts a chain or a tree after the known tokens.
    fn search(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let fed = self.catch_up()?;
        let mut tree = self.unfed(fed);
        let text = tree.len();
        let rows = |this: &Self, rows| this.want(rows, sampler, request.width);
        let (last, every) = (rows(self, text - 1..text), rows(self, 0..usize::MAX));
        let mut search = Search::new(request, context, DrafterKind::Model, &self.ends);
        // Nodes of the tree by candidate.
        let mut nodes: HashMap<Option<usize>, usize> = HashMap::from([(None, text - 1)]);
        let mut places = search.next_step();
        if places.is_empty() {
            return Ok(search.finish());
        }
        let mut pass = self.model.run(&tree, &last)?;
        loop {
            let logits = pass.logits();
            for (row, &place) in places.iter().enumerate() {
                let expand = |row: Row<'_>| search.expand(place, row, None, sampler);
                in_target(&self.vocabulary, logits.row(row), expand)?;
            }
            places = search.next_step();
            if places.is_empty() {
                break;
            }
            for &place in places.iter().flatten() {
                let token = self.vocabulary.in_draft(search.token(Some(place)));
                let node = tree.push(token, Some(nodes[&search.parent(place)]));
                nodes.insert(Some(place), node);
            }
            pass = pass.grow(&tree, &every)?;
        }
        // The likeliest path stays cached: it need not be fed again if it is accepted.
        let path = search.likeliest_path().into_iter().map(|place| nodes[&Some(place)]);
        pass.keep(&(0..text).chain(path).collect::<Vec<_>>())?;
        Ok(search.finish())
    }

    /// Drafts a chain after the known tokens, several of which may come from one pass.
    fn search_staged(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let ends = self.ends.clone();
        let mut search = Search::new(request, context, DrafterKind::Model, &ends);
        while let [place, ..] = search.next_step()[..] {
            let path = search.path(place);
            let left = request.length - path.len();
            let guesses = self.guess_staged(context, &path, left, sampler)?;
            search.add_chain(place, guesses.into_iter().take(left));
        }
        Ok(search.finish())
    }

    /// Appends guesses to the known tokens.
    fn learn(&mut self, guesses: &[Guess]) {
        self.text.tokens.extend(guesses.iter().map(|guess| self.vocabulary.in_draft(guess.token)));
    }

    /// Drafts what `request` asks for after the known tokens.
    fn draft_known(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let room = self.room();
        let fits = request.within(room);
        if fits.length == 0 {
            return Ok(Draft { shortened: Some(LengthReason::DraftContextFull), ..Draft::default() });
        }
        let search = if request.staged { Self::search_staged } else { Self::search };
        let mut draft = search(self, context, &fits, sampler)?;
        if room < request.length && draft.shortened.is_none() {
            draft.shortened = Some(LengthReason::DraftContextFull);
        }
        Ok(draft)
    }
}

/// Calls `choose` with a row whose indices are the target's tokens.
fn in_target<T>(
    vocabulary: &Vocabulary,
    row: Row<'_>,
    choose: impl FnOnce(Row<'_>) -> Result<T>,
) -> Result<T> {
    match vocabulary {
        Vocabulary::Same(shared) => choose(row.first(*shared)?),
        Vocabulary::Intersection(_) => match vocabulary.align(row.logits()?) {
            Some(aligned) => choose(Row::of(&aligned)),
            None => choose(row),
        },
    }
}

impl Drafter for ModelDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Model
    }

    fn prepare(
        &mut self,
        context: &Context,
        on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.text.follow(context, &self.vocabulary);
        if self.room() == 0 {
            // There is no room to draft.
            return Ok(ControlFlow::Continue(()));
        }
        Ok(catch_up(self.model.as_mut(), &self.text.tokens, on_progress)?.1)
    }

    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        self.text.follow(context, &self.vocabulary);
        let text = self.text.tokens.len();
        if text == 0 || request.length == 0 {
            return Ok(Draft::default());
        }
        self.model.prepare_for_length(text);
        let draft = self.draft_known(context, request, sampler);
        self.text.tokens.truncate(text);
        draft
    }

    fn forget(&mut self) {
        self.model.truncate(0);
        self.text.forget();
        self.stage.forget();
    }

    fn park(&self) -> Option<ParkedDrafter> {
        Some(ParkedDrafter::Model { model: self.model.park()?, stage: self.stage.park().map(Box::new) })
    }

    fn resume(&mut self, parked: &ParkedDrafter) {
        let ParkedDrafter::Model { model, stage } = parked else { return };
        self.forget();
        self.model.resume(model);
        if let Some(stage) = stage {
            self.stage.resume(stage);
        }
    }

    fn behind(&self, context: &Context) -> usize {
        self.text.behind(self.model.cached(), context, &self.vocabulary)
    }

    fn grows_trees(&self) -> bool {
        true
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretoken_forward::TensorModel;
    use foretoken_model::sampling::Sampling;
    use foretoken_testkit::Gguf;

    #[test]
    fn a_draft_model_on_tensors_reads_tokens_that_it_must_not_guess() {
        let folder = tempfile::tempdir().unwrap();
        let source = ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap();
        // The target has the first 100 of the 261 tokens.
        let context = Context::new(vec![1, 200, 3, 260]);
        for sampling in [Sampling::greedy(), Sampling::default()] {
            let model = TensorModel::load(&source, &candle_core::Device::Cpu).unwrap();
            let mut drafter = ModelDrafter::new(Box::new(model), Vocabulary::Same(100), &[]);
            let mut sampler = Sampler::new(&sampling).unwrap();
            let draft = drafter.draft(&context, &DraftRequest::chain(3), &mut sampler).unwrap();
            assert_eq!(draft.guesses.len(), 3);
            assert!(draft.guesses.iter().all(|guess| guess.token < 100));
        }
    }

    #[test]
    fn a_draft_model_on_the_cpu_does_not_guess_what_the_target_does_not_have() {
        let folder = tempfile::tempdir().unwrap();
        let source = ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap();
        // The target has the first few of the 261 tokens.
        for shared in [2, 10, 100] {
            let model = load(&source, &Device::Cpu).unwrap();
            let mut drafter = ModelDrafter::new(model, Vocabulary::Same(shared), &[]);
            let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
            let context = Context::new(vec![1, 0, 1, 260]);
            let draft = drafter.draft(&context, &DraftRequest::chain(3), &mut sampler).unwrap();
            assert_eq!(draft.guesses.len(), 3);
            assert!(draft.guesses.iter().all(|guess| (guess.token as usize) < shared), "{shared}");
        }
    }
}
