//! Text of .epub files: the chapters in reading order.

use std::collections::HashMap;

use crate::archive::Archive;
use crate::page;
use crate::relations::{folder_of, joined};
use crate::text::Text;
use crate::unread::Unread;
use crate::xml::{Node, walk, walk_optional};

/// Most chapters and other files of a book.
const MAX_FILES: usize = 20_000;

/// Extracts the text of all chapters.
///
/// # Errors
/// `Damaged`, `Encrypted`, `TooLong`, `UnpacksTooLarge`.
pub fn text_of(archive: &mut Archive<'_>) -> Result<String, Unread> {
    let mut package = None;
    walk(archive.part("META-INF/container.xml")?, &mut |node| {
        if let Node::Open(element) = node
            && element.name() == "rootfile"
        {
            package = package.take().or_else(|| element.attribute("full-path"));
        }
        Ok(())
    })?;
    let package = package.ok_or(Unread::Damaged)?;
    let chapters = chapters(archive, &package)?;
    refuse_encrypted(archive, &chapters)?;
    let mut text = Text::default();
    for chapter in chapters {
        // Readers show the rest of a book with a missing chapter, too.
        if archive.has(&chapter) {
            text.push("\n")?;
            text.push(page::text_of(&archive.bytes(&chapter)?)?.trim())?;
            text.push("\n")?;
        }
    }
    Ok(text.into_string())
}

/// Returns the names of the chapters' parts, in reading order.
fn chapters(archive: &mut Archive<'_>, package: &str) -> Result<Vec<String>, Unread> {
    let (mut files, mut order) = (HashMap::new(), Vec::new());
    walk(archive.part(package)?, &mut |node| {
        let Node::Open(element) = node else { return Ok(()) };
        if files.len() + order.len() > MAX_FILES {
            return Err(Unread::TooLong);
        }
        match element.name() {
            "item" => {
                let (id, href) = (element.attribute("id"), element.attribute("href"));
                files.extend(id.zip(href));
            }
            "itemref" => order.extend(element.attribute("idref")),
            _ => {}
        }
        Ok(())
    })?;
    let folder = folder_of(package);
    Ok(order.iter().filter_map(|id| files.get(id)).map(|href| joined(folder, &unescaped(href))).collect())
}

/// Refuses a book with chapters that are encrypted; of many books only the fonts are.
fn refuse_encrypted(archive: &mut Archive<'_>, chapters: &[String]) -> Result<(), Unread> {
    walk_optional(archive, "META-INF/encryption.xml", &mut |node| match node {
        Node::Open(element) if element.name() == "CipherReference" => {
            let encrypted = unescaped(&element.attribute("URI").unwrap_or_default());
            if chapters.contains(&encrypted) { Err(Unread::Encrypted) } else { Ok(()) }
        }
        _ => Ok(()),
    })
}

/// Resolves percent signs in an address.
fn unescaped(address: &str) -> String {
    let mut bytes = Vec::with_capacity(address.len());
    let mut rest = address.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| first == b'%');
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
