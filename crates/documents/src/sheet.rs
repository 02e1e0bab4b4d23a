//! Spreadsheets as text: a heading a sheet, and a line a row that begins with its number.

pub mod ods;
pub mod xlsx;

mod format;
mod rows;
