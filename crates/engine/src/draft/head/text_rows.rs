//! What a draft head that guesses blocks has heard of a text: rows of its cache, each of the target's states at one
//! token. None depends on a guess, so that there is nothing to take back but what the text itself does.

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
    /// Of the context, as it was when its beginning was last compared with what was heard, and how much they had in
    /// common.
    compared: (Mark, usize),
}

impl TextRows {
    pub fn new(model: Box<dyn Model>, width: usize) -> Self {
        Self { model, width, heard: Vec::new(), waiting: Vec::new(), compared: Default::default() }
    }

    /// Forgets all but the first `length` tokens, and all of a block.
    pub fn cut(&mut self, length: usize) {
        let run = self.heard.len() - self.waiting.len() / self.width;
        let left = self.model.truncate(run.min(length));
        // Where the model went back further, rows are missing before those that wait.
        let length = if left < run.min(length) { left } else { length };
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
        context.len().saturating_sub(1) - self.common(context)
    }

    /// How many of the tokens heard `context` begins with, and one follows.
    fn common(&self, context: &Context) -> usize {
        let (mark, same) = self.compared;
        let known = context.unchanged_since(mark).min(same).min(self.heard.len());
        context.common(&self.heard, known).min(context.len().saturating_sub(1))
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
