//! Title of a new conversation until a person or a model gives it another one.

/// Longest title in characters, including the ellipsis.
pub const LONGEST_TITLE: usize = 48;

/// Returns a title from the first message: its first words on one line, cut between words if
/// possible.
pub fn title_from(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return "New conversation".into();
    }
    // Byte offset of the last allowed character: a cut title ends there, so the ellipsis still
    // fits.
    let mut starts = line.char_indices().skip(LONGEST_TITLE - 1).map(|(at, _)| at);
    let (Some(last), Some(after)) = (starts.next(), starts.next()) else {
        return line;
    };
    let end = line[..after].rfind(' ').unwrap_or(last);
    format!("{}…", &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_message_is_its_own_title_on_one_line() {
        assert_eq!(title_from("  Tell me\n\ta story "), "Tell me a story");
    }

    #[test]
    fn a_long_message_is_cut_between_words() {
        let title = title_from("Tell me a long story about a fox who lived in the woods and slept");
        assert_eq!(title, "Tell me a long story about a fox who lived in…");
    }

    #[test]
    fn a_message_that_just_fits_is_not_cut() {
        let fits = format!("{} {}", "a".repeat(23), "b".repeat(24));
        assert_eq!(title_from(&fits), fits);
        assert_eq!(title_from(&format!("{fits} c")), format!("{}…", "a".repeat(23)));
    }

    #[test]
    fn a_word_that_ends_just_before_the_ellipsis_is_kept() {
        let kept = format!("x {}", "a".repeat(45));
        assert_eq!(title_from(&format!("{kept} b c")), format!("{kept}…"));
    }

    #[test]
    fn no_title_is_longer_than_the_limit_whatever_the_script() {
        for text in
            ["ü".repeat(200), "語".repeat(49), "wörter und ".repeat(30), format!("{} b c", "a".repeat(48))]
        {
            let title = title_from(&text);
            assert!(title.chars().count() <= LONGEST_TITLE && title.ends_with('…'), "{title}");
        }
    }

    #[test]
    fn an_empty_message_still_gets_a_title() {
        assert_eq!(title_from(" \n"), "New conversation");
    }
}
