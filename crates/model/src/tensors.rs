//! Locations of a model's tensors in its files, and their loading. Reads no header: `gguf.rs` and
//! `folder.rs` locate the tensors and check that they lie within their files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Tensor};

use super::gathered::{Gathered, Lie};
use super::weight_file::WeightFile;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::token::TokenId;

/// Name of the list of an assistant's tokens, ordered by cluster.
pub(super) const ORDER: &str = "masked_embd_ordering";

/// Location of a tensor.
#[derive(Debug, Clone)]
pub struct Stored {
    pub format: Format,
    /// Outermost dimension first: `[out, in]` for a matrix.
    pub shape: Vec<usize>,
    /// Index of its file.
    pub file: usize,
    /// Byte range in that file.
    pub bytes: Range<usize>,
    pub meaning: Meaning,
    /// Set if the tensor's rows are not contiguous.
    pub gathered: Option<Gathered>,
    /// Set if every weight is multiplied by a number that is stored elsewhere.
    pub factor: Option<Factor>,
}

/// Location of numbers of 32 bits that multiply the weights of a matrix, or of each of several
/// stacked ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    /// Index of the file.
    pub file: usize,
    /// Offset of the first number.
    pub at: usize,
    pub count: usize,
}

impl Factor {
    /// Returns the factor of matrix `index` of a stack.
    pub(super) fn of(self, index: usize) -> Self {
        let index = if self.count > 1 { index } else { 0 };
        Self { at: self.at + index * size_of::<f32>(), count: 1, ..self }
    }
}

/// Mapping from the stored numbers of a vector to weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Themselves,
    /// Stored w means 1 + w.
    AboveOne,
    /// Stored w means -e^w.
    MinusExp,
}

/// Location of bytes that are only part of a tensor, such as blocks without their exponents.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub shape: Vec<usize>,
    /// Index of its file.
    pub file: usize,
    pub bytes: Range<usize>,
}

impl Tensors {
    /// Number of tensors located so far.
    pub(super) fn count(&self) -> usize {
        self.stored.len() + self.raw.len() + self.mtp.len()
    }
}

impl Stored {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|&n| n as u64).product()
    }
}

/// Location of a list of tokens: a draft head's table from output rows to target tokens, or the
/// order of an assistant's tokens.
#[derive(Debug, Clone)]
pub(super) struct TokenTable {
    /// Index of its file.
    pub file: usize,
    /// Byte range of the integers.
    pub bytes: Range<usize>,
    /// Bytes per integer: 4 or 8.
    pub width: usize,
    /// True if each integer is relative to its row's index.
    pub offsets: bool,
}

impl TokenTable {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width
    }
}

/// All tensors of a model by canonical name, with the files they lie in.
#[derive(Clone)]
pub(super) struct Tensors {
    /// Path of the model's file or folder, for messages.
    pub path: PathBuf,
    pub files: Vec<Arc<WeightFile>>,
    pub stored: BTreeMap<String, Stored>,
    /// Tensors of the MTP blocks after the layers, numbered from block 0.
    pub mtp: BTreeMap<String, Stored>,
    /// Parts of tensors, until the tensors they belong to are known.
    pub raw: BTreeMap<String, Raw>,
    pub token_table: Option<TokenTable>,
    /// An assistant's tokens ordered by cluster, if they are clustered.
    pub order: Option<TokenTable>,
}

impl Tensors {
    /// Starts without tensors, for the model at `path`.
    pub fn none(path: &Path) -> Self {
        let (stored, mtp, raw) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { path: path.to_owned(), files: Vec::new(), stored, mtp, raw, token_table: None, order: None }
    }

    /// Reads the table of target tokens by output row; `None` if there is no table.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn tokens(&self) -> Result<Option<Vec<i64>>> {
        self.token_table.as_ref().map(|table| self.numbers(table)).transpose()
    }

    /// Reads an assistant's tokens, ordered by cluster.
    ///
    /// # Errors
    /// `Error::BadModel` if the list does not contain each of `tokens` tokens once; errors of
    /// reading the file.
    pub fn order(&self, tokens: usize) -> Result<Vec<TokenId>> {
        let numbers = self.order.as_ref().map_or(Ok(Vec::new()), |order| self.numbers(order))?;
        let mut is_named = vec![false; tokens];
        for &number in &numbers {
            let named = usize::try_from(number).ok().and_then(|token| is_named.get_mut(token));
            let Some(named) = named.filter(|named| !**named) else {
                return Err(Error::BadModel {
                    path: self.path.clone(),
                    expected: format!("each of {tokens} tokens once in {ORDER}"),
                    found: number.to_string(),
                    hint: "Choose another file of this draft head.",
                });
            };
            *named = true;
        }
        Ok(numbers.into_iter().map(|number| number as TokenId).collect())
    }

    fn numbers(&self, table: &TokenTable) -> Result<Vec<i64>> {
        let bytes = self.files[table.file].read(table.bytes.clone())?;
        let numbers: Vec<i64> = match table.width {
            4 => bytes.as_chunks().0.iter().map(|number| i32::from_le_bytes(*number).into()).collect(),
            _ => bytes.as_chunks().0.iter().map(|number| i64::from_le_bytes(*number)).collect(),
        };
        let first = |row: i64| if table.offsets { row } else { 0 };
        Ok((0..).zip(numbers).map(|(row, number)| number.saturating_add(first(row))).collect())
    }

    /// Renames all tensors, and drops those without a new name.
    pub fn renamed(mut self, name: impl Fn(&str) -> Option<String>) -> Self {
        let stored = std::mem::take(&mut self.stored).into_iter();
        self.stored = stored.filter_map(|(old, stored)| Some((name(&old)?, stored))).collect();
        self
    }

    /// Adds a tensor of another model under `name`.
    pub fn borrow(&mut self, name: &str, from: &Self, stored: &Stored) {
        let file = self.files.len();
        self.files.push(Arc::clone(&from.files[stored.file]));
        self.stored.insert(name.to_owned(), Stored { file, ..stored.clone() });
    }

    /// Total size of all tensors in bytes.
    pub fn bytes(&self) -> u64 {
        self.stored.values().map(|stored| stored.bytes.len() as u64).sum()
    }

    /// Returns the location of a tensor.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no tensor of that name.
    pub fn find(&self, name: &str) -> Result<&Stored> {
        self.stored.get(name).ok_or_else(|| self.missing(name))
    }

    /// Reads the bytes of a tensor, row after row.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn read(&self, stored: &Stored) -> Result<Vec<u8>> {
        let bytes = self.files[stored.file].read(stored.bytes.clone())?;
        let Some(gathered) = &stored.gathered else { return Ok(bytes) };
        let exponents = match &gathered.lie {
            Lie::Blocks { file, exponents } => self.files[*file].read(exponents.clone())?,
            Lie::Rows | Lie::Columns => Vec::new(),
        };
        let (rows, columns) = (stored.shape[0], stored.shape[1..].iter().product());
        Ok(gathered.gather(stored.format, rows, columns, &bytes, &exponents))
    }

    /// Reads the number that multiplies a matrix's weights, usually 1.
    ///
    /// # Errors
    /// `Error::BadModel` if it is not finite; errors of reading the file.
    pub fn factor(&self, stored: &Stored) -> Result<f32> {
        let Some(factor) = stored.factor else { return Ok(1.0) };
        let bytes = self.files[factor.file].read(factor.at..factor.at + size_of::<f32>())?;
        let number = bytes.first_chunk().map_or(f32::NAN, |number| f32::from_le_bytes(*number));
        if number.is_finite() {
            return Ok(number);
        }
        Err(Error::BadModel {
            path: self.path.clone(),
            expected: "a finite scale for each matrix".into(),
            found: number.to_string(),
            hint: "Choose another file of this model.",
        })
    }

    /// Dequantises whole rows of a matrix, with its factor.
    ///
    /// # Errors
    /// Those of [`Self::factor`].
    pub fn dequantise(&self, stored: &Stored, bytes: &[u8]) -> Result<Vec<f32>> {
        let (mut weights, factor) = (stored.format.dequantise(bytes), self.factor(stored)?);
        if stored.factor.is_some() {
            weights.iter_mut().for_each(|weight| *weight *= factor);
        }
        Ok(weights)
    }

    /// Copies a tensor from its file to `device` in its stored format. Formats that candle lacks
    /// are dequantised: to f32 on a CPU, elsewhere to f16, to save memory.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no tensor of that name; errors of reading the file;
    /// `Error::Compute` from the device.
    pub fn load(&self, name: &str, device: &Device) -> Result<QTensor> {
        let stored = self.find(name)?;
        let bytes = self.read(stored)?;
        let mut copy = Vec::new();
        let bytes = Cow::Borrowed(aligned(&bytes, &mut copy));
        let Some(dtype) = stored.format.candle() else {
            let numbers = self.dequantise(stored, &bytes)?;
            let numbers = Tensor::from_vec(numbers, stored.shape.as_slice(), &Device::Cpu)?;
            let dtype = if device.is_cpu() { GgmlDType::F32 } else { GgmlDType::F16 };
            return Ok(QTensor::quantize_onto(&numbers, dtype, device)?);
        };
        let storage = QStorage::from_data(bytes, device, dtype)?;
        Ok(QTensor::new(storage, stored.shape.as_slice())?)
    }

    /// Splits a matrix into `parts`, each a number of consecutive rows of `inputs` columns. Rows
    /// are whole blocks of any format. Does nothing if the matrix is missing or the first part
    /// exists already.
    ///
    /// # Errors
    /// `Error::BadModel` for a matrix with an unexpected number of rows.
    pub fn split_rows(&mut self, name: &str, parts: &[(String, usize)], inputs: usize) -> Result<()> {
        if parts.iter().take(1).any(|(first, _)| self.stored.contains_key(first)) {
            return Ok(());
        }
        let Some(whole) = self.stored.remove(name) else { return Ok(()) };
        let rows = parts.iter().map(|(_, rows)| rows).sum();
        if whole.shape != [rows, inputs] {
            return Err(self.misshapen(name, &[rows, inputs], &whole.shape));
        }
        let row_bytes = whole.bytes.len() / rows;
        let mut start = whole.bytes.start;
        for (part, rows) in parts {
            let bytes = start..start + rows * row_bytes;
            start = bytes.end;
            self.stored.insert(part.clone(), Stored { shape: vec![*rows, inputs], bytes, ..whole.clone() });
        }
        Ok(())
    }

    pub fn misshapen(&self, name: &str, expected: &[usize], found: &[usize]) -> Error {
        Error::BadModel {
            path: self.path.clone(),
            expected: format!("{name} of shape {expected:?}"),
            found: format!("{found:?}"),
            hint: "Choose another file of this model.",
        }
    }

    pub fn missing(&self, name: &str) -> Error {
        Error::BadModel {
            path: self.path.clone(),
            expected: format!("the tensor {name}"),
            found: "none".into(),
            hint: "Choose another file of this model.",
        }
    }
}

/// Returns `bytes` at an address aligned for every element type, copied into `copy` if necessary.
/// Allocations nearly always are aligned, so the copy is rare.
fn aligned<'a>(bytes: &'a [u8], copy: &'a mut Vec<u8>) -> &'a [u8] {
    const ALIGNMENT: usize = 8;
    if bytes.as_ptr().align_offset(ALIGNMENT) == 0 {
        return bytes;
    }
    copy.resize(bytes.len() + ALIGNMENT, 0);
    let start = copy.as_ptr().align_offset(ALIGNMENT);
    let place = &mut copy[start..start + bytes.len()];
    place.copy_from_slice(bytes);
    place
}
