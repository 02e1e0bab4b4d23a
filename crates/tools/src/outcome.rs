//! Result of a call as text for the model and the page: untrusted, bounded, without control
//! characters.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Longest result in bytes.
pub(crate) const LONGEST: usize = 64 << 10;

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// At most 64 kB; a longer text is cut and says so.
    pub text: String,
    /// `true` if the tool itself reports an error.
    pub is_error: bool,
}

impl Outcome {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: bounded(text, LONGEST), is_error: false }
    }

    pub(crate) fn of(result: &CallToolResult) -> Self {
        let parts: Vec<String> = result.content.iter().map(part).collect();
        let structured = result.structured_content.as_ref();
        let text = match structured.filter(|_| parts.is_empty()) {
            Some(value) => value.to_string(),
            None => parts.join("\n"),
        };
        Self { is_error: result.is_error == Some(true), ..Self::new(&text) }
    }

    /// Returns the text with at most `bytes` bytes of the tool's words.
    pub fn cut(&self, bytes: usize) -> String {
        bounded(&self.text, bytes)
    }
}

/// Returns the text of a part; a part that is no text is named.
pub(crate) fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => left_out("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => left_out("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, blob, .. } => left_out("file", uri, blob),
            _ => "[a part that cannot be shown]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("{}: {}", link.name, link.uri),
        _ => "[a part that cannot be shown]".to_owned(),
    }
}

/// Words for a part that is no text. Base64 has four letters for three bytes.
pub(crate) fn left_out(kind: &str, name: &str, base64: &str) -> String {
    format!("[{kind}, {name}, {} bytes]", base64.len() / 4 * 3)
}

/// Returns a text without control characters, but with its lines and tabs.
pub(crate) fn visible(text: &str) -> String {
    text.chars().filter(|letter| matches!(letter, '\n' | '\t') || !letter.is_control()).collect()
}

/// Returns the beginning of `text` without control characters, and how much was left out.
fn bounded(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return visible(text);
    }
    let end = text.floor_char_boundary(bytes);
    let beginning = visible(&text[..end]);
    format!("{beginning}\n[{} more bytes were left out]", text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_cut_at_a_whole_letter_and_says_so() {
        let outcome = Outcome::new("a\u{7}b\r\nä");
        assert_eq!(outcome.text, "ab\nä");
        assert_eq!(outcome.cut(4), "ab\n\n[2 more bytes were left out]");
        let long = Outcome::new(&"x".repeat(LONGEST + 10));
        assert!(long.text.ends_with("\n[10 more bytes were left out]"), "{}", long.text.len());
    }

    #[test]
    fn parts_that_are_no_text_are_named_and_structured_content_replaces_missing_text() {
        let image = ContentBlock::image("AAAA", "image/png");
        let result = CallToolResult::success(vec![ContentBlock::text("one"), image]);
        assert_eq!(Outcome::of(&result).text, "one\n[image, image/png, 3 bytes]");
        let mut structured = CallToolResult::success(Vec::new());
        structured.structured_content = Some(serde_json::json!({ "a": 1 }));
        assert_eq!(Outcome::of(&structured).text, r#"{"a":1}"#);
        let failed = CallToolResult::error(vec![ContentBlock::text("no")]);
        assert!(Outcome::of(&failed).is_error);
    }
}
