//! Resources of servers: files and other data that a person attaches to a question. All their words
//! are untrusted.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ReadResourceResult, ResourceContents, ResourceTemplate};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::error::{Error, Result};
use crate::log::{identifier, printable};
use crate::outcome::{left_out, visible};

/// Most resources of one server.
pub(crate) const MOST_RESOURCES: usize = 1_000;

/// Longest text of a resource in bytes.
const LONGEST: usize = 4 << 20;

/// Most parts of a resource that are read.
const MOST_PARTS: usize = 16;

/// A resource that a server offers, or a template of some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerResource {
    pub server: String,
    /// Address, in a template with variables in braces.
    pub uri: String,
    pub name: String,
    /// Name for people; the name itself if the server has no other.
    pub title: String,
    pub description: String,
    pub mime_type: Option<String>,
    /// Size in bytes, as the server states it.
    #[ts(type = "number | null")]
    pub size: Option<u64>,
    /// Variables of a template.
    pub variables: Vec<String>,
}

/// Text of a resource, with a name as files have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceText {
    pub name: String,
    pub text: String,
}

/// Function that returns the text of a file, or why it has none, as the end of a sentence.
pub type ReadFile<'a> = &'a dyn Fn(&[u8]) -> std::result::Result<String, String>;

impl ServerResource {
    /// Reads an entry of a server's list; `None` if its address cannot be used.
    pub(crate) fn of(server: &str, resource: rmcp::model::Resource) -> Option<Self> {
        Some(Self {
            server: server.to_owned(),
            uri: identifier(resource.uri)?,
            title: printable(resource.title.as_ref().unwrap_or(&resource.name)),
            name: printable(&resource.name),
            description: printable(&resource.description.unwrap_or_default()),
            mime_type: resource.mime_type.as_deref().map(printable),
            size: resource.size,
            variables: Vec::new(),
        })
    }

    /// Reads a template of a server's list; `None` if it cannot be filled in.
    pub(crate) fn of_template(server: &str, template: ResourceTemplate) -> Option<Self> {
        let uri = identifier(template.uri_template)?;
        Some(Self {
            server: server.to_owned(),
            title: printable(template.title.as_ref().unwrap_or(&template.name)),
            name: printable(&template.name),
            description: printable(&template.description.unwrap_or_default()),
            mime_type: template.mime_type.as_deref().map(printable),
            size: None,
            variables: variables(&uri)?,
            uri,
        })
    }

    /// Returns the address, with the values of the variables.
    ///
    /// # Errors
    /// `Error::MissingArgument`.
    pub(crate) fn filled(&self, values: &BTreeMap<String, String>) -> Result<String> {
        let mut uri = self.uri.clone();
        for name in &self.variables {
            let value = values.get(name).filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| Error::MissingArgument(name.clone()))?;
            uri = uri.replace(&format!("{{{name}}}"), &escaped(value, false));
            uri = uri.replace(&format!("{{+{name}}}"), &escaped(value, true));
        }
        Ok(uri)
    }
}

/// Returns the variables of an address: names in braces, of which `+` allows slashes in the value.
/// `None` without any, and with other expressions of RFC 6570.
fn variables(template: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for rest in template.split('{').skip(1) {
        let name = rest.split_once('}')?.0;
        let name = name.strip_prefix('+').unwrap_or(name);
        let is_word = |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if name.is_empty() || !is_word(name) {
            return None;
        }
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
    Some(names).filter(|names| !names.is_empty())
}

/// Escapes a value for an address; `is_path` keeps reserved characters.
fn escaped(value: &str, is_path: bool) -> String {
    let kept = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || is_path && b":/?#[]@!$&'()*+,;=".contains(&byte)
    };
    let letter = |byte: u8| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(letter).collect()
}

/// Returns the name of a resource as a file has it: the listed one, or the end of its address.
pub(crate) fn file_name(uri: &str, listed: Option<&ServerResource>) -> String {
    let own = listed.filter(|listed| listed.variables.is_empty()).map(|listed| listed.name.as_str());
    let end = uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    printable(
        [own.unwrap_or_default(), end, uri].into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
    )
}

/// Returns the text of a resource. Of several parts, those without text are named.
///
/// # Errors
/// `Error::NoText`, and `Error::Stopped` once `stop` returns `true`.
pub(crate) fn text_of(
    name: &str,
    result: &ReadResourceResult,
    read: ReadFile<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<String> {
    let refused = |reason: &str| Error::NoText { name: name.to_owned(), reason: reason.to_owned() };
    let (mut texts, mut problem, mut has_text) = (Vec::new(), None, false);
    for contents in result.contents.iter().take(MOST_PARTS) {
        if stop() {
            return Err(Error::Stopped);
        }
        match part_of(contents, read) {
            Ok(text) => {
                has_text |= !text.trim().is_empty();
                texts.push(text);
            }
            Err(reason) => {
                texts.push(named(contents));
                problem = problem.or(Some(reason));
            }
        }
    }
    if !has_text {
        return Err(refused(problem.as_deref().unwrap_or("it has no text")));
    }
    if result.contents.len() > MOST_PARTS {
        texts.push(format!("[{} more parts were left out]", result.contents.len() - MOST_PARTS));
    }
    let text = visible(&texts.join("\n\n"));
    if text.len() > LONGEST { Err(refused("it has more text than is read")) } else { Ok(text) }
}

fn part_of(contents: &ResourceContents, read: ReadFile<'_>) -> std::result::Result<String, String> {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => Ok(text.clone()),
        ResourceContents::BlobResourceContents { blob, .. } => {
            read(&STANDARD.decode(blob).map_err(|_| "it is damaged or cut short")?)
        }
        _ => Err("it has a form that is not known".to_owned()),
    }
}

fn named(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::BlobResourceContents { uri, blob, .. } => left_out("file", &printable(uri), blob),
        _ => "[a part that cannot be shown]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(uri: &str) -> Option<ServerResource> {
        ServerResource::of_template("s", ResourceTemplate::new(uri, "t"))
    }

    #[test]
    fn templates_with_plain_variables_are_filled_in_and_others_are_left_out() {
        let notes = template("note://{animal}/{+path}?{animal}").unwrap();
        assert_eq!(notes.variables, ["animal", "path"]);
        let values = |animal: &str| {
            BTreeMap::from([("animal".to_owned(), animal.to_owned()), ("path".to_owned(), "a/ä".to_owned())])
        };
        assert_eq!(notes.filled(&values("f/x")).unwrap(), "note://f%2Fx/a/%C3%A4?f%2Fx");
        assert_eq!(notes.filled(&values("")), Err(Error::MissingArgument("animal".to_owned())));
        for uri in ["note://fox", "note://{?a,b}", "note://{/a}", "note://{a", "note://{}", "note://{a*}"] {
            assert_eq!(template(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_resource_is_named_like_a_file() {
        let listed = ServerResource::of("s", rmcp::model::Resource::new("file:///a/b.txt", "notes.txt"));
        assert_eq!(file_name("file:///a/b.txt", listed.as_ref()), "notes.txt");
        assert_eq!(file_name("file:///a/b.txt", None), "b.txt");
        assert_eq!(file_name("note://fox/", None), "fox");
        assert_eq!(file_name("fox", template("{a}").as_ref()), "fox");
    }

    #[test]
    fn parts_without_text_are_named_beside_others_and_refused_alone() {
        let read: ReadFile<'_> = &|bytes| match bytes {
            b"fox" => Ok("fox".to_owned()),
            _ => Err("it is a picture".to_owned()),
        };
        let text = |contents: Vec<ResourceContents>| {
            let result = ReadResourceResult::new(contents);
            text_of("n", &result, read, &|| false).map_err(|error| error.to_string())
        };
        let blob = |base64: &str| ResourceContents::blob(base64, "note://a");
        let plain = ResourceContents::text("a\u{7}b\r\n", "note://b");
        assert_eq!(text(vec![plain.clone(), blob("Zm94")]).unwrap(), "ab\n\n\nfox");
        assert_eq!(text(vec![blob("AAAA"), plain.clone()]).unwrap(), "[file, note://a, 3 bytes]\n\nab\n");
        assert_eq!(text(vec![blob("AAAA")]).unwrap_err(), "n cannot be used as text: it is a picture.");
        assert_eq!(
            text(vec![blob("A!")]).unwrap_err(),
            "n cannot be used as text: it is damaged or cut short."
        );
        assert_eq!(text(Vec::new()).unwrap_err(), "n cannot be used as text: it has no text.");
        let many = text(vec![plain; MOST_PARTS + 2]).unwrap();
        assert!(many.ends_with("[2 more parts were left out]"), "{many}");
        let long = ResourceContents::text("x".repeat(LONGEST + 1), "note://c");
        assert_eq!(text(vec![long]).unwrap_err(), "n cannot be used as text: it has more text than is read.");
    }
}
