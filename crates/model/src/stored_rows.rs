//! Matrices that stay in their file and are read row by row: per-layer embedding tables, which are
//! larger than all other weights.

use std::sync::Arc;

use super::tensors::{Stored, Tensors};
use crate::error::Result;

/// A matrix `[rows, columns]` in its file.
#[derive(Clone)]
pub struct StoredRows {
    tensors: Arc<Tensors>,
    stored: Stored,
}

impl StoredRows {
    pub(super) fn new(tensors: Arc<Tensors>, stored: Stored) -> Self {
        Self { tensors, stored }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.stored.shape[1]
    }

    /// Reads a row as f32; `row` must be within the matrix.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` if the file has changed.
    pub fn row(&self, row: usize) -> Result<Vec<f32>> {
        let width = self.stored.bytes.len() / self.stored.shape[0];
        let start = self.stored.bytes.start + row * width;
        let own = Stored { bytes: start..start + width, ..self.stored.clone() };
        self.tensors.dequantise(&own, &self.tensors.read(&own)?)
    }
}

impl std::fmt::Debug for StoredRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StoredRows").field(&self.stored).finish()
    }
}
