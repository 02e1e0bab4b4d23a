//! Access to weights under canonical names for a device. Keeps no weights in memory.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use super::stored_rows::StoredRows;
pub use super::tensors::Stored;
use super::tensors::{Meaning, Tensors};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::token::TokenId;

/// Receives the bytes of weights loaded so far, the current tensor included, and their total;
/// `Break` cancels loading.
pub type Watcher = Arc<dyn Fn(u64, u64) -> ControlFlow<()> + Send + Sync>;

/// Identity of a matrix on this computer and of its conversion, for sharing packed weights.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    file: (PathBuf, u64, Option<SystemTime>),
    bytes: Range<usize>,
    shape: Vec<usize>,
    format: Format,
    rounded: bool,
}

/// Reader of weights for a device; each call reads one tensor.
pub struct Weights {
    tensors: Arc<Tensors>,
    device: Device,
    eight_bits: bool,
    watcher: Option<Watcher>,
    /// Bytes read so far, the current tensor included.
    done: AtomicU64,
    /// Buffers of rows that were read, for the next rows.
    buffers: Mutex<Vec<Vec<u8>>>,
}

impl Weights {
    pub(super) fn new(
        tensors: Arc<Tensors>,
        device: &Device,
        eight_bits: bool,
        watcher: Option<Watcher>,
    ) -> Self {
        let (device, done, buffers) = (device.clone(), AtomicU64::new(0), Mutex::default());
        Self { tensors, device, eight_bits, watcher, done, buffers }
    }

    /// Reports to the watcher that a tensor of `bytes` bytes is about to be read.
    fn report(&self, bytes: usize) -> Result<()> {
        let done = self.done.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        match &self.watcher {
            Some(watcher) if watcher(done, self.tensors.bytes()).is_break() => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    /// Reads a matrix `[out, in]` in its stored format, dequantised, or rounded to Q8_0 if
    /// requested.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no such tensor; `Error::Compute` from the device;
    /// `Error::Cancelled` if the watcher cancelled loading.
    pub fn matrix(&self, name: &str) -> Result<Arc<QTensor>> {
        self.matrix_on(&self.device, name)
    }

    /// Reads a matrix as [`Self::matrix`] does, but for `device`.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn matrix_on(&self, device: &Device, name: &str) -> Result<Arc<QTensor>> {
        let stored = self.stored(name)?;
        let matrix = if self.rounds(stored) {
            self.in_eight_bits(device, name)?
        } else {
            self.tensors.load(name, device)?
        };
        Ok(Arc::new(matrix))
    }

    /// Memory of a tensor on the CPU in bytes, where codebook formats are packed with one number
    /// per weight.
    pub(super) fn loaded_bytes(&self, stored: &Stored) -> u64 {
        if stored.shape.len() < 2 {
            return stored.bytes.len() as u64;
        }
        let format = if self.rounds(stored) { Format::Q8_0 } else { stored.format };
        stored.elements() * format.packed() as u64 / format.inputs() as u64
    }

    /// Returns whether a tensor is rounded to Q8_0: if requested, for 16 or 32 bits and whole
    /// blocks.
    pub fn rounds(&self, stored: &Stored) -> bool {
        let row = stored.shape.last().copied().unwrap_or(0);
        self.eight_bits && !stored.format.quantised() && row.is_multiple_of(Format::Q8_0.inputs())
    }

    /// Reads a matrix as Q8_0, whatever its stored format.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn in_eight_bits(&self, device: &Device, name: &str) -> Result<QTensor> {
        let stored = self.tensors.load(name, &Device::Cpu)?;
        tracing::info!("{name} is stored as {:?} and computed as Q8_0", stored.dtype());
        let numbers = stored.dequantize(&Device::Cpu)?;
        Ok(QTensor::quantize_onto(&numbers, GgmlDType::Q8_0, device)?)
    }

    /// Reads a vector as f32, with its stored numbers mapped to weights.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn vector(&self, name: &str) -> Result<Tensor> {
        let meaning = self.stored(name)?.meaning;
        let vector = self.tensors.load(name, &self.device)?.dequantize(&self.device)?;
        Ok(match meaning {
            Meaning::Themselves => vector,
            Meaning::AboveOne => (vector + 1.0)?,
            Meaning::MinusExp => {
                let numbers: Vec<f32> = vector.to_vec1()?;
                Tensor::from_iter(numbers.into_iter().map(|number| -libm::expf(number)), &self.device)?
            }
        })
    }

    /// Opens a matrix that stays in its file.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn rows(&self, name: &str) -> Result<StoredRows> {
        Ok(StoredRows::new(Arc::clone(&self.tensors), self.stored(name)?.clone()))
    }

    /// Returns the identity of a matrix among packed weights; `None` if its rows are not
    /// contiguous.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no such tensor.
    pub fn identity(&self, name: &str) -> Result<Option<Identity>> {
        let stored = self.tensors.find(name)?;
        let file = self.tensors.files[stored.file].identity();
        Ok(stored.gathered.is_none().then(|| Identity {
            file,
            bytes: stored.bytes.clone(),
            shape: stored.shape.clone(),
            format: stored.format,
            rounded: self.rounds(stored),
        }))
    }

    /// Returns the location of a tensor that is about to be read, and reports it to the watcher.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no such tensor; `Error::Cancelled` as [`Self::matrix`].
    pub fn stored(&self, name: &str) -> Result<&Stored> {
        let stored = self.tensors.find(name)?;
        self.report(stored.bytes.len())?;
        Ok(stored)
    }

    /// Reads the number that multiplies a matrix's weights, usually 1.
    ///
    /// # Errors
    /// `Error::BadModel` if it is not finite; `Error::Io`.
    pub fn factor(&self, stored: &Stored) -> Result<f32> {
        self.tensors.factor(stored)
    }

    /// Reads the bytes of a tensor as stored in the file.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` if the file has changed.
    pub fn read(&self, stored: &Stored) -> Result<Vec<u8>> {
        self.tensors.read(stored)
    }

    /// Reads rows of a matrix as stored in the file, and passes their bytes to `consume`. Several
    /// threads may read at once. The rows must be contiguous, see [`Stored::gathered`].
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_rows<T>(
        &self,
        stored: &Stored,
        rows: Range<usize>,
        consume: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let width = stored.bytes.len() / stored.shape[0];
        let start = stored.bytes.start + rows.start * width;
        let buffers = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = buffers().pop().unwrap_or_default();
        let bytes = start..start + rows.len() * width;
        let read = self.tensors.files[stored.file].read_over(&mut buffer, bytes).map(consume);
        buffers().push(buffer);
        read
    }

    /// Reads rows of a matrix as [`Self::read_rows`] does, and passes them on as Q8_0. Only for
    /// formats without blocks.
    ///
    /// # Errors
    /// As [`Self::read_rows`], and `Error::Compute`.
    pub fn read_rows_in_eight_bits<T>(
        &self,
        stored: &Stored,
        rows: Range<usize>,
        consume: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let shape = (rows.len(), stored.shape[1]);
        let numbers = self.read_rows(stored, rows, |bytes| stored.format.dequantise(bytes))?;
        let numbers = Tensor::from_vec(numbers, shape, &Device::Cpu)?;
        Ok(consume(&QTensor::quantize(&numbers, GgmlDType::Q8_0)?.data()?))
    }

    /// Returns an error for a model that is not as `expected`.
    pub fn bad(&self, expected: String, found: String) -> Error {
        Error::BadModel {
            path: self.tensors.path.clone(),
            expected,
            found,
            hint: "Choose another file of this model.",
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.stored.contains_key(name)
    }

    /// Reads an assistant's tokens, ordered by cluster.
    ///
    /// # Errors
    /// `Error::BadModel` if the list does not contain each of `tokens` tokens once, and errors of
    /// [`Self::vector`].
    pub fn order(&self, tokens: usize) -> Result<Vec<TokenId>> {
        self.tensors.order(tokens)
    }

    pub fn device(&self) -> &Device {
        &self.device
    }
}
