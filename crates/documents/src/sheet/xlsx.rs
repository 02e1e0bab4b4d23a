//! Text of .xlsx files.

use std::collections::HashMap;

use super::format::Format;
use super::rows::Rows;
use crate::archive::Archive;
use crate::relations::Relations;
use crate::text::{MAX_TEXT, Text};
use crate::unread::Unread;
use crate::xml::{Element, Node, walk, walk_optional};

const WORKBOOK: &str = "xl/workbook.xml";

/// Most sheets, and most formats of cells.
const MAX_SHEETS: usize = 5_000;
const MAX_FORMATS: usize = 100_000;

/// Most texts that cells share, and bytes of these texts: some are in no cell.
const MAX_SHARED: usize = 1_000_000;
const MAX_SHARED_BYTES: usize = 4 * MAX_TEXT;

/// Columns of a sheet.
const MAX_COLUMNS: u64 = 16_384;

/// Days from 1899-12-30 to day 0 of a workbook that counts from 1904.
const FROM_1904: i64 = 1_462;

/// Extracts the text of all sheets.
///
/// # Errors
/// `Damaged`, `Encrypted`, `TooLong`, `UnpacksTooLarge`.
pub fn text_of(archive: &mut Archive<'_>) -> Result<String, Unread> {
    let (mut sheets, mut base) = (Vec::new(), 0);
    walk(archive.part(WORKBOOK)?, &mut |node| {
        let Node::Open(element) = node else { return Ok(()) };
        match element.name() {
            "sheet" if sheets.len() == MAX_SHEETS => return Err(Unread::TooLong),
            "sheet" => sheets.extend(element.attribute("name").zip(element.relationship())),
            "workbookPr" => {
                let value = element.attribute("date1904").unwrap_or_default();
                base = if matches!(&*value, "1" | "true") { FROM_1904 } else { 0 };
            }
            _ => {}
        }
        Ok(())
    })?;
    let relations = Relations::of(archive, WORKBOOK)?;
    let shared = relations.of_kind("sharedStrings").map(|part| shared_texts(archive, part));
    let formats = relations.of_kind("styles").map(|part| formats(archive, part));
    let (shared, formats) =
        (shared.transpose()?.unwrap_or_default(), formats.transpose()?.unwrap_or_default());
    let mut reader = Reader { shared, formats, base, ..Reader::default() };
    for (name, id) in sheets {
        let part = relations.target(&id).ok_or(Unread::Damaged)?;
        // Sheets with a chart only have no rows.
        if part.contains("/worksheets/") {
            reader.start(&name)?;
            walk(archive.part(part)?, &mut |node| reader.node(&node))?;
        }
    }
    Ok(reader.rows.into_string())
}

/// Reads the texts that cells refer to by number.
fn shared_texts(archive: &mut Archive<'_>, part: &str) -> Result<Vec<String>, Unread> {
    let (mut texts, mut text) = (Vec::new(), Text::default());
    let (mut bytes, mut in_text, mut in_reading) = (0, false, false);
    walk_optional(archive, part, &mut |node| {
        match node {
            Node::Open(element) => match element.name() {
                // Japanese readings stand beside the text.
                "rPh" => in_reading = true,
                "t" => in_text = !in_reading,
                _ => {}
            },
            Node::Text(words) if in_text => text.push(words)?,
            Node::Text(_) => {}
            Node::Close("rPh") => in_reading = false,
            Node::Close("t") => in_text = false,
            Node::Close("si") => {
                let text = std::mem::take(&mut text).into_string();
                bytes += text.len();
                if texts.len() == MAX_SHARED || bytes > MAX_SHARED_BYTES {
                    return Err(Unread::TooLong);
                }
                texts.push(text);
            }
            Node::Close(_) => {}
        }
        Ok(())
    })?;
    Ok(texts)
}

/// Reads how numbers are shown, by the cells' styles.
fn formats(archive: &mut Archive<'_>, part: &str) -> Result<Vec<Format>, Unread> {
    let (mut codes, mut formats, mut in_cells) = (HashMap::new(), Vec::new(), false);
    walk_optional(archive, part, &mut |node| {
        let id = |element: &Element<'_>| element.attribute("numFmtId")?.parse::<u32>().ok();
        match node {
            Node::Open(element) => match element.name() {
                "numFmt" if codes.len() < MAX_FORMATS => {
                    let code = element.attribute("formatCode").unwrap_or_default();
                    codes.extend(id(&element).map(|id| (id, Format::of_code(&code))));
                }
                "cellXfs" => in_cells = true,
                "xf" if in_cells && formats.len() < MAX_FORMATS => {
                    let id = id(&element).unwrap_or(0);
                    formats.push(codes.get(&id).copied().unwrap_or_else(|| Format::built_in(id)));
                }
                _ => {}
            },
            Node::Close("cellXfs") => in_cells = false,
            _ => {}
        }
        Ok(())
    })?;
    Ok(formats)
}

/// State of reading a sheet.
#[derive(Default)]
struct Reader {
    shared: Vec<String>,
    formats: Vec<Format>,
    base: i64,
    rows: Rows,
    /// Numbers of the current row from 1, and of the next column from 0.
    row: u64,
    column: u64,
    cell: Cell,
    in_value: bool,
}

/// A cell that is being read.
#[derive(Default)]
struct Cell {
    kind: String,
    format: Format,
    value: Text,
}

impl Reader {
    fn start(&mut self, name: &str) -> Result<(), Unread> {
        (self.row, self.column) = (0, 0);
        self.rows.sheet(name)
    }

    fn node(&mut self, node: &Node<'_>) -> Result<(), Unread> {
        match node {
            Node::Open(element) => match element.name() {
                "row" => {
                    let number = element.attribute("r").and_then(|number| number.parse().ok());
                    self.row = number.unwrap_or(self.row.saturating_add(1));
                    self.column = 0;
                }
                "c" => self.open_cell(element)?,
                "v" | "t" => self.in_value = true,
                _ => {}
            },
            Node::Text(text) if self.in_value => self.cell.value.push(text)?,
            Node::Text(_) => {}
            Node::Close("v" | "t") => self.in_value = false,
            Node::Close("c") => self.close_cell()?,
            Node::Close("row") => self.rows.end(self.row, 1)?,
            Node::Close(_) => {}
        }
        Ok(())
    }

    fn open_cell(&mut self, element: &Element<'_>) -> Result<(), Unread> {
        let column = element.attribute("r").and_then(|place| column(&place)).unwrap_or(self.column);
        self.rows.cell("", column.saturating_sub(self.column))?;
        self.column = column + 1;
        let style = element.attribute("s").and_then(|style| style.parse::<usize>().ok());
        self.cell = Cell {
            kind: element.attribute("t").unwrap_or_default(),
            format: self.formats.get(style.unwrap_or(0)).copied().unwrap_or_default(),
            value: Text::default(),
        };
        Ok(())
    }

    fn close_cell(&mut self) -> Result<(), Unread> {
        let Cell { kind, format, value } = std::mem::take(&mut self.cell);
        let value = value.into_string();
        let shown = match &*kind {
            "s" => value.trim().parse::<usize>().ok().and_then(|number| self.shared.get(number).cloned()),
            "b" => Some(if value.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned()),
            "" | "n" => Some(format.shown(value.trim(), self.base)),
            _ => Some(value),
        };
        self.rows.cell(&shown.unwrap_or_default(), 1)
    }
}

/// Returns the number, from 0, of the column in a cell's name such as `AB12`.
fn column(name: &str) -> Option<u64> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).take(4);
    let number =
        letters.fold(0, |number, letter| number * 26 + u64::from(letter.to_ascii_uppercase() - b'A') + 1);
    number.checked_sub(1).filter(|&column| column < MAX_COLUMNS)
}
