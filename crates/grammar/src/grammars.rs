//! The parent's side: compiles the grammars of a model's replies, and follows their texts.

use std::borrow::Cow;
use std::collections::HashMap;
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
        let (text, sent, known, ahead) = (Vec::new(), None, Vec::new(), HashMap::new());
        let mut cursor = Cursor { grammars, grammar, text, sent, known, ahead };
        cursor.ask(&[&[]])?;
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
    /// Masks that were asked for, by the tokens between the text and them.
    ahead: HashMap<Vec<TokenId>, Arc<Mask>>,
}

impl Cursor {
    /// Appends tokens to the text.
    pub fn extend(&mut self, tokens: &[TokenId]) {
        self.text.extend(tokens);
        let ahead = std::mem::take(&mut self.ahead).into_iter();
        self.ahead =
            ahead.filter_map(|(path, mask)| Some((path.strip_prefix(tokens)?.to_vec(), mask))).collect();
    }

    /// Masks after the text and after each token of a path, for each of `paths`, up to a token that
    /// is not allowed or ends the reply; behind a whole path also those after forced tokens.
    ///
    /// A mask depends on the tokens before it alone. So those that were asked for stay known while
    /// the text follows their paths; and where the matching failed, in which earlier paths used up
    /// some of its limits, it begins again with the text.
    ///
    /// # Errors
    /// `Error::Grammar` if the grammar takes more than its limits, or allows no text.
    pub fn masks(&mut self, paths: &[&[TokenId]]) -> Result<Vec<Vec<Arc<Mask>>>> {
        if let Some(known) = paths.iter().map(|path| self.ahead(path)).collect() {
            return Ok(known);
        }
        let begins = self.sent.is_none();
        match self.ask(paths) {
            Err(_) if !begins => self.ask(paths),
            masks => masks,
        }
    }

    /// Masks along `path` that are known, if all of it is.
    fn ahead(&self, path: &[TokenId]) -> Option<Vec<Arc<Mask>>> {
        let (mut masks, mut along) = (Vec::new(), Vec::new());
        while let Some(mask) = self.ahead.get(&along) {
            let next = match path.get(masks.len()) {
                Some(&token) => Some(token).filter(|&token| mask.allows(token)),
                None => mask.forced(),
            };
            masks.push(Arc::clone(mask));
            match next {
                Some(token) => along.push(token),
                None => return Some(masks),
            }
        }
        (masks.len() > path.len()).then_some(masks)
    }

    /// Asks for masks as [`Self::masks`], and keeps them.
    fn ask(&mut self, paths: &[&[TokenId]]) -> Result<Vec<Vec<Arc<Mask>>>> {
        let answered = self.send(paths)?;
        for (path, masks) in paths.iter().zip(&answered) {
            let mut along = Vec::new();
            for (depth, mask) in masks.iter().enumerate() {
                self.ahead.insert(along.clone(), Arc::clone(mask));
                along.extend(path.get(depth).copied().or(mask.forced()));
            }
        }
        Ok(answered)
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

#[cfg(test)]
mod tests {
    use foretoken_model::ModelSource;
    use foretoken_testkit::{Gguf, VOCABULARY};

    use super::*;

    #[test]
    fn masks_ahead_are_not_asked_for_again_while_the_text_follows_them() {
        let folder = tempfile::tempdir().unwrap();
        let source = ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap();
        let grammars = Grammars::in_this_process(&Arc::new(source.tokenizer().unwrap()), VOCABULARY);
        let mut cursor = grammars.begin(&Grammar::Regex("wxyz[ab]c".to_owned())).unwrap();
        let [a, c, w, x] = [b'a', b'c', b'w', b'x'].map(TokenId::from);
        let run = cursor.masks(&[&[]]).unwrap().remove(0);
        assert_eq!(run.len(), 5, "four forced letters");
        cursor.extend(&[w, x]);
        let later = cursor.ahead(&[]).unwrap();
        assert!(later.len() == 3 && later.iter().zip(&run[2..]).all(|(later, run)| Arc::ptr_eq(later, run)));
        assert!(cursor.ahead(&[w]).is_some_and(|masks| masks.len() == 1), "which is not allowed");
        let [y, z] = [b'y', b'z'].map(TokenId::from);
        assert!(cursor.ahead(&[y, z, a]).is_none(), "nobody asked");
        assert_eq!(cursor.masks(&[&[y, z, a]]).unwrap()[0][3].forced(), Some(c));
        assert!(cursor.ahead(&[y, z, a]).is_some());
        cursor.extend(&[y, z, TokenId::from(b'b')]);
        assert!(cursor.ahead(&[]).is_none(), "another way than the one that was asked for");
    }
}
