//! Tools of this program itself. Each is off until a person switches it on.
//!
//! - `calculate`: exact arithmetic; `now`: date and time
//! - `page`: reads a web page, from `address`es of the public network only; `web_search`: asks the
//!   person's search engine; `request`: limits of both
//! - `attachment`, `conversations`: the person's own texts, which the program provides (`context`)

mod address;
mod attachment;
mod context;
mod conversations;
mod page;
mod request;
mod web_search;

use std::time::{Duration, Instant};

use chrono::Local;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use ts_rs::TS;

use self::context::text_argument;
pub use self::context::{AttachedFile, BuiltinContext, FoundMessage};
pub use self::web_search::{SearchEngine, SearchService};
use crate::error::{Error, Result};
use crate::outcome::Outcome;

/// Longest expression in letters, and the time for its value.
const LONGEST_EXPRESSION: usize = 1_000;
const CALCULATION: Duration = Duration::from_secs(1);

/// A tool of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Builtin {
    Calculate,
    Now,
    ReadPage,
    WebSearch,
    ReadAttachment,
    SearchConversations,
}

impl Builtin {
    pub const ALL: [Self; 6] = [
        Self::Calculate,
        Self::Now,
        Self::ReadPage,
        Self::WebSearch,
        Self::ReadAttachment,
        Self::SearchConversations,
    ];

    /// Returns the name for models.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calculate => "calculate",
            Self::Now => "now",
            Self::ReadPage => "read_page",
            Self::WebSearch => "web_search",
            Self::ReadAttachment => "read_attachment",
            Self::SearchConversations => "search_conversations",
        }
    }

    /// Returns description and schema of the arguments.
    pub(crate) fn described(self) -> (&'static str, Value) {
        let texts = |name: &str, about: &str| {
            json!({
                "type": "object",
                "properties": { name: { "type": "string", "description": about } },
                "required": [name],
                "additionalProperties": false,
            })
        };
        match self {
            Self::Calculate => (
                "Calculates the exact value of an expression, also with units.",
                texts("expression", "For example: 12.5% of 480, sqrt(2)^3, 5 km / (20 min) to km/h"),
            ),
            Self::Now => (
                "Tells the current date, time, weekday and time zone.",
                json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            ),
            Self::ReadPage => (
                "Reads a page of the public web as text.",
                texts("url", "Address of the page, beginning with https:// or http://"),
            ),
            Self::WebSearch => (
                "Searches the web; returns titles, addresses and excerpts of pages.",
                texts("query", "Words to search for"),
            ),
            Self::ReadAttachment => (attachment::DESCRIPTION, attachment::parameters()),
            Self::SearchConversations => (
                "Finds messages in the person's other conversations with this program.",
                texts("words", "One to three words that the message must contain"),
            ),
        }
    }

    pub(crate) fn call(
        self,
        arguments: &Map<String, Value>,
        context: &dyn BuiltinContext,
        runtime: &Handle,
        stop: &dyn Fn() -> bool,
    ) -> Result<Outcome> {
        let argument = |name: &str| text_argument(arguments, name);
        let text = match self {
            Self::Calculate => calculate(argument("expression")?)?,
            Self::Now => Local::now().format("%A, %Y-%m-%d %H:%M:%S UTC%:z").to_string(),
            Self::ReadPage => page::read(argument("url")?, runtime, stop)?,
            Self::WebSearch => {
                web_search::search(context.search_engine(), argument("query")?, runtime, stop)?
            }
            Self::ReadAttachment => attachment::read(arguments, context)?,
            Self::SearchConversations => conversations::search(arguments, context)?,
        };
        Ok(Outcome::new(&text))
    }
}

/// Ends a calculation that takes too long.
struct Deadline(Instant);

impl fend_core::Interrupt for Deadline {
    fn should_interrupt(&self) -> bool {
        Instant::now() > self.0
    }
}

fn calculate(expression: &str) -> Result<String> {
    if expression.chars().count() > LONGEST_EXPRESSION {
        return Err(Error::Builtin(format!("Expected at most {LONGEST_EXPRESSION} letters.")));
    }
    let mut context = fend_core::Context::new();
    context.disable_rng();
    let deadline = Deadline(Instant::now() + CALCULATION);
    match fend_core::evaluate_with_interrupt(expression, &mut context, &deadline) {
        Ok(value) => Ok(value.get_main_result().to_owned()),
        Err(_) if Instant::now() > deadline.0 => Err(Error::TimedOut(CALCULATION)),
        Err(reason) => Err(Error::Builtin(format!("The expression has no value: {reason}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_exact_and_bounded() {
        let value = calculate;
        assert_eq!(value("0.1 + 0.2").as_deref(), Ok("0.3"));
        assert_eq!(value("2^64").as_deref(), Ok("18446744073709551616"));
        assert_eq!(value("5 km / (20 min) to km/h").as_deref(), Ok("15 km / h"));
        assert!(matches!(value("1 +"), Err(Error::Builtin(_))), "{:?}", value("1 +"));
        assert!(matches!(value(&"1+".repeat(600)), Err(Error::Builtin(_))));
        assert_eq!(value("9^9^9^9"), Err(Error::TimedOut(CALCULATION)));
    }
}
