//! SentencePiece BPE as GGUF files describe it: pieces with scores instead of ranked merges, and
//! single bytes for characters without a piece. Implemented here because ranked merges cannot
//! express equal scores ("the leftmost pair first").

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use super::Special;
use super::cancel::{self, CANCELLED};
use super::table::{Kind, SPACE, byte_token};
use super::whole::{Mark, Whole, is_read};
use crate::token::TokenId;

/// Merges after which a cancellation is noticed.
const CHECKED_MERGES: u32 = 1 << 12;

/// Pieces of a vocabulary.
pub(super) struct SentencePiece {
    /// Token ids by spelling.
    ids: HashMap<String, TokenId>,
    scores: Vec<f32>,
    kinds: Vec<Kind>,
    /// Token of each byte.
    bytes: [Option<TokenId>; 256],
    unknown: Option<TokenId>,
    whole: Whole,
    adds_space: bool,
}

/// A run of characters that is, or may become, one piece. Runs form a linked list, so that merging
/// two is cheap.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    /// 0 once the run is merged into the previous one.
    len: usize,
    previous: Option<usize>,
    next: Option<usize>,
}

/// Two adjacent runs that together spell a piece.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// Length of both; stale if a run has grown since.
    len: usize,
}

impl Ord for Pair {
    /// Orders pairs for merging: the best score first, then the leftmost.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

impl SentencePiece {
    /// Builds the encoder from spellings, kinds and scores, ordered by id. With `adds_space` a
    /// space is prepended to a text, so that its first word is spelled like any other.
    pub fn new(
        tokens: &[(&str, Kind)],
        scores: Vec<f32>,
        unknown: Option<TokenId>,
        adds_space: bool,
    ) -> Self {
        let mut ids = HashMap::with_capacity(tokens.len());
        let mut bytes = [None; 256];
        let mut whole = Vec::new();
        for (&(text, kind), id) in tokens.iter().zip(0..) {
            ids.insert(text.to_owned(), id);
            match kind {
                Kind::Byte => {
                    if let Some(byte) = byte_token(text) {
                        bytes[usize::from(byte)] = Some(id);
                    }
                }
                Kind::Added | Kind::Control => {
                    // Matched in the text, in which spaces are unspelled: Gemma has tokens for runs
                    // of them.
                    whole.push(Mark::new(text.replace(SPACE, " "), id, kind));
                }
                Kind::Normal | Kind::Unused => {}
            }
        }
        let kinds = tokens.iter().map(|&(_, kind)| kind).collect();
        Self { ids, scores, kinds, bytes, unknown, whole: Whole::new(whole.into_iter()), adds_space }
    }

    /// Makes the whole-matched tokens that `which` selects by text absorb white space after them.
    pub fn drop_space_after(&mut self, which: impl Fn(&str) -> bool) {
        for mark in self.whole.iter_mut() {
            mark.takes_behind = which(&mark.text);
        }
    }

    /// Returns the tokens that are matched whole.
    pub fn whole(&self) -> &Whole {
        &self.whole
    }

    pub fn id_of(&self, text: &str) -> Option<TokenId> {
        self.ids.get(text).copied()
    }

    /// Encodes `text`.
    ///
    /// # Errors
    /// A reason if a character has no piece, no bytes and no unknown token.
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<TokenId>, String> {
        self.encode_where(text, |_, mark| special == Special::Parse || !mark.control)
    }

    /// Encodes `text` with special tokens, except where they overlap `plain`, ascending ranges.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_around(&self, text: &str, plain: &[Range<usize>]) -> Result<Vec<TokenId>, String> {
        self.encode_where(text, |range, mark| is_read(plain, &range, mark))
    }

    fn encode_where(
        &self,
        text: &str,
        allowed: impl Fn(Range<usize>, &Mark) -> bool,
    ) -> Result<Vec<TokenId>, String> {
        let mut tokens = Vec::new();
        // Every plain stretch starts a text, also after a special token.
        for (range, whole) in self.whole.stretches(text, allowed) {
            if cancel::is_cancelled() {
                return Err(CANCELLED.to_owned());
            }
            match whole {
                Some(id) => tokens.push(id),
                None => self.encode_plain(&text[range], self.adds_space, &mut tokens)?,
            }
        }
        Ok(tokens)
    }

    /// Encodes plain `text` that continues a text.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_within(&self, text: &str) -> Result<Vec<TokenId>, String> {
        let mut tokens = Vec::new();
        self.encode_plain(text, false, &mut tokens)?;
        Ok(tokens)
    }

    fn encode_plain(&self, text: &str, adds_space: bool, tokens: &mut Vec<TokenId>) -> Result<(), String> {
        if text.is_empty() {
            return Ok(());
        }
        let mut spelled = String::with_capacity(text.len() + 8);
        if adds_space {
            spelled.push(SPACE);
        }
        spelled.extend(text.chars().map(|c| if c == ' ' { SPACE } else { c }));
        let pieces = self.joined(&spelled);
        if cancel::is_cancelled() {
            return Err(CANCELLED.to_owned());
        }
        for piece in pieces {
            match self.piece(piece) {
                Some(id) => tokens.push(id),
                None => self.push_bytes(piece, tokens)?,
            }
        }
        Ok(())
    }

    /// Merges adjacent characters, best score first, until no two runs spell a piece or encoding
    /// is cancelled.
    fn joined<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t> {
        let count = text.chars().count();
        let mut runs: Vec<Run> = text
            .char_indices()
            .enumerate()
            .map(|(i, (start, c))| Run {
                start,
                len: c.len_utf8(),
                previous: i.checked_sub(1),
                next: (i + 1 < count).then_some(i + 1),
            })
            .collect();
        let mut pairs = BinaryHeap::new();
        for right in 1..runs.len() {
            pairs.extend(self.pair(text, &runs, Some(right - 1), Some(right)));
        }
        for merges in 1_u32.. {
            let Some(Pair { left, right, len, .. }) = pairs.pop() else { break };
            if merges % CHECKED_MERGES == 0 && cancel::is_cancelled() {
                break;
            }
            let (first, second) = (runs[left], runs[right]);
            if first.len == 0 || second.len == 0 || first.len + second.len != len {
                continue;
            }
            runs[left].len = len;
            runs[left].next = second.next;
            runs[right].len = 0;
            if let Some(next) = second.next {
                runs[next].previous = Some(left);
            }
            pairs.extend(self.pair(text, &runs, first.previous, Some(left)));
            pairs.extend(self.pair(text, &runs, Some(left), second.next));
        }
        runs.into_iter().filter(|run| run.len > 0).map(|run| &text[run.start..run.start + run.len])
    }

    fn pair(&self, text: &str, runs: &[Run], left: Option<usize>, right: Option<usize>) -> Option<Pair> {
        let (left, right) = (left?, right?);
        let len = runs[left].len + runs[right].len;
        let id = self.piece(&text[runs[left].start..runs[left].start + len])?;
        let score = self.scores.get(id as usize).copied().unwrap_or(0.0);
        Some(Pair { score, left, right, len })
    }

    /// Returns the token for a piece of plain text. Excludes control tokens and bytes: the text
    /// `</s>` must never end a reply, nor `<0x0A>` break a line.
    fn piece(&self, text: &str) -> Option<TokenId> {
        let id = self.id_of(text)?;
        matches!(self.kinds[id as usize], Kind::Normal | Kind::Added).then_some(id)
    }

    fn push_bytes(&self, text: &str, tokens: &mut Vec<TokenId>) -> Result<(), String> {
        let bytes: Option<Vec<TokenId>> = text.bytes().map(|byte| self.bytes[usize::from(byte)]).collect();
        match (bytes, self.unknown) {
            (Some(bytes), _) => tokens.extend(bytes),
            (None, Some(unknown)) => tokens.push(unknown),
            (None, None) => return Err(format!("it has no token for '{text}'")),
        }
        Ok(())
    }
}
