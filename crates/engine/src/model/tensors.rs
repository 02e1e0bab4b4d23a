//! The tensors of a model: where each lies in its files, and how it gets out of them. Reads no header: `gguf.rs` and
//! `folder.rs` say where each tensor is, and prove that it is there.

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

/// The name of the list of an assistant's tokens, cluster by cluster.
pub(super) const ORDER: &str = "masked_embd_ordering";

/// Where one tensor lies.
#[derive(Debug, Clone)]
pub struct Stored {
    pub format: Format,
    /// Outermost dimension first: `[out, in]` for a matrix.
    pub shape: Vec<usize>,
    /// Index of the file.
    pub file: usize,
    /// The tensor's bytes in that file.
    pub bytes: Range<usize>,
    pub meaning: Meaning,
    /// Its rows do not lie one after the other.
    pub gathered: Option<Gathered>,
}

/// What the numbers of a vector stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Themselves,
    /// w for 1 + w.
    AboveOne,
    /// w for -e^w.
    MinusExp,
}

/// Where bytes lie that are no numbers by themselves, but parts of a tensor.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub shape: Vec<usize>,
    /// Index of the file.
    pub file: usize,
    pub bytes: Range<usize>,
}

impl Stored {
    /// Numbers in it.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|&n| n as u64).product()
    }
}

/// Where a list of tokens lies. A draft head's table has of each row of its output matrix the target's token.
#[derive(Debug, Clone)]
pub(super) struct TokenTable {
    /// Index of the file.
    pub file: usize,
    /// Whole numbers.
    pub bytes: Range<usize>,
    /// Bytes of one of them: 4 or 8.
    pub width: usize,
    /// They are to be added to the numbers of their rows.
    pub offsets: bool,
}

impl TokenTable {
    /// Tokens in it.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width
    }
}

/// All tensors of a model by canonical name, with the files they lie in.
#[derive(Clone)]
pub(super) struct Tensors {
    /// The model's file or folder, for messages.
    pub path: PathBuf,
    pub files: Vec<Arc<WeightFile>>,
    pub stored: BTreeMap<String, Stored>,
    /// Those of blocks after the layers, which are there to draft with, as if there were no layers before.
    pub beyond: BTreeMap<String, Stored>,
    /// Until it is known which tensors they make.
    pub raw: BTreeMap<String, Raw>,
    pub token_table: Option<TokenTable>,
    /// Of an assistant whose tokens are in clusters: all of them, cluster by cluster.
    pub order: Option<TokenTable>,
}

impl Tensors {
    /// None yet, of the model at `path`.
    pub fn none(path: &Path) -> Self {
        let (stored, beyond, raw) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { path: path.to_owned(), files: Vec::new(), stored, beyond, raw, token_table: None, order: None }
    }

    /// The numbers of the table of tokens, in the order of the rows; `None` where there is no table.
    ///
    /// # Errors
    /// Those of reading its file.
    pub fn tokens(&self) -> Result<Option<Vec<i64>>> {
        self.token_table.as_ref().map(|table| self.numbers(table)).transpose()
    }

    /// The tokens of an assistant, cluster by cluster.
    ///
    /// # Errors
    /// `Error::BadModel` for a list that does not name each of `tokens` once; those of reading its file.
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

    /// Takes a tensor of another model for one of these.
    pub fn borrow(&mut self, name: &str, from: &Self, stored: &Stored) {
        let file = self.files.len();
        self.files.push(Arc::clone(&from.files[stored.file]));
        self.stored.insert(name.to_owned(), Stored { file, ..stored.clone() });
    }

    /// Of all tensors.
    pub fn bytes(&self) -> u64 {
        self.stored.values().map(|stored| stored.bytes.len() as u64).sum()
    }

    /// Where a tensor lies.
    ///
    /// # Errors
    /// `Error::BadModel` when there is no tensor of that name.
    pub fn find(&self, name: &str) -> Result<&Stored> {
        self.stored.get(name).ok_or_else(|| self.missing(name))
    }

    /// The bytes of a tensor, row after row.
    ///
    /// # Errors
    /// Those of reading its file.
    pub fn read(&self, stored: &Stored) -> Result<Vec<u8>> {
        let bytes = self.files[stored.file].read(stored.bytes.clone())?;
        let Some(gathered) = &stored.gathered else { return Ok(bytes) };
        let exponents = match &gathered.lie {
            Lie::Blocks { file, exponents } => self.files[*file].read(exponents.clone())?,
            Lie::Rows | Lie::Columns => Vec::new(),
        };
        let (rows, columns) = (stored.shape[0], stored.shape[1..].iter().product());
        Ok(gathered.gather(stored.format, (rows, columns), &bytes, &exponents))
    }

    /// Copies a tensor out of its file onto `device`, in the format it is stored in; as numbers where candle has none
    /// such, of 32 bits on a CPU and of 16 elsewhere, where memory is dear.
    ///
    /// # Errors
    /// `Error::BadModel` when there is no tensor of that name; those of reading its file; `Error::Compute` from the
    /// device.
    pub fn load(&self, name: &str, device: &Device) -> Result<QTensor> {
        let stored = self.find(name)?;
        let bytes = self.read(stored)?;
        let mut copy = Vec::new();
        let bytes = Cow::Borrowed(aligned(&bytes, &mut copy));
        let Some(dtype) = stored.format.candle() else {
            let numbers =
                Tensor::from_vec(stored.format.dequantise(&bytes), stored.shape.as_slice(), &Device::Cpu)?;
            let dtype = if device.is_cpu() { GgmlDType::F32 } else { GgmlDType::F16 };
            return Ok(QTensor::quantize_onto(&numbers, dtype, device)?);
        };
        let storage = QStorage::from_data(bytes, device, dtype)?;
        Ok(QTensor::new(storage, stored.shape.as_slice())?)
    }

    /// Finds `parts`, each so many rows of `inputs`, in a matrix that holds them one above the other: a part is a range of
    /// rows, and rows are whole blocks of whatever type they are stored in. Where the first is there by itself, or the
    /// matrix is not, nothing is done.
    ///
    /// # Errors
    /// `Error::BadModel` for a matrix that has not the rows of its parts.
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

/// The same bytes at an address that suits every element type, copied into `copy` if need be. Memory is nearly always
/// found at such an address, so the copy is the exception.
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
