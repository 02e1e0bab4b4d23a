//! Elements and texts of an XML part, in order.

use std::borrow::Cow;
use std::io::BufRead;

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Error, Reader, XmlVersion};

use crate::archive::{Archive, unread};
use crate::unread::Unread;

/// Most elements that contain each other.
const MAX_DEPTH: usize = 1_000;

/// A part of an XML document. Names are without prefixes.
pub enum Node<'a> {
    Open(Element<'a>),
    Text(&'a str),
    Close(&'a str),
}

/// An element that begins.
pub struct Element<'a>(BytesStart<'a>);

impl Element<'_> {
    pub fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// Returns an attribute's value by its name without prefix.
    pub fn attribute(&self, name: &str) -> Option<String> {
        self.value(|key, _| key == name)
    }

    /// Returns the attribute `id` that has a prefix: the id of a relationship.
    pub fn relationship(&self) -> Option<String> {
        self.value(|key, has_prefix| key == "id" && has_prefix)
    }

    /// Returns a count from an attribute, 1 without it.
    pub fn count(&self, name: &str) -> u32 {
        self.attribute(name).map_or(1, |value| value.parse().unwrap_or(u32::MAX))
    }

    fn value(&self, is_meant: impl Fn(&str, bool) -> bool) -> Option<String> {
        let mut attributes = self.0.attributes();
        let mut found = attributes.with_checks(false).filter_map(Result::ok).filter(|attribute| {
            let (name, prefix) = attribute.key.decompose();
            is_meant(name.into_inner(), prefix.is_some())
        });
        let value = found.next()?;
        Some(
            value
                .normalized_value(XmlVersion::Implicit1_0)
                .map_or_else(|_| value.value.to_string(), Cow::into_owned),
        )
    }
}

/// Walks through a part of an archive; a missing one has no nodes.
///
/// # Errors
/// As [`walk`], and [`Archive::part`].
pub fn walk_optional(
    archive: &mut Archive<'_>,
    name: &str,
    on: &mut dyn FnMut(Node<'_>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    if archive.has(name) { walk(archive.part(name)?, on) } else { Ok(()) }
}

/// Passes every node of a part to `on`. Entities that the part declares itself are left out.
///
/// # Errors
/// `Damaged` for a part that is not well-formed or ends early; `UnpacksTooLarge`; errors of `on`.
pub fn walk(part: impl BufRead, on: &mut dyn FnMut(Node<'_>) -> Result<(), Unread>) -> Result<(), Unread> {
    let mut reader = Reader::from_reader(part);
    reader.config_mut().expand_empty_elements = true;
    let (mut buffer, mut depth) = (Vec::new(), 0);
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).map_err(|error| reason(&error))? {
            Event::Start(element) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Unread::Damaged);
                }
                on(Node::Open(Element(element)))?;
            }
            Event::End(element) => {
                depth -= 1;
                on(Node::Close(element.local_name().into_inner()))?;
            }
            Event::Text(text) => on(Node::Text(&text.xml10_content()))?,
            Event::CData(text) => on(Node::Text(&text.xml10_content()))?,
            Event::GeneralRef(entity) => match entity.resolve_char_ref() {
                Ok(Some(letter)) => on(Node::Text(letter.encode_utf8(&mut [0; 4])))?,
                _ => on(Node::Text(resolve_predefined_entity(&entity).unwrap_or_default()))?,
            },
            Event::Eof if depth > 0 => return Err(Unread::Damaged),
            Event::Eof => return Ok(()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

fn reason(error: &Error) -> Unread {
    match error {
        Error::Io(error) => unread(error),
        _ => Unread::Damaged,
    }
}
