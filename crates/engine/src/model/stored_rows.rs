//! A matrix that stays in its file, of which rows are read one by one: tables of a token's numbers that are larger than
//! all that is computed with.

use std::sync::Arc;

use super::tensors::{Stored, Tensors};
use crate::error::Result;

/// `[rows, columns]`
#[derive(Clone)]
pub struct StoredRows {
    tensors: Arc<Tensors>,
    stored: Stored,
}

impl StoredRows {
    pub(super) fn new(tensors: Arc<Tensors>, stored: Stored) -> Self {
        Self { tensors, stored }
    }

    /// Numbers of a row.
    pub fn columns(&self) -> usize {
        self.stored.shape[1]
    }

    /// The numbers of a row that there is.
    ///
    /// # Errors
    /// `Error::Io`, and `Error::BadModel` for a file that has changed.
    pub fn row(&self, row: usize) -> Result<Vec<f32>> {
        let width = self.stored.bytes.len() / self.stored.shape[0];
        let start = self.stored.bytes.start + row * width;
        let own = Stored { bytes: start..start + width, ..self.stored.clone() };
        Ok(self.stored.format.dequantise(&self.tensors.read(&own)?))
    }
}

impl std::fmt::Debug for StoredRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StoredRows").field(&self.stored).finish()
    }
}
