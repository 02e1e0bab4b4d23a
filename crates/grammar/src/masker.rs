//! Answers requests for masks: keeps a vocabulary and the grammar of one text.

use std::collections::HashMap;
use std::sync::Arc;

use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Tokenizer};
use llguidance::ParserFactory;

use crate::ask::{Answer, Ask, Masks, Vocabulary};
use crate::mask::Mask;
use crate::matching::Matching;
use crate::vocabulary;

/// Most masks that both sides keep, of up to 33 kB each.
const MOST_KEPT: usize = 256;

/// See the module.
#[derive(Default)]
pub struct Masker {
    /// The last vocabulary, and where it was read, unless it was given.
    vocabulary: Option<(Option<Vocabulary>, Arc<ParserFactory>)>,
    text: Option<Text>,
}

/// The text that began last.
struct Text {
    number: u64,
    matching: Matching,
    /// Numbers of the masks that were sent.
    sent: HashMap<Mask, usize>,
}

impl Masker {
    /// Creates a masker for a vocabulary of which the first `rows` tokens are scored.
    ///
    /// # Errors
    /// As [`vocabulary::factory`].
    pub fn of(tokenizer: Arc<Tokenizer>, rows: usize) -> Result<Self, String> {
        let factory = Arc::new(vocabulary::factory(tokenizer, rows)?);
        Ok(Self { vocabulary: Some((None, factory)), text: None })
    }

    /// Answers a request. After an error the text has to begin again.
    pub fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        match ask {
            Ask::Read(vocabulary) => self.read(vocabulary).map(|()| Masks::default()),
            Ask::Begin { text, grammar } => {
                self.text = None;
                let (_, factory) = self.vocabulary.as_ref().ok_or("no vocabulary was read")?;
                let matching = Matching::begin(Arc::clone(factory), grammar)?;
                self.text = Some(Text { number: *text, matching, sent: HashMap::new() });
                Ok(Masks::default())
            }
            Ask::Follow { text, new, paths } => {
                let last = self.text.take().filter(|last| last.number == *text);
                let mut last = last.ok_or("its text ended")?;
                last.matching.extend(new)?;
                let masks = last.masks(paths.iter().map(AsRef::as_ref))?;
                self.text = Some(last);
                Ok(masks)
            }
        }
    }

    fn read(&mut self, wanted: &Vocabulary) -> Result<(), String> {
        if self.vocabulary.as_ref().is_some_and(|(known, _)| known.as_ref() == Some(wanted)) {
            return Ok(());
        }
        *self = Self::default();
        let read = ModelSource::open(&wanted.path).and_then(|source| source.tokenizer());
        let mut tokenizer = read.map_err(|error| error.to_string())?;
        wanted.ends.iter().for_each(|&end| tokenizer.add_end(end));
        let factory = Arc::new(vocabulary::factory(Arc::new(tokenizer), wanted.rows)?);
        self.vocabulary = Some((Some(wanted.clone()), factory));
        Ok(())
    }
}

impl Text {
    fn masks<'a>(&mut self, paths: impl Iterator<Item = &'a [TokenId]>) -> Answer {
        let mut masks = Masks { starts_over: self.sent.len() > MOST_KEPT, ..Masks::default() };
        if masks.starts_over {
            self.sent.clear();
        }
        for path in paths {
            let along = self.matching.masks(path)?;
            masks.paths.push(along.into_iter().map(|mask| self.number(mask, &mut masks.new)).collect());
        }
        Ok(masks)
    }

    /// Number of a mask, which is appended to `new` if it was not sent before.
    fn number(&mut self, mask: Mask, new: &mut Vec<Mask>) -> usize {
        let next = self.sent.len();
        *self.sent.entry(mask).or_insert_with_key(|mask| {
            new.push(mask.clone());
            next
        })
    }
}
