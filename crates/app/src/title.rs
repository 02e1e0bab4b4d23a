//! Titles that a model writes: what is asked for, and what of the answer is a title.

use foretoken_engine::model::{ChatMessage, Role, Thinking};
use foretoken_engine::sampling::Sampling;
use foretoken_engine::trace::Finish;
use foretoken_store::{LONGEST_TITLE, title_from};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::history::push;
use crate::ipc::Settings;
use crate::replier::{Ending, Event, Replier};

/// Asked at the end of the conversation, so that what has read that reads little more, and forgets no more than this.
const REQUEST: &str =
    "Write a title for this conversation, of at most six words, in its language. Reply with the title only.";

/// An answer that is longer is none. In tokens.
const MAX_TOKENS: u32 = 16;

/// More are a sentence.
const MAX_WORDS: usize = 10;

/// Models on this computer with fewer parameters write worse titles than the first words are: docs/conversations.md has
/// figures.
pub const MIN_PARAMETERS: u64 = 1_000_000_000;

/// How answers begin that speak of the request, in small letters.
const TALK: [&str; 14] = [
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

/// Asks for the title of a conversation that ends with a reply. Returns the answer, of one that was cut the whole lines;
/// `None` where `cancel` ended it. A model that thinks all the same is stopped at once: no title would be left of its
/// tokens.
///
/// # Errors
/// Those of [`Replier::reply`].
pub fn ask(
    replier: &mut dyn Replier,
    conversation: &[ChatMessage],
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Option<String>> {
    let mut messages = conversation.to_vec();
    push(&mut messages, Role::User, REQUEST);
    let settings = Settings {
        sampling: Sampling::greedy(),
        max_tokens: MAX_TOKENS,
        // All of the tokens are for the title.
        thinking: Some(false),
        ..settings.clone()
    };
    let mut text = String::new();
    let mut hear = |event: Event<'_>| {
        if let Event::Text { delta } = event {
            text.push_str(delta);
            if is_thought(&text) {
                cancel.cancel();
            }
        }
    };
    let Ending { finish, .. } = replier.reply(&messages, &settings, cancel, &mut hear)?;
    Ok(match finish {
        _ if is_thought(&text) => Some(String::new()),
        _ if cancel.is_cancelled() => None,
        Finish::Stop => Some(text),
        _ => Some(text.rsplit_once('\n').map_or_else(String::new, |(lines, _)| lines.to_owned())),
    })
}

/// Whether an answer begins with a thought that has words.
fn is_thought(answer: &str) -> bool {
    let answer = answer.trim_start();
    Thinking::KNOWN.iter().any(|tags| {
        let thought = answer.strip_prefix(tags.open).map_or("", str::trim_start);
        let common = thought.len().min(tags.close.len());
        thought.as_bytes()[..common] != tags.close.as_bytes()[..common]
    })
}

/// The title in an answer: without thoughts, marks and a name of its own, on one line; `None` where there is none.
pub(crate) fn title_in(answer: &str) -> Option<String> {
    let said = match answer.rsplit_once("</think>") {
        Some((_, said)) => said,
        None if answer.contains("<think") => return None,
        None => answer,
    };
    let line = said.lines().map(bare).find(|line| !line.is_empty())?;
    let (name, rest) = line.split_once(':').unwrap_or(("", line));
    let title = if NAMES.contains(&bare(name).to_lowercase().as_str()) { bare(rest) } else { line };
    let title: String = title.chars().filter(|c| !c.is_control() && !"*`".contains(*c)).collect();
    let title = title.strip_suffix('.').unwrap_or(&title);
    is_title(title).then(|| title_from(title))
}

/// Without what stands around a title.
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
        && !TALK.iter().any(|talk| small.starts_with(talk))
        && !words.iter().any(repeats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_what_is_left_without_thoughts_marks_and_its_name() {
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
    fn a_thought_with_words_is_known_at_its_first_and_an_empty_one_is_none() {
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
    fn what_is_no_title_is_refused() {
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
    fn a_long_title_is_cut_like_first_words() {
        let title = title_in("Considerations concerning unreasonably extraordinary vegetables").unwrap();
        assert!(title.ends_with('…') && title.chars().count() <= LONGEST_TITLE, "{title}");
    }
}
