//! The parent's side: compiles the grammars of a model's replies, and follows their texts.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use foretoken_model::child::{Child, Failure, Program, Task};
use foretoken_model::token::TokenId;
use foretoken_model::{Result, Tokenizer};

use crate::ask::{Answer, Ask, COMPILE, READ, TASK, Vocabulary};
use crate::grammar::Grammar;
use crate::mask::Mask;
use crate::masker::Masker;

/// Compiles grammars of one model, and follows one text at a time.
pub struct Grammars {
    place: Place,
    /// Texts that began so far.
    texts: AtomicU64,
}

/// Process that compiles.
enum Place {
    Child { child: Child, vocabulary: Vocabulary },
    Here { masker: Box<Mutex<Option<Masker>>>, tokenizer: Arc<Tokenizer>, rows: usize },
}

impl Grammars {
    /// Compiles in a child process of `program`, started on demand. The program must begin with
    /// [`foretoken_model::child::serve_if_asked`], with [`TASK`] among its tasks. The model at
    /// `path` has `tokenizer` and scores its first `rows` tokens.
    pub fn in_child(program: &Program, path: &Path, tokenizer: &Tokenizer, rows: usize) -> Arc<Self> {
        let vocabulary = Vocabulary { path: path.into(), rows, ends: tokenizer.ends().to_vec() };
        Self::at(Place::Child { child: Child::of(program.clone()), vocabulary })
    }

    /// Compiles in this process, for tests with their own grammars. An untrusted grammar could take
    /// all memory, overflow the stack or run for hours.
    pub fn in_this_process(tokenizer: &Arc<Tokenizer>, rows: usize) -> Arc<Self> {
        Self::at(Place::Here { masker: Box::default(), tokenizer: Arc::clone(tokenizer), rows })
    }

    fn at(place: Place) -> Arc<Self> {
        Arc::new(Self { place, texts: AtomicU64::default() })
    }

    /// Compiles a grammar and begins a text of it.
    ///
    /// # Errors
    /// `Error::Grammar` if it cannot be compiled within the limits, or accepts nothing.
    pub fn begin(self: &Arc<Self>, grammar: &Grammar) -> Result<Cursor> {
        grammar.admit()?;
        let (grammars, grammar) = (Arc::clone(self), grammar.clone());
        let mut cursor = Cursor { grammars, grammar, text: Vec::new(), sent: None, known: Vec::new() };
        cursor.send(&[&[]])?;
        Ok(cursor)
    }

    fn answer(&self, ask: &Ask<'_>) -> Answer {
        match &self.place {
            Place::Child { child, .. } => answer_of(child, ask),
            Place::Here { masker, tokenizer, rows } => {
                let mut masker = masker.lock().unwrap_or_else(PoisonError::into_inner);
                let masker = match &mut *masker {
                    Some(masker) => masker,
                    empty => empty.insert(Masker::of(Arc::clone(tokenizer), *rows)?),
                };
                masker.answer(ask)
            }
        }
    }
}

/// Returns the answer of a child process.
fn answer_of(child: &Child, ask: &Ask<'_>) -> Answer {
    let time = match ask {
        Ask::Read(_) => READ,
        Ask::Begin { .. } => COMPILE,
        Ask::Follow { .. } => TASK.time,
    };
    let input = serde_json::to_vec(ask).map_err(|error| error.to_string())?;
    let answer = child.answer(&Task { time, ..TASK }, &input).map_err(|failure| match failure {
        Failure::NotStarted(error) => format!("what compiles it cannot be started: {error}"),
        Failure::TooLong => "it takes too long".to_owned(),
        Failure::TooMuchMemory => "it takes too much memory".to_owned(),
        Failure::Ended => "it needs more than this program allows".to_owned(),
    })?;
    serde_json::from_slice(&answer).unwrap_or_else(|error| Err(error.to_string()))
}

/// A text of a grammar. It only grows; guesses that might follow it leave no trace.
pub struct Cursor {
    grammars: Arc<Grammars>,
    grammar: Grammar,
    text: Vec<TokenId>,
    /// Number of the text, and how many of its tokens were sent; `None` before it began.
    sent: Option<(u64, usize)>,
    /// Masks that were sent, by their numbers.
    known: Vec<Arc<Mask>>,
}

impl Cursor {
    /// Appends tokens to the text.
    pub fn extend(&mut self, tokens: &[TokenId]) {
        self.text.extend(tokens);
    }

    /// Masks after the text and after each token of a path, for each of `paths`, up to a token that
    /// is not allowed or ends the reply; behind a whole path also those after each forced token.
    ///
    /// A mask depends on the tokens before it alone: where the matching failed, in which earlier
    /// paths used up some of its limits, it begins again with the text.
    ///
    /// # Errors
    /// `Error::Grammar` if the grammar takes more than its limits, or allows no text.
    pub fn masks(&mut self, paths: &[&[TokenId]]) -> Result<Vec<Vec<Arc<Mask>>>> {
        let begins = self.sent.is_none();
        match self.send(paths) {
            Err(_) if !begins => self.send(paths),
            masks => masks,
        }
    }

    fn send(&mut self, paths: &[&[TokenId]]) -> Result<Vec<Vec<Arc<Mask>>>> {
        let ask = |ask: &Ask<'_>| self.grammars.answer(ask).map_err(|reason| self.grammar.error(reason));
        let (text, sent) = match self.sent.take() {
            Some(sent) => sent,
            None => {
                self.known.clear();
                if let Place::Child { vocabulary, .. } = &self.grammars.place {
                    ask(&Ask::Read(Cow::Borrowed(vocabulary)))?;
                }
                let text = self.grammars.texts.fetch_add(1, Ordering::Relaxed);
                ask(&Ask::Begin { text, grammar: Cow::Borrowed(&self.grammar) })?;
                (text, 0)
            }
        };
        let (new, paths) =
            (Cow::Borrowed(&self.text[sent..]), paths.iter().map(|&path| path.into()).collect());
        let masks = ask(&Ask::Follow { text, new, paths })?;
        self.sent = Some((text, self.text.len()));
        if masks.starts_over {
            self.known.clear();
        }
        self.known.extend(masks.new.into_iter().map(Arc::new));
        let known = |number: usize| {
            let mask = self.known.get(number).map(Arc::clone);
            mask.ok_or_else(|| self.grammar.error("its masks are incomplete"))
        };
        masks.paths.into_iter().map(|path| path.into_iter().map(known).collect()).collect()
    }
}
