//! Bytes of every token, in one block. The only place that knows how vocabularies spell bytes.

use std::fmt::Write;

use crate::token::TokenId;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    /// Text matched whole before anything else.
    Added,
    /// A single byte.
    Byte,
    /// No text: start, end, separator or unknown token.
    Control,
    /// Placeholder that never occurs.
    Unused,
}

/// Spelling of tokens in a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Each byte as one printable character (GPT-2's alphabet).
    ByteLevel,
    /// Text with `▁` for a space, single bytes as `<0x0A>`.
    SentencePiece,
}

impl Spelling {
    /// Returns the name for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::ByteLevel => "byte-level BPE",
            Self::SentencePiece => "SentencePiece",
        }
    }
}

/// Bytes and kinds of all tokens.
pub(super) struct Table {
    bytes: Vec<u8>,
    /// End of each token: token `i` has `bytes[ends[i - 1]..ends[i]]`.
    ends: Vec<u32>,
    kinds: Vec<Kind>,
    /// Names of control tokens, which have no bytes.
    names: Vec<(TokenId, String)>,
}

impl Table {
    /// Builds the table from each token's spelling and kind, ordered by id.
    pub fn new<'a>(spelling: Spelling, tokens: impl Iterator<Item = (&'a str, Kind)>) -> Self {
        let mut table = Self { bytes: Vec::new(), ends: Vec::new(), kinds: Vec::new(), names: Vec::new() };
        for (text, kind) in tokens {
            let id = table.kinds.len() as TokenId;
            match (kind, spelling) {
                (Kind::Control | Kind::Unused, _) => table.names.push((id, text.to_owned())),
                (Kind::Added, Spelling::ByteLevel) => table.bytes.extend_from_slice(text.as_bytes()),
                (Kind::Added, Spelling::SentencePiece) => push_text(&mut table.bytes, text),
                (_, Spelling::ByteLevel) => push_byte_level(&mut table.bytes, text),
                (_, Spelling::SentencePiece) => push_sentence_piece(&mut table.bytes, text),
            }
            table.ends.push(table.bytes.len() as u32);
            table.kinds.push(kind);
        }
        table
    }

    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    pub fn bytes(&self, token: TokenId) -> &[u8] {
        let token = token as usize;
        let Some(&end) = self.ends.get(token) else { return &[] };
        let start = if token == 0 { 0 } else { self.ends[token - 1] };
        &self.bytes[start as usize..end as usize]
    }

    pub fn is_control(&self, token: TokenId) -> bool {
        self.kinds.get(token as usize) == Some(&Kind::Control)
    }

    /// Returns whether neither merges nor scores produce the token.
    pub fn is_special(&self, token: TokenId) -> bool {
        let kind = self.kinds.get(token as usize);
        matches!(kind, Some(Kind::Control | Kind::Added | Kind::Unused))
    }

    pub fn piece(&self, token: TokenId) -> String {
        if let Ok(at) = self.names.binary_search_by_key(&token, |(id, _)| *id) {
            return self.names[at].1.clone();
        }
        let mut piece = String::new();
        for chunk in self.bytes(token).utf8_chunks() {
            piece.push_str(chunk.valid());
            for byte in chunk.invalid() {
                let _ = write!(piece, "<0x{byte:02X}>");
            }
        }
        piece
    }
}

/// Returns the byte for a character of GPT-2's alphabet. Printable Latin-1 characters map to
/// themselves; the other 68 bytes follow, in order, from U+0100.
fn byte_of(character: char) -> Option<u8> {
    let printable = |c: u32| matches!(c, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    match u32::from(character) {
        code if printable(code) => Some(code as u8),
        code => {
            let nth = code.checked_sub(0x100)? as usize;
            (0..=0xFF).filter(|&c| !printable(c)).nth(nth).map(|c| c as u8)
        }
    }
}

/// Appends the bytes of a byte-level token; one with a character outside the alphabet is plain
/// text.
fn push_byte_level(bytes: &mut Vec<u8>, text: &str) {
    match text.chars().map(byte_of).collect::<Option<Vec<u8>>>() {
        Some(decoded) => bytes.extend(decoded),
        None => bytes.extend_from_slice(text.as_bytes()),
    }
}

fn push_sentence_piece(bytes: &mut Vec<u8>, text: &str) {
    match byte_token(text) {
        Some(byte) => bytes.push(byte),
        None => push_text(bytes, text),
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(text.replace(SPACE, " ").as_bytes());
}

/// SentencePiece's spelling of a space.
pub(super) const SPACE: char = '\u{2581}';

/// Returns the byte of a token spelled like `<0x0A>`.
pub(super) fn byte_token(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}
