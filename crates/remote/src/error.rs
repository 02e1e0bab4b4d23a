//! What goes wrong with a server elsewhere: what happened and what to do, each in a sentence or two.

use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// See the module. `said` is what the server says of it, if anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("The server's address cannot be used: {reason}. Write it like http://192.168.1.5:8000/v1.")]
    Address { found: String, reason: &'static str },

    #[error("The key has signs that no key has, such as spaces or line breaks: copy it again.")]
    KeyForm,

    #[error("{host} was not found: check the address, and that this computer is in the server's network.")]
    NoHost { host: String },

    #[error("Nothing listens at {host}: check the port, and that the server runs.")]
    NothingListens { host: String },

    #[error("{host} could not be reached: {reason}. Check the address and the network.")]
    Unreachable { host: String, reason: String },

    #[error(
        "There is no secure connection to {host}: {reason}. Where the server has no certificate, write http:// \
         instead of https://."
    )]
    Tls { host: String, reason: String },

    #[error("The server wants a key{}: enter it in Settings > Remote.{said}", if *.sent { ", and not this one" } else { "" })]
    Key { sent: bool, said: Said },

    #[error(
        "{address} is no server of this kind: nothing is known there of OpenAI's protocol. Check the address and its \
         path.{said}"
    )]
    OtherProtocol { address: String, said: Said },

    #[error("{host} answered with a web page instead of a model's words: check the address and its path.")]
    WebPage { host: String },

    #[error(
        "{host} sends on to {to}, which is not followed, since the key would go with it. Enter that address if you trust it."
    )]
    Redirect { host: String, to: String },

    #[error(
        "The server has no model '{model}' any more: test it again in Settings > Remote, and choose another.{said}"
    )]
    NoModel { model: String, said: Said },

    #[error("The conversation is longer than the server's model can read.{said}")]
    PromptTooLong { said: Said },

    #[error("The server has too much to do: try again {when}.{said}", when = retry(*.after))]
    Busy {
        /// In seconds.
        after: Option<u64>,
        said: Said,
    },

    #[error("The server is not ready yet: it may still be loading its model. Try again in a moment.{said}")]
    NotReady { said: Said },

    #[error("The server failed with status {status}: its log has the reason. Try again.{said}")]
    Failed { status: u16, said: Said },

    #[error("The server refused the request with status {status}.{said}")]
    Refused { status: u16, said: Said },

    #[error("The server refuses the field '{name}' of the request, which is not OpenAI's own.{said}")]
    Extra { name: &'static str, said: Said },

    #[error("This server cannot continue a reply that was cut. Regenerate it, or ask it to go on.")]
    CannotContinue,

    #[error("The server failed in the middle of the reply.{0}")]
    FailedInReply(Said),

    #[error("The server's content filter ended the reply.")]
    Filtered,

    #[error("The server's answer cannot be understood: {0}. It may speak another protocol.")]
    Garbled(&'static str),

    #[error("The server sent {0}, so the connection was closed.")]
    TooLarge(&'static str),

    #[error("The reply was cut: the connection to the server ended before it did.")]
    Cut,

    #[error("The connection ended before the answer did. Try again.")]
    AnswerCut,

    #[error("The server said nothing for {}, so the connection was closed.", span(*.seconds))]
    Silent { seconds: u64 },

    #[error("The connection to a server could not be prepared: {0}.")]
    Internal(String),
}

/// What a server says of an error: the beginning of it, as a sentence of its own, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said(Option<String>);

impl Said {
    /// So much of it is shown.
    const LETTERS: usize = 300;

    pub(crate) fn of(text: Option<&str>) -> Self {
        let between = |sign: char| sign.is_whitespace() || sign.is_control();
        let words = text.unwrap_or_default().split(between).filter(|word| !word.is_empty());
        let text = words.collect::<Vec<_>>().join(" ");
        Self((!text.is_empty()).then(|| match text.char_indices().nth(Self::LETTERS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }))
    }

    pub(crate) fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|text| write!(f, " It says: {text}"))
    }
}

fn retry(after: Option<u64>) -> String {
    after.map_or_else(|| "in a moment".to_owned(), |seconds| format!("in {}", span(seconds)))
}

/// "1 second", "90 seconds", "30 minutes".
fn span(seconds: u64) -> String {
    match seconds {
        1 => "1 second".to_owned(),
        120.. if seconds.is_multiple_of(60) => format!("{} minutes", seconds / 60),
        _ => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let said = [1, 2, 60, 90, 120, 1800].map(|seconds| Error::Silent { seconds }.to_string());
        for (said, time) in said.iter().zip([
            "1 second,",
            "2 seconds,",
            "60 seconds,",
            "90 seconds,",
            "2 minutes,",
            "30 minutes,",
        ]) {
            assert!(said.contains(&format!("said nothing for {time}")), "{said}");
        }
        let busy = |after| Error::Busy { after, said: Said::default() }.to_string();
        assert_eq!(busy(Some(1)), "The server has too much to do: try again in 1 second.");
        assert_eq!(busy(None), "The server has too much to do: try again in a moment.");
    }
}
