//! Errors of remote servers: what happened and what to do, each in a sentence or two.

use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a remote server. `detail` quotes the server's own message, if it sent one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("The server address is invalid: {reason}. Enter it like http://192.168.1.5:8000/v1.")]
    Address { found: String, reason: &'static str },

    #[error("The key contains spaces, line breaks or other invalid characters. Copy it again.")]
    KeyForm,

    #[error("{host} was not found. Check the address, and that this computer is on the server's network.")]
    NoHost { host: String },

    #[error("{host} refused the connection. Check the port, and that the server is running.")]
    NothingListens { host: String },

    #[error("{host} could not be reached: {reason}. Check the address and the network.")]
    Unreachable { host: String, reason: String },

    #[error(
        "A secure connection to {host} failed: {reason}. If the server has no certificate, enter http:// \
         instead of https://."
    )]
    Tls { host: String, reason: String },

    #[error("{}{detail}", if *.sent { "The server rejected this key. Check it in Settings > Remote." } else { "The server requires a key. Enter it in Settings > Remote." })]
    Key { sent: bool, detail: ServerMessage },

    #[error(
        "{address} doesn't seem to be a server with OpenAI's protocol. Check the address and its \
         path.{detail}"
    )]
    OtherProtocol { address: String, detail: ServerMessage },

    #[error("{host} responded with a web page instead of a reply. Check the address and its path.")]
    WebPage { host: String },

    #[error(
        "{host} redirects to {to}. Redirects aren't followed, because the key would be sent there too. Enter that address if you trust it."
    )]
    Redirect { host: String, to: String },

    #[error(
        "The server no longer has the model '{model}'. Test it again in Settings > Remote and choose another model.{detail}"
    )]
    NoModel { model: String, detail: ServerMessage },

    #[error("The conversation is longer than the context of the server's model.{detail}")]
    PromptTooLong { detail: ServerMessage },

    #[error("The server is overloaded. Try again {when}.{detail}", when = retry(*.after))]
    Busy {
        /// Seconds until the next attempt, if the server sent them.
        after: Option<u64>,
        detail: ServerMessage,
    },

    #[error("The server isn't ready yet. It may still be loading its model. Try again in a moment.{detail}")]
    NotReady { detail: ServerMessage },

    #[error("The server failed with status {status}. Its log has the reason. Try again.{detail}")]
    Failed { status: u16, detail: ServerMessage },

    #[error("The server refused the request with status {status}.{detail}")]
    Refused { status: u16, detail: ServerMessage },

    #[error("The server rejected the field '{name}', which is not part of OpenAI's protocol.{detail}")]
    Extra { name: &'static str, detail: ServerMessage },

    #[error("This server can't continue an interrupted reply. Regenerate it, or ask the model to go on.")]
    CannotContinue,

    #[error("The server failed during the reply.{0}")]
    FailedInReply(ServerMessage),

    #[error("The server's content filter ended the reply.")]
    Filtered,

    #[error("The server's response can't be read: {0}. It may use another protocol.")]
    Garbled(&'static str),

    #[error(
        "The model called '{name}' with arguments that are not a JSON object. Regenerate the reply, or choose another model."
    )]
    Arguments { name: String },

    #[error("The server sent {0}, so the connection was closed.")]
    TooLarge(&'static str),

    #[error("The reply is incomplete: the connection to the server was lost.")]
    Cut,

    #[error("The connection was lost before the response was complete. Try again.")]
    AnswerCut,

    #[error("The server sent nothing for {}, so the connection was closed.", span(*.seconds))]
    Silent { seconds: u64 },

    #[error("The connection to a server could not be prepared: {0}.")]
    Internal(String),
}

/// Beginning of a server's error message, shown as a sentence of its own; may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerMessage(Option<String>);

impl ServerMessage {
    /// Most characters that are shown.
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

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|text| write!(f, " Server message: {text}"))
    }
}

fn retry(after: Option<u64>) -> String {
    after.map_or_else(|| "in a moment".to_owned(), |seconds| format!("in {}", span(seconds)))
}

/// Formats a duration: "1 second", "90 seconds", "30 minutes".
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
    fn durations_are_in_seconds_or_minutes() {
        let detail = [1, 2, 60, 90, 120, 1800].map(|seconds| Error::Silent { seconds }.to_string());
        for (detail, time) in detail.iter().zip([
            "1 second,",
            "2 seconds,",
            "60 seconds,",
            "90 seconds,",
            "2 minutes,",
            "30 minutes,",
        ]) {
            assert!(detail.contains(&format!("sent nothing for {time}")), "{detail}");
        }
        let busy = |after| Error::Busy { after, detail: ServerMessage::default() }.to_string();
        assert_eq!(busy(Some(1)), "The server is overloaded. Try again in 1 second.");
        assert_eq!(busy(None), "The server is overloaded. Try again in a moment.");
    }
}
