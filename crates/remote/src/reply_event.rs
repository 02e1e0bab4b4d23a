//! Events of a reply.

/// Events of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyEvent<'a> {
    /// The server is working. Comes before any text.
    Started,
    /// The server refused the extras and accepted the request without them.
    WithoutExtras,
    /// Reasoning before the reply, if the server separates it.
    Thinking(&'a str),
    Text(&'a str),
    /// A call of the tool with this name begins.
    Call(&'a str),
    /// JSON added to the arguments of the call that began last.
    Arguments(&'a str),
    /// The call that began last is complete, and its arguments are a JSON object.
    CallEnded,
}
