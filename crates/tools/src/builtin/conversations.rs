//! Finds messages in the person's other conversations.

use serde_json::{Map, Value};

use super::context::{BuiltinContext, FoundMessage, text_argument};
use crate::error::Result;

/// Most messages, and the longest excerpt in characters.
const MOST: u32 = 10;
const LONGEST_EXCERPT: usize = 600;

pub(super) fn search(arguments: &Map<String, Value>, context: &dyn BuiltinContext) -> Result<String> {
    let found = context.find_messages(text_argument(arguments, "words")?, MOST)?;
    let entry = |FoundMessage { conversation, date, is_reply, excerpt }: &FoundMessage| {
        let writer = if *is_reply { "a model" } else { "the person" };
        let excerpt: String = excerpt.chars().take(LONGEST_EXCERPT).collect();
        format!("In \"{conversation}\", {date}, {writer} wrote: {excerpt}")
    };
    let entries: Vec<String> = found.iter().take(MOST as usize).map(entry).collect();
    Ok(match entries.is_empty() {
        true => "No other conversation contains all of these words. Try fewer words.".to_owned(),
        false => entries.join("\n\n"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::context::tests::Fixed;

    #[test]
    fn messages_are_named_by_conversation_date_and_writer_and_are_few_and_short() {
        let message = |is_reply, excerpt: &str| FoundMessage {
            conversation: "Foxes".to_owned(),
            date: "2026-11-02".to_owned(),
            is_reply,
            excerpt: excerpt.to_owned(),
        };
        let call = |arguments: Value, messages: Vec<FoundMessage>| {
            let Value::Object(arguments) = arguments else { unreachable!() };
            search(&arguments, &Fixed { messages, ..Fixed::default() })
        };
        let words = json!({ "words": "fox" });
        let two = call(words.clone(), vec![message(false, "A fox?"), message(true, "Yes.")]);
        let expected = "In \"Foxes\", 2026-11-02, the person wrote: A fox?\n\n\
                        In \"Foxes\", 2026-11-02, a model wrote: Yes.";
        assert_eq!(two.as_deref(), Ok(expected));
        let many = call(words.clone(), vec![message(true, &"x".repeat(5000)); 50]).unwrap();
        assert!(many.len() < 10 * (LONGEST_EXCERPT + 60), "{}", many.len());
        assert!(call(words, Vec::new()).unwrap().starts_with("No other conversation"));
        assert!(call(json!({ "words": " " }), Vec::new()).is_err());
    }
}
