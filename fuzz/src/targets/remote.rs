//! A reply streamed by a remote server.

use foretoken_remote::ReplyEvent;
use foretoken_remote::reply::Listener;

use super::{Memory, Target, corpus, repository};
use crate::run::files;

const WORDS: &[&str] = &[
    "data: ",
    "data: [DONE]\n\n",
    "error: ",
    ": ping\n",
    "\n\n",
    "\r\n",
    "choices",
    "delta",
    "content",
    "reasoning_content",
    "finish_reason",
    "\"stop\"",
    "\"length\"",
    "usage",
    "prompt_tokens",
    "completion_tokens",
    "18446744073709551615",
    "-1",
    "1e999",
    "draft_n",
    "draft_n_accepted",
    "accepted",
    "timings",
    "error",
    "\\ud83e",
];

pub fn target() -> Target {
    let mut seeds = files(&repository("crates/remote/tests/recorded"));
    seeds.extend(corpus("remote"));
    Target {
        name: "remote",
        longest: 2 * seeds.iter().map(Vec::len).max().unwrap(),
        seeds,
        words: WORDS,
        head: usize::MAX,
        memory: Memory { each: 64, beside: 1 << 20 },
        run: Box::new(|input| {
            let whole = listen(&[input]);
            // The result does not depend on how the network splits it.
            let cut = input.len() / 2;
            assert_eq!(listen(&[&input[..cut], &input[cut..]]), whole);
            whole.1
        }),
    }
}

/// Parses a reply that arrives in `parts`; returns its text, and the message if it was refused.
fn listen(parts: &[&[u8]]) -> (String, Option<String>) {
    let mut text = String::new();
    let mut on = |event: ReplyEvent<'_>| match event {
        ReplyEvent::Started | ReplyEvent::WithoutExtras | ReplyEvent::CallEnded => (),
        ReplyEvent::Thinking(piece)
        | ReplyEvent::Text(piece)
        | ReplyEvent::Call(piece)
        | ReplyEvent::Arguments(piece) => text.push_str(piece),
    };
    let mut listener = Listener::new(&mut on);
    let taken = parts.iter().try_for_each(|part| listener.take(part));
    let ended = taken.and_then(|()| listener.end()).map(|finish| {
        let reply = listener.reply(finish);
        if let Some(drafts) = reply.drafts {
            assert!(drafts.accepted <= drafts.drafted, "{drafts:?}");
        }
    });
    drop(listener);
    (text, ended.err().map(|error| own_words(&error.to_string())))
}

/// Returns a message without the quoted server message, which need not end like a sentence.
fn own_words(refusal: &str) -> String {
    let quoted = refusal.split_once(" Server message: ");
    assert!(
        quoted
            .is_none_or(|(_, message)| !message.contains(char::is_control) && message.chars().count() < 400),
        "{refusal:?}"
    );
    quoted.map_or(refusal, |(own, _)| own).to_owned()
}
