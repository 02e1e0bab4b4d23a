//! Text of web pages, and of the chapters of books.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use html2text::config;

use crate::text::MAX_TEXT;
use crate::unread::Unread;

/// Bytes that are searched for the begin of a page, and for its encoding.
const HEAD: usize = 1_024;

/// Columns of the text: lines of paragraphs are hardly broken, and tables stay readable.
const WIDTH: usize = 200;

/// Returns whether a file begins as a web page.
pub fn is_page(bytes: &[u8]) -> bool {
    let (head, _, _) = encoding(bytes).decode(&bytes[..bytes.len().min(HEAD)]);
    let mut rest = head.trim_start_matches('\u{feff}').trim_start();
    while let Some(after) = comment(rest) {
        rest = after.trim_start();
    }
    let begins = |with: &str| rest.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    begins("<!doctype html") || begins("<html")
}

/// Returns the rest after a comment or an XML declaration.
fn comment(text: &str) -> Option<&str> {
    let (begin, end) = if text.starts_with("<!--") { ("<!--", "-->") } else { ("<?", "?>") };
    Some(text.strip_prefix(begin)?.split_once(end)?.1)
}

/// Extracts the text of a page.
///
/// # Errors
/// `TooLong`; `Damaged` for a page that cannot be laid out.
pub fn text_of(bytes: &[u8]) -> Result<String, Unread> {
    let (page, _, _) = encoding(bytes).decode(bytes);
    let layout = config::plain_no_decorate().raw_mode(true).no_table_borders();
    let text = layout.string_from_read(page.as_bytes(), WIDTH).map_err(|_| Unread::Damaged)?;
    if text.len() > MAX_TEXT { Err(Unread::TooLong) } else { Ok(text) }
}

/// Returns the encoding of a page: by its byte order mark, its own word, or its bytes.
fn encoding(bytes: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).to_ascii_lowercase();
    let named = head.split_once("charset=").or_else(|| head.split_once("encoding=")).map(|(_, rest)| {
        let name = rest.trim_start_matches(['"', '\'', ' ']);
        name.split(['"', '\'', ' ', ';', '>', '/', '?']).next().unwrap_or_default()
    });
    match named.and_then(|name| Encoding::for_label(name.as_bytes())) {
        Some(encoding) => encoding,
        None if std::str::from_utf8(bytes).is_ok() => UTF_8,
        None => WINDOWS_1252,
    }
}
