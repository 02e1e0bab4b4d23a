//! A conversation to be read: the branch that is shown, as Markdown.

use std::io::{self, Write};

use foretoken_store::{Message, Role};

/// Writes a conversation; `you` is what the person is called in it.
pub fn write(title: &str, messages: &[Message], you: &str, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "# {}", one_line(title))?;
    let mut before = None;
    for message in messages {
        let goes_on = before == Some(Role::Assistant) && message.role == Role::Assistant;
        if !goes_on {
            let target = message.target.as_deref().unwrap_or("Foretoken");
            let who = if message.role == Role::User { you } else { target };
            write!(to, "\n## {}\n\n", one_line(who))?;
        }
        for file in &message.attachments {
            writeln!(to, "📎 {}\n", one_line(&file.name))?;
        }
        write!(to, "{}", message.text)?;
        before = Some(message.role);
        writeln!(to)?;
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
