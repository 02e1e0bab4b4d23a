//! What of a file's weights is packed, and what is a vector.

use super::panels::{Format, Panels, Unfit};
use super::simd::LANES;
use crate::error::Result;
use crate::model::Weights;

/// A norm that changes no size, filled up as others are.
pub fn ones(length: usize) -> Vec<f32> {
    let mut ones = vec![1.0; length];
    ones.resize(length.next_multiple_of(LANES), 0.0);
    ones
}

pub fn panels(weights: &Weights, name: &str) -> Result<Panels> {
    arranged(weights, name, None)
}

/// The same with the rows in this order, and rows of zeros where there is `None`.
pub fn reordered(weights: &Weights, name: &str, order: &[Option<usize>]) -> Result<Panels> {
    arranged(weights, name, Some(order))
}

fn arranged(weights: &Weights, name: &str, order: Option<&[Option<usize>]>) -> Result<Panels> {
    let stored = weights.stored(name)?;
    let [rows, inputs] = stored.shape[..] else {
        return Err(weights.bad(format!("{name} as a matrix"), format!("the shape {:?}", stored.shape)));
    };
    let pack = |format, bytes: &[u8]| {
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
        pack(Format::Q8_0, &weights.in_eight_bits(weights.device(), name)?.data()?)
    } else {
        pack(stored.format, &weights.read(stored)?)
    };
    packed.map_err(|unfit| {
        weights.bad(format!("{rows} times {inputs} finite numbers in {name}"), describe(&unfit))
    })
}

fn describe(unfit: &Unfit) -> String {
    match unfit {
        Unfit::Size { expected, found } => format!("{found} bytes where {expected} are needed"),
        Unfit::NotFinite { row } => format!("infinity or NaN in row {row}"),
        Unfit::Memory { bytes } => format!("no memory: the system did not give {bytes} bytes"),
    }
}

/// A vector, filled up with zeros to whole vectors; of more dimensions all of it.
pub fn vector(weights: &Weights, name: &str) -> Result<Vec<f32>> {
    let mut numbers: Vec<f32> = weights.vector(name)?.flatten_all()?.to_vec1()?;
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(weights.bad(format!("finite numbers in {name}"), "infinity or NaN".to_owned()));
    }
    numbers.resize(numbers.len().next_multiple_of(LANES), 0.0);
    Ok(numbers)
}
