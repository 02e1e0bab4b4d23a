//! Loading of weights from a file: matrices packed as panels, and vectors.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use foretoken_model::Weights;
use foretoken_model::error::{Error, Result};
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
    let rounds = weights.rounds(stored);
    let format = if rounds { Format::Q8_0 } else { stored.format };
    let packed = if order.is_none() && stored.gathered.is_none() {
        Panels::pack_slices(format, rows, inputs, |rows, pack| {
            if rounds {
                weights.read_rows_in_eight_bits(stored, rows, pack)??;
            } else {
                weights.read_rows(stored, rows, pack)??;
            }
            Ok(())
        })
    } else {
        let bytes = if rounds {
            weights.in_eight_bits(weights.device(), name)?.data()?.into_owned()
        } else {
            weights.read(stored)?
        };
        match order {
            Some(order) => {
                let bytes = reorder(&bytes, rows, order);
                Panels::pack(format, order.len(), inputs, &bytes)
            }
            None => Panels::pack(format, rows, inputs, &bytes),
        }
        .map_err(Failure::Pack)
    };
    let factor = weights.factor(stored)?;
    packed.map(|panels| panels.scaled(factor)).map_err(|failure| match failure {
        Failure::Read(error) => error,
        Failure::Pack(error) => {
            weights.bad(format!("{rows} x {inputs} finite numbers in {name}"), describe(&error))
        }
    })
}

/// Reason why a tensor could not be loaded as panels.
enum Failure {
    Read(Error),
    Pack(PackError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Read(error)
    }
}

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        Self::Pack(error)
    }
}

/// Copies `rows` rows into `order`.
fn reorder(bytes: &[u8], rows: usize, order: &[Option<usize>]) -> Vec<u8> {
    let (width, mut moved) = (bytes.len() / rows.max(1), Vec::new());
    for row in order {
        match row {
            Some(row) => moved.extend_from_slice(&bytes[row * width..][..width]),
            None => moved.resize(moved.len() + width, 0),
        }
    }
    moved
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
