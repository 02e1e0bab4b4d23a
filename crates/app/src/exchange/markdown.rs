//! A conversation as Markdown for reading: the shown branch.

use foretoken_store::{Message, Role};

/// Formats a conversation; `you` is the user's name in it.
pub fn text(title: &str, messages: &[Message], you: &str) -> String {
    let mut text = format!("# {}\n", one_line(title));
    let mut before = None;
    for message in messages {
        let goes_on = before == Some(Role::Assistant) && message.role == Role::Assistant;
        if !goes_on {
            let target = message.target.as_deref().unwrap_or("Foretoken");
            let who = if message.role == Role::User { you } else { target };
            text += &format!("\n## {}\n\n", one_line(who));
        }
        for file in &message.attachments {
            text += &format!("📎 {}\n\n", one_line(&file.name));
        }
        text += &message.text;
        text.push('\n');
        before = Some(message.role);
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
