//! Titles written by a model: the request, and how a title is extracted from the answer.

use foretoken_engine::trace::Finish;
use foretoken_model::sampling::Sampling;
use foretoken_model::{ChatMessage, Role, Thinking};
use foretoken_store::{LONGEST_TITLE, title_from};

use super::history::push;
use crate::cancel::Cancel;
use crate::engine::replier::{Chat, Ending, Event, Replier};
use crate::error::Result;
use crate::ipc::Settings;

/// Appended to the conversation, so the cached prefix is reused and only this part is dropped
/// afterwards.
const REQUEST: &str =
    "Write a title for this conversation, of at most six words, in its language. Reply with the title only.";

/// Longest answer in tokens; a longer one is not a title.
const MAX_TOKENS: u32 = 16;

/// Most words of a title; more are a sentence.
const MAX_WORDS: usize = 10;

/// Fewest parameters of a local model that writes titles: smaller ones are worse than the first
/// words. docs/conversations.md has figures.
pub const MIN_PARAMETERS: u64 = 1_000_000_000;

/// Beginnings of answers that talk about the request, in lower case.
const CHATTER: [&str; 14] = [
    "i am ",
    "i'm ",
    "i’m ",
    "i can",
    "i do",
    "i have",
    "i will",
    "here is",
    "here's",
    "here’s",
    "sure",
    "sorry",
    "as an ai",
    "this conversation",
];

const NAMES: [&str; 2] = ["title", "titel"];

/// Asks for the title of a conversation that ends with a reply. Returns the answer, or the complete
/// lines of one that was cut off; `None` if `cancel` ended it. A model that reasons anyway is
/// stopped immediately: its tokens would not suffice for a title.
///
/// # Errors
/// Returns errors of [`Replier::reply`].
pub fn ask(
    replier: &mut dyn Replier,
    conversation: &[ChatMessage],
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Option<String>> {
    let mut messages = conversation.to_vec();
    push(&mut messages, Role::User, REQUEST, &[]);
    let settings = Settings {
        sampling: Sampling::greedy(),
        max_tokens: MAX_TOKENS,
        // All tokens are for the title.
        thinking: Some(false),
        ..settings.clone()
    };
    let mut text = String::new();
    let mut on_event = |event: Event<'_>| {
        if let Event::Text { delta } = event {
            text.push_str(delta);
            if is_thought(&text) {
                cancel.cancel();
            }
        }
    };
    let chat = Chat { messages, tools: None };
    let Ending { finish, .. } = replier.reply(&chat, &settings, cancel, &mut on_event)?;
    Ok(match finish {
        _ if is_thought(&text) => Some(String::new()),
        _ if cancel.is_cancelled() => None,
        Finish::Stop => Some(text),
        _ => Some(text.rsplit_once('\n').map_or_else(String::new, |(lines, _)| lines.to_owned())),
    })
}

/// Returns whether an answer begins with non-empty reasoning.
fn is_thought(answer: &str) -> bool {
    let answer = answer.trim_start();
    Thinking::KNOWN.iter().any(|tags| {
        let thought = answer.strip_prefix(tags.open).map_or("", str::trim_start);
        let common = thought.len().min(tags.close.len());
        thought.as_bytes()[..common] != tags.close.as_bytes()[..common]
    })
}

/// Extracts the title from an answer: one line without reasoning, markup and a "Title:" prefix;
/// `None` if there is none.
pub(crate) fn title_in(answer: &str) -> Option<String> {
    let visible = match answer.rsplit_once("</think>") {
        Some((_, visible)) => visible,
        None if answer.contains("<think") => return None,
        None => answer,
    };
    let line = visible.lines().map(bare).find(|line| !line.is_empty())?;
    let (name, rest) = line.split_once(':').unwrap_or(("", line));
    let title = if NAMES.contains(&bare(name).to_lowercase().as_str()) { bare(rest) } else { line };
    let title: String = title.chars().filter(|c| !c.is_control() && !"*`".contains(*c)).collect();
    let title = title.strip_suffix('.').unwrap_or(&title);
    is_title(title).then(|| title_from(title))
}

/// Strips markup around a title.
fn bare(line: &str) -> &str {
    line.trim_matches(|c: char| c.is_whitespace() || "#*_`\"'“”„‘’«»>-–—".contains(c))
}

fn is_title(line: &str) -> bool {
    let small = line.to_lowercase();
    let words: Vec<&str> = small.split_whitespace().collect();
    let repeats = |word: &&str| words.iter().filter(|other| other == &word).count() > 2;
    line.chars().filter(|c| c.is_alphanumeric()).count() > 1
        && line.chars().count() <= 2 * LONGEST_TITLE
        && words.len() <= MAX_WORDS
        && !line.ends_with(':')
        && !NAMES.contains(&small.as_str())
        && !CHATTER.iter().any(|talk| small.starts_with(talk))
        && !words.iter().any(repeats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_extracted_without_reasoning_markup_and_prefix() {
        for answer in [
            "Basil on a Sill",
            "\"Basil on a Sill\"",
            "“Basil on a Sill.”",
            " \n# Basil on a Sill\n\nThis title is short.",
            "**Title:** Basil on a Sill",
            "Title: \"**Basil on a Sill**\"",
            "Titel: „Basil on a Sill“",
            "- Basil on a Sill.",
            "<think>\nWhat is it about?\n</think>\n\nBasil on a Sill",
            "Basil\u{1b} on a Sill",
        ] {
            assert_eq!(title_in(answer).as_deref(), Some("Basil on a Sill"), "{answer:?}");
        }
        assert_eq!(title_in("Why is the sky blue?").as_deref(), Some("Why is the sky blue?"));
        assert_eq!(title_in("SQL: a missing FROM").as_deref(), Some("SQL: a missing FROM"));
        assert_eq!(title_in("空が青い理由。").as_deref(), Some("空が青い理由。"));
    }

    #[test]
    fn reasoning_is_recognised_at_its_first_word_and_empty_reasoning_is_ignored() {
        for thought in ["<think>H", " <think>\n</ Hm", "[THINK]Hm", "<think>ä"] {
            assert!(is_thought(thought), "{thought:?}");
        }
        for other in
            ["", "<", "<think>", "<think>\n\n", "<think>\n</th", "<think></think>Basil", "Basil <think>a"]
        {
            assert!(!is_thought(other), "{other:?}");
        }
    }

    #[test]
    fn answers_that_are_not_titles_are_refused() {
        let long = "word ".repeat(30);
        for answer in [
            "",
            " \n\t",
            "\"\"",
            "...",
            "?",
            "Title:",
            "Title",
            "<think>\nThe user wants",
            "<think></think>",
            "I'm sorry, I cannot do that",
            "Here's a possible title:\n\nBasil",
            "Sure! Basil on a Sill",
            "Titles for this conversation:",
            "fox and fox and fox",
            "This conversation is about basil",
            long.as_str(),
        ] {
            assert_eq!(title_in(answer), None, "{answer:?}");
        }
    }

    #[test]
    fn a_long_title_is_shortened_like_first_words() {
        let title = title_in("Considerations concerning unreasonably extraordinary vegetables").unwrap();
        assert!(title.ends_with('…') && title.chars().count() <= LONGEST_TITLE, "{title}");
    }
}
