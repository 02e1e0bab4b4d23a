//! A file in a prompt.

/// Formats a file: its name, and its text in a fence longer than any fence in it.
pub fn block(name: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let language = name.rsplit_once('.').map_or("", |(_, end)| end);
    let is_word = !language.is_empty() && language.chars().all(|letter| letter.is_ascii_alphanumeric());
    let language = if is_word { language } else { "" };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{name}:\n{fence}{language}\n{text}{end}{fence}")
}

/// Returns the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}
