//! Text of .docx files: paragraphs, headings, lists, tables and footnotes.

use std::collections::HashMap;

use crate::archive::Archive;
use crate::text::Text;
use crate::unread::Unread;
use crate::xml::{Element, Node, walk};

/// Most styles of a document.
const MAX_STYLES: usize = 10_000;

/// Extracts the text of a document and its footnotes.
///
/// # Errors
/// `Damaged`, `Encrypted`, `TooLong`, `UnpacksTooLarge`.
pub fn text_of(archive: &mut Archive<'_>) -> Result<String, Unread> {
    let styles = if archive.has("word/styles.xml") { heading_styles(archive)? } else { HashMap::new() };
    let mut reader = Reader { styles, ..Reader::default() };
    walk(archive.part("word/document.xml")?, &mut |node| reader.node(&node))?;
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        if archive.has(notes) {
            reader.text.push("\n")?;
            walk(archive.part(notes)?, &mut |node| reader.node(&node))?;
        }
    }
    Ok(reader.text.into_string())
}

/// Returns the levels of heading styles by their ids. Names are English in every language.
fn heading_styles(archive: &mut Archive<'_>) -> Result<HashMap<String, usize>, Unread> {
    let (mut styles, mut id) = (HashMap::new(), None);
    walk(archive.part("word/styles.xml")?, &mut |node| {
        let Node::Open(element) = node else { return Ok(()) };
        match element.name() {
            "style" => id = element.attribute("styleId"),
            "name" => {
                let name = element.attribute("val").unwrap_or_default().to_ascii_lowercase();
                let level = if name == "title" { Some(1) } else { heading_level(&name) };
                if let (Some(id), Some(level)) = (id.take(), level)
                    && styles.len() < MAX_STYLES
                {
                    styles.insert(id, level);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(styles)
}

/// Returns the level in a name such as `heading 2`.
fn heading_level(name: &str) -> Option<usize> {
    name.strip_prefix("heading")?.trim().parse().ok()
}

/// State of reading a part.
#[derive(Default)]
struct Reader {
    /// Levels of headings by the ids of their styles.
    styles: HashMap<String, usize>,
    text: Text,
    /// Text of the current paragraph, or of the current row of a table.
    line: Text,
    level: Option<usize>,
    /// Tables' cells that contain the current paragraph.
    cells: usize,
    /// Elements with a copy of a text, in another form, that contain the current node.
    copies: usize,
    /// The current node is within a run's text.
    in_text: bool,
}

impl Reader {
    fn node(&mut self, node: &Node<'_>) -> Result<(), Unread> {
        match node {
            Node::Open(element) if element.name() == "Fallback" => self.copies += 1,
            Node::Close("Fallback") => self.copies = self.copies.saturating_sub(1),
            _ if self.copies > 0 => {}
            Node::Open(element) => self.open(element)?,
            Node::Text(text) if self.in_text => self.line.push(text)?,
            Node::Text(_) => {}
            Node::Close(name) => self.close(name)?,
        }
        Ok(())
    }

    fn open(&mut self, element: &Element<'_>) -> Result<(), Unread> {
        match element.name() {
            "t" => self.in_text = true,
            "tab" => self.line.push(" ")?,
            "br" | "cr" => self.line.push(if self.cells > 0 { " " } else { "\n" })?,
            "noBreakHyphen" => self.line.push("-")?,
            "pStyle" => {
                let style = element.attribute("val").unwrap_or_default();
                self.level = self.styles.get(&style).copied();
            }
            "numPr" if self.cells == 0 => self.line.push("- ")?,
            "tc" => self.cells += 1,
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), Unread> {
        match name {
            "t" => self.in_text = false,
            "p" if self.cells > 0 => self.line.push(" ")?,
            "p" => self.end_line()?,
            "tc" => {
                self.cells = self.cells.saturating_sub(1);
                self.line.push("| ")?;
            }
            "tr" if self.cells == 0 => self.end_line()?,
            _ => {}
        }
        Ok(())
    }

    /// Appends the current paragraph or row.
    fn end_line(&mut self) -> Result<(), Unread> {
        let line = std::mem::take(&mut self.line).into_string();
        match self.level.take() {
            Some(level) => self.text.heading(level, line.trim_start_matches("- ")),
            None if line.trim() == "-" => Ok(()),
            None => self.text.line(line.trim_end().trim_end_matches('|')),
        }
    }
}
