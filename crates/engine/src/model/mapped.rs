//! Files mapped into memory, and the tensors that lie in them. Reads no header: `gguf.rs` and
//! `folder.rs` say where each tensor is, this file proves that it is there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use memmap2::Mmap;

use crate::error::{Error, Result};

/// Maps a file for reading.
///
/// # Errors
/// `Error::Io` when the file cannot be opened or mapped.
pub(super) fn map(path: &Path) -> Result<Mmap> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    // SAFETY: the mapping is private to this process and only ever read, so nothing here can change
    // bytes behind a shared reference. Another program that shortens the file while it is mapped
    // could still end this process; model files are written once and moved into place, and every
    // program that maps them accepts the same.
    unsafe { Mmap::map(&file) }.map_err(io)
}

/// Where one tensor lies.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub dtype: GgmlDType,
    /// Outermost dimension first: `[out, in]` for a matrix.
    pub shape: Vec<usize>,
    /// Index of the mapped file.
    pub file: usize,
    /// The tensor's bytes in that file.
    pub bytes: Range<usize>,
    /// The file holds w where 1 + w is meant.
    pub above_one: bool,
}

impl Stored {
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|&n| n as u64).product()
    }
}

/// All tensors of a model by canonical name, with the files they lie in.
pub(super) struct Tensors {
    /// The model's file or folder, for messages.
    pub path: PathBuf,
    pub files: Vec<Arc<Mmap>>,
    pub stored: BTreeMap<String, Stored>,
}

impl Tensors {
    /// Of all tensors.
    pub fn bytes(&self) -> u64 {
        self.stored.values().map(|stored| stored.bytes.len() as u64).sum()
    }

    /// Copies a tensor out of its file onto `device`, in the type it is stored in.
    ///
    /// # Errors
    /// `Error::BadModel` when there is no tensor of that name; `Error::Compute` from the device.
    pub fn load(&self, name: &str, device: &Device) -> Result<QTensor> {
        let stored = self.stored.get(name).ok_or_else(|| self.missing(name))?;
        let bytes = &self.files[stored.file][stored.bytes.clone()];
        let mut copy = Vec::new();
        let bytes = Cow::Borrowed(aligned(bytes, &mut copy));
        let storage = QStorage::from_data(bytes, device, stored.dtype)?;
        Ok(QTensor::new(storage, stored.shape.as_slice())?)
    }

    /// The system may take back the memory in which it holds a tensor: another look reads the file
    /// again.
    pub fn release(&self, name: &str) {
        #[cfg(unix)]
        if let Some(stored) = self.stored.get(name) {
            let (file, bytes) = (&self.files[stored.file], &stored.bytes);
            // SAFETY: the pages are those of a file that is mapped for reading and privately; what is
            // read from them later is the file's content again.
            let released = unsafe {
                file.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, bytes.start, bytes.len())
            };
            // A hint; without it the memory is only counted as ours for longer.
            released.unwrap_or_else(|error| tracing::debug!("{name} stays in memory: {error}"));
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

/// Bytes a tensor of this type and shape takes; `None` when the shape is absurd or does not divide
/// into the type's blocks.
pub(super) fn stored_size(dtype: GgmlDType, shape: &[usize]) -> Option<usize> {
    let elements = shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n))?;
    let row = shape.last().copied().unwrap_or(1);
    row.is_multiple_of(dtype.block_size())
        .then(|| (elements / dtype.block_size()).checked_mul(dtype.type_size()))
        .flatten()
}

/// The same bytes at an address that suits every element type, copied into `copy` if need be. Both
/// formats may place tensors anywhere; nearly all files align them, so the copy is the exception.
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
