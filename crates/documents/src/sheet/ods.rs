//! Text of .ods files: cells as they are shown.

use super::rows::Rows;
use crate::archive::Archive;
use crate::text::Text;
use crate::unread::Unread;
use crate::xml::{Element, Node, walk, walk_optional};

/// Extracts the text of all sheets.
///
/// # Errors
/// `Damaged`, `Encrypted`, `TooLong`, `UnpacksTooLarge`.
pub fn text_of(archive: &mut Archive<'_>) -> Result<String, Unread> {
    refuse_encrypted(archive)?;
    let mut reader = Reader { number: 1, ..Reader::default() };
    walk(archive.part("content.xml")?, &mut |node| reader.node(&node))?;
    Ok(reader.rows.into_string())
}

/// Refuses a file whose list of parts says that they are encrypted.
fn refuse_encrypted(archive: &mut Archive<'_>) -> Result<(), Unread> {
    walk_optional(archive, "META-INF/manifest.xml", &mut |node| match node {
        Node::Open(element) if element.name() == "encryption-data" => Err(Unread::Encrypted),
        _ => Ok(()),
    })
}

/// State of reading the sheets.
#[derive(Default)]
struct Reader {
    rows: Rows,
    /// Number of the current row, from 1.
    number: u64,
    /// How often the current row and the current cell stand in a row.
    row_count: u32,
    cell_count: u32,
    cell: Text,
    in_cell: bool,
    in_paragraph: bool,
    /// Notes that contain the current node.
    notes: usize,
}

impl Reader {
    fn node(&mut self, node: &Node<'_>) -> Result<(), Unread> {
        match node {
            Node::Open(element) => self.open(element),
            Node::Text(text) if self.in_paragraph && self.notes == 0 => self.cell.push(text),
            Node::Text(_) => Ok(()),
            Node::Close(name) => self.close(name),
        }
    }

    fn open(&mut self, element: &Element<'_>) -> Result<(), Unread> {
        match element.name() {
            "table" => {
                self.number = 1;
                self.rows.sheet(&element.attribute("name").unwrap_or_default())?;
            }
            "table-row" => self.row_count = element.count("number-rows-repeated"),
            "table-cell" | "covered-table-cell" => {
                self.cell_count = element.count("number-columns-repeated");
                self.in_cell = true;
            }
            "annotation" => self.notes += 1,
            "p" if self.in_cell => self.in_paragraph = true,
            "s" | "tab" | "line-break" if self.in_paragraph && self.notes == 0 => self.cell.push(" ")?,
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), Unread> {
        match name {
            "table-row" => {
                self.rows.end(self.number, self.row_count.into())?;
                self.number = self.number.saturating_add(self.row_count.into());
            }
            "table-cell" | "covered-table-cell" => {
                self.in_cell = false;
                let value = std::mem::take(&mut self.cell).into_string();
                self.rows.cell(&value, self.cell_count.into())?;
            }
            "annotation" => self.notes = self.notes.saturating_sub(1),
            "p" => {
                self.in_paragraph = false;
                if self.in_cell && self.notes == 0 {
                    self.cell.push(" ")?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
