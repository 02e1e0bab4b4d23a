//! What a draft head has heard of a text whose cache has rows of the target's states, or of what the target cached, each
//! at one token: one that guesses blocks, or an assistant. None depends on a guess, so that there is nothing to take back
//! but what the text itself does.

use super::beginning::Beginning;
use crate::context::{Context, Mark};
use crate::error::Result;
use crate::forward::{Carried, Features, Model, Want};
use crate::token::TokenId;
use crate::tree::TokenTree;

/// Rows that wait for the next draft to be run with it: more are run as they are heard.
const AT_ONCE: usize = 16;

/// See the module.
pub(super) struct TextRows {
    pub model: Box<dyn Model>,
    /// Numbers of a token's features.
    width: usize,
    /// The tokens whose features were heard.
    heard: Vec<TokenId>,
    /// The features of the last of them, whose rows are not run.
    waiting: Vec<f32>,
    /// Of a head whose drafts go on from the state that a row begins with, that of the last token heard; empty where it is
    /// not known any more.
    state: Vec<f32>,
    /// Numbers of this state; 0 where drafts go on from none.
    state_width: usize,
    /// Of the context, as it was when its beginning was last compared with what was heard, and how much they had in
    /// common.
    compared: (Mark, usize),
}

impl TextRows {
    pub fn new(model: Box<dyn Model>, width: usize, state_width: usize) -> Self {
        let (heard, waiting, state) = (Vec::new(), Vec::new(), Vec::new());
        Self { model, width, heard, waiting, state, state_width, compared: Default::default() }
    }

    /// Forgets all but the first `length` tokens, and all of a block.
    pub fn cut(&mut self, length: usize) {
        let run = self.heard.len() - self.waiting.len() / self.width;
        let left = self.model.truncate(run.min(length));
        // Where the model went back further, rows are missing before those that wait.
        let length = if left < run.min(length) { left } else { length };
        if length < self.heard.len() {
            self.state.clear();
        }
        self.heard.truncate(length);
        self.waiting.truncate(self.heard.len().saturating_sub(run) * self.width);
        self.compared.1 = self.compared.1.min(length);
    }

    /// Takes in what the target ran from position `at` on. What does not follow what was heard before is not heard.
    ///
    /// # Errors
    /// Those of running the head.
    pub fn hear(&mut self, at: usize, tokens: &[TokenId], features: Option<Features<'_>>) -> Result<()> {
        self.cut(at);
        let Some(features) = features.filter(|_| self.heard.len() == at) else { return Ok(()) };
        self.heard.extend_from_slice(tokens);
        (0..tokens.len()).for_each(|row| self.waiting.extend_from_slice(features.row(row)));
        if let Some(last) = tokens.len().checked_sub(1) {
            self.state = features.row(last)[..self.state_width].to_vec();
        }
        if self.waiting.len() > AT_ONCE * self.width { self.run() } else { Ok(()) }
    }

    /// Runs what waits.
    fn run(&mut self) -> Result<()> {
        if !self.waiting.is_empty() {
            let rows = Features::new(&self.waiting, self.width);
            let tree = TokenTree::chain(self.heard[self.heard.len() - rows.len()..].iter().copied());
            drop(self.model.run(&tree, &Want::nothing().carrying(Carried::Target(rows)))?);
            self.waiting.clear();
        }
        Ok(())
    }

    /// Tokens at the end of `context`, less the last, that it would have to hear to draft after it.
    pub fn deaf(&self, context: &Context) -> usize {
        let (known, same) = (context.len().saturating_sub(1), self.common(context));
        // What a draft would go on from may be lost.
        let lost = same == known && same > 0 && !self.has_state(same);
        known - if lost { same - 1 } else { same }
    }

    /// Whether there is the state that a draft goes on from after so many of the tokens heard, if it needs one.
    fn has_state(&self, length: usize) -> bool {
        self.state_width == 0 || length == self.heard.len() && !self.state.is_empty()
    }

    /// How many of the tokens heard `context` begins with, and one follows.
    fn common(&self, context: &Context) -> usize {
        let (mark, same) = self.compared;
        let known = context.unchanged_since(mark).min(same).min(self.heard.len());
        context.common(&self.heard, known).min(context.len().saturating_sub(1))
    }

    /// The beginning of a draft that guesses token by token after `context`; `None` where there is nothing to draft from.
    ///
    /// # Errors
    /// Those of running the head.
    pub fn begin(&mut self, context: &Context) -> Result<Option<Beginning<'_>>> {
        if !self.ready(context)? || self.state.is_empty() {
            return Ok(None);
        }
        let (model, tree) = (self.model.as_mut(), TokenTree::chain([context[context.len() - 1]]));
        let carried = Carried::Own(Features::new(&self.state, self.state_width));
        Ok(Some(Beginning { model, tree, carried, text: 0 }))
    }

    /// Makes ready to guess the block that begins with the last token of `context`; whether there is enough to guess
    /// from.
    ///
    /// # Errors
    /// Those of running the head.
    pub fn ready(&mut self, context: &Context) -> Result<bool> {
        let same = self.common(context);
        self.cut(same);
        self.compared = (context.mark(), same);
        let complete = same + 1 == context.len();
        if complete {
            self.run()?;
        }
        Ok(complete)
    }
}
