//! Rows of a sheet as lines, within the limits.

use crate::text::Text;
use crate::unread::Unread;

/// Rows that are read of a file, of all sheets together.
const MAX_ROWS: u64 = 200_000;

/// Cells that are read of a file, with empty ones between others.
const MAX_CELLS: u64 = 2_000_000;

/// Text of a file's sheets.
#[derive(Default)]
pub struct Rows {
    text: Text,
    rows: u64,
    cells: u64,
    /// The current row up to its last cell with a text.
    line: Text,
    /// Empty cells after that.
    gap: u64,
}

impl Rows {
    /// Starts a sheet.
    ///
    /// # Errors
    /// `TooLong`.
    pub fn sheet(&mut self, name: &str) -> Result<(), Unread> {
        self.text.heading(1, &format!("Sheet {name}"))
    }

    /// Adds `count` equal cells to the current row.
    ///
    /// # Errors
    /// `TooLong`.
    pub fn cell(&mut self, value: &str, count: u64) -> Result<(), Unread> {
        let value = value.trim();
        if value.is_empty() {
            self.gap += count;
            return Ok(());
        }
        for _ in 0..count {
            self.cells += 1 + self.gap;
            if self.cells > MAX_CELLS {
                return Err(Unread::TooLong);
            }
            for _ in 0..self.gap {
                self.line.push("\t")?;
            }
            self.line.push(&value.replace(['\t', '\n', '\r'], " "))?;
            self.gap = 1;
        }
        Ok(())
    }

    /// Ends the current row, which stands `count` times from row `number` on; empty rows are left
    /// out.
    ///
    /// # Errors
    /// `TooLong`.
    pub fn end(&mut self, number: u64, count: u64) -> Result<(), Unread> {
        let line = std::mem::take(&mut self.line).into_string();
        self.gap = 0;
        if line.is_empty() {
            return Ok(());
        }
        for number in number..number.saturating_add(count) {
            self.rows += 1;
            if self.rows > MAX_ROWS {
                return Err(Unread::TooLong);
            }
            self.text.push(&format!("{number}\t{line}\n"))?;
        }
        Ok(())
    }

    pub fn into_string(self) -> String {
        self.text.into_string()
    }
}
