//! Loading of weights from a file: matrices packed as panels, and vectors.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use foretoken_model::Weights;
use foretoken_model::error::Result;
use foretoken_model::weights::Identity;

use super::panels::{Format, PackError, Panels};
use super::simd::LANES;

/// An RMS norm weight of ones, padded with zeros to whole vectors.
pub fn ones(length: usize) -> Vec<f32> {
    let mut ones = vec![1.0; length];
    ones.resize(length.next_multiple_of(LANES), 0.0);
    ones
}

/// Packs a matrix that a draft head may share with its target. All loaded models that refer to the
/// same tensor of a file share one packed copy.
pub fn shared(weights: &Weights, name: &str) -> Result<Arc<Panels>> {
    static PACKED: Mutex<Vec<(Identity, Weak<Panels>)>> = Mutex::new(Vec::new());
    let packed = || PACKED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(identity) = weights.identity(name)? else { return Ok(Arc::new(panels(weights, name)?)) };
    let mut shared = packed();
    shared.retain(|(_, panels)| panels.strong_count() > 0);
    let found = shared.iter().find(|(other, _)| *other == identity).and_then(|(_, panels)| panels.upgrade());
    drop(shared);
    if let Some(found) = found {
        weights.stored(name)?;
        return Ok(found);
    }
    let new = Arc::new(panels(weights, name)?);
    packed().push((identity, Arc::downgrade(&new)));
    Ok(new)
}

/// Packs a matrix, see [`Panels::pack`].
pub fn panels(weights: &Weights, name: &str) -> Result<Panels> {
    pack(weights, name, None)
}

/// Packs a matrix with its rows in `order`; `None` is a row of zeros.
pub fn reordered(weights: &Weights, name: &str, order: &[Option<usize>]) -> Result<Panels> {
    pack(weights, name, Some(order))
}

fn pack(weights: &Weights, name: &str, order: Option<&[Option<usize>]>) -> Result<Panels> {
    let stored = weights.stored(name)?;
    let [rows, inputs] = stored.shape[..] else {
        return Err(weights.bad(format!("{name} as a matrix"), format!("the shape {:?}", stored.shape)));
    };
    let pack_rows = |format, bytes: &[u8]| {
        let Some(order) = order else { return Panels::pack(format, rows, inputs, bytes) };
        let (width, mut moved) = (bytes.len() / rows, Vec::new());
        for row in order {
            match row {
                Some(row) => moved.extend_from_slice(&bytes[row * width..][..width]),
                None => moved.resize(moved.len() + width, 0),
            }
        }
        Panels::pack(format, order.len(), inputs, &moved)
    };
    let packed = if weights.rounds(stored) {
        pack_rows(Format::Q8_0, &weights.in_eight_bits(weights.device(), name)?.data()?)
    } else {
        pack_rows(stored.format, &weights.read(stored)?)
    };
    packed
        .map_err(|error| weights.bad(format!("{rows} x {inputs} finite numbers in {name}"), describe(&error)))
}

fn describe(error: &PackError) -> String {
    match error {
        PackError::Size { expected, found } => format!("{found} bytes where {expected} are needed"),
        PackError::NotFinite { row } => format!("infinity or NaN in row {row}"),
        PackError::Memory { bytes } => format!("out of memory: {bytes} bytes could not be allocated"),
    }
}

/// Loads a vector, padded with zeros to whole vectors. Tensors of more dimensions are flattened.
pub fn vector(weights: &Weights, name: &str) -> Result<Vec<f32>> {
    let mut numbers: Vec<f32> = weights.vector(name)?.flatten_all()?.to_vec1()?;
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(weights.bad(format!("finite numbers in {name}"), "infinity or NaN".to_owned()));
    }
    numbers.resize(numbers.len().next_multiple_of(LANES), 0.0);
    Ok(numbers)
}
