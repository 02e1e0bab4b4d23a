//! Repairs JSON texts before they are parsed: serde_json refuses a whole text for half a surrogate
//! pair or a byte that is not UTF-8, which programs write where they cut a text inside a character.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

use std::borrow::Cow;

/// Length of an escape `\uXXXX`.
const ESCAPE: usize = 6;

/// Returns `json` with valid characters only, borrowed if it is valid already.
///
/// - Half of a surrogate pair, as an escape or as bytes, becomes U+FFFD.
/// - A pair in CESU-8 (two surrogates of three bytes each) becomes its character.
/// - Other bytes that are not UTF-8 become U+FFFD.
pub fn repaired(json: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(json) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(decoded(json)),
    };
    match without_lone_escapes(&text) {
        Some(repaired) => Cow::Owned(repaired),
        None => text,
    }
}

/// Decodes UTF-8 and CESU-8.
fn decoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    // Bytes of a surrogate that the next chunks complete or skip.
    let mut skip = 0;
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        if !valid.is_empty() {
            skip = 0;
            text.push_str(valid);
        }
        at += valid.len();
        let invalid = chunk.invalid().len();
        if skip >= invalid {
            skip -= invalid;
        } else if invalid > 0 {
            let (character, length) = surrogates(&bytes[at..]);
            text.push(character);
            skip = length.saturating_sub(invalid);
        }
        at += invalid;
    }
    text
}

/// Returns the character at the start of bytes that are not UTF-8, and its length: that of a pair
/// in CESU-8, or U+FFFD.
fn surrogates(bytes: &[u8]) -> (char, usize) {
    let half = |bytes: &[u8]| match *bytes {
        [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, ..] => {
            Some(0xD000 | u32::from(second & 0x3F) << 6 | u32::from(third & 0x3F))
        }
        _ => None,
    };
    match (half(bytes), bytes.get(3..).and_then(half)) {
        (Some(high @ 0xD800..0xDC00), Some(low @ 0xDC00..0xE000)) => {
            let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
        }
        (Some(_), _) => (char::REPLACEMENT_CHARACTER, 3),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}

/// Replaces escapes that are half of a surrogate pair; `None` if there are none.
fn without_lone_escapes(text: &str) -> Option<String> {
    let json = text.as_bytes();
    let mut repaired = None;
    let (mut from, mut at) = (0, 0);
    while let Some(found) = json[at..].iter().position(|&byte| byte == b'\\') {
        at += found;
        let lone = match escaped(&json[at..]) {
            Some(0xD800..0xDC00) => !matches!(escaped(&json[at + ESCAPE..]), Some(0xDC00..0xE000)),
            Some(0xDC00..0xE000) => true,
            _ => false,
        };
        if lone {
            let repaired = repaired.get_or_insert_with(String::new);
            repaired.push_str(&text[from..at]);
            repaired.push_str("\\ufffd");
            from = at + ESCAPE;
        }
        at += match escaped(&json[at..]) {
            Some(0xD800..0xDC00) if !lone => 2 * ESCAPE,
            Some(_) => ESCAPE,
            // The next byte is escaped, so it begins no escape.
            None => 2.min(json.len() - at),
        };
    }
    repaired.map(|repaired| repaired + &text[from..])
}

/// Returns the code unit of an escape `\uXXXX` at the start of `json`.
fn escaped(json: &[u8]) -> Option<u32> {
    let digits = json.get(..ESCAPE)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &[u8]) -> String {
        serde_json::from_str(&repaired(json)).unwrap()
    }

    #[test]
    fn valid_json_is_borrowed_unchanged() {
        for json in [r#"{"a":"\ud83e\udd8a \\ud83e \u00e9"}"#, "\"🦊\"", "", "\\", r"\u", r"\ud83"] {
            assert!(matches!(repaired(json.as_bytes()), Cow::Borrowed(text) if text == json), "{json}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_becomes_one_replacement_character() {
        for (json, expected) in [
            (r#""a\ud83e b""#, "a\u{fffd} b"),
            (r#""a\udd8a""#, "a\u{fffd}"),
            (r#""\ud83e\ud83e\udd8a""#, "\u{fffd}🦊"),
            (r#""\udd8a\uD83E""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83e\n""#, "\u{fffd}\n"),
            (r#""\\\ud83e""#, "\\\u{fffd}"),
            (r#""\ud83e\u0041""#, "\u{fffd}A"),
        ] {
            assert_eq!(read(json.as_bytes()), expected, "{json}");
        }
    }

    #[test]
    fn pairs_in_cesu_8_are_read_and_other_invalid_bytes_replaced() {
        for (json, expected) in [
            (&b"\"a\xed\xa0\xbe\xed\xb6\x8ab\""[..], "a🦊b"),
            (b"\"\xed\xa0\xbe\"", "\u{fffd}"),
            (b"\"\xed\xa0\xbex\xed\xb6\x8a\"", "\u{fffd}x\u{fffd}"),
            (b"\"\xed\xa0\xbe\xed\xa0\xbe\xed\xb6\x8a\"", "\u{fffd}🦊"),
            (b"\"\xff\xfe\"", "\u{fffd}\u{fffd}"),
            (b"\"\xf0\x9f\xa6\"", "\u{fffd}"),
            (b"\"\xed\xa0\xbe\\ud83e\"", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(read(json), expected, "{json:?}");
        }
    }

    #[test]
    fn a_text_of_half_pairs_takes_time_proportional_to_its_length() {
        for piece in [&b"\\ud83e"[..], b"\\\\", b"\xed\xa0\xbe", b"\xff"] {
            let text = repaired(&piece.repeat(1 << 20)).len();
            assert!(text > 1 << 20 && text <= 8 << 20, "{text}");
        }
    }
}
