//! Errors of the logits on a device and on the CPU, for every format of weights.

use std::path::Path;

use foretoken_forward::device::Device;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, TensorModel, Want, load};
use foretoken_library::STARTER;
use foretoken_model::ModelSource;
use foretoken_model::token::TokenId;
use serde::Serialize;

use super::models::load_on;
use crate::error::Result;
use crate::output;
use crate::random::mixture::Weights;
use crate::random::shape::SHAPES;
use crate::random::{RandomModel, file};
use crate::session::open;

/// Number of tokens to score.
const TOKENS: usize = 40;

/// Largest number of rows compared with one row.
const ROWS: usize = 17;

/// Errors of one model: root mean squares of differences, relative to that of the logits.
#[derive(Serialize)]
pub struct Accuracy {
    pub model: String,
    /// Error of the device against f32 throughout.
    pub device: f32,
    /// Error of the CPU engine against f32 throughout.
    pub cpu: f32,
    /// Difference between the device and the CPU engine, both of which round activations.
    pub between: f32,
    /// Difference between the device and the CPU engine as an absolute difference of logits.
    pub apart: f32,
    /// All logits have the CPU engine's bits.
    pub cpu_bits: bool,
    /// Numbers of rows, up to 17, whose first row has the bits of a pass over one row.
    pub same_bits: Vec<usize>,
}

/// Measures the starter, and a small random model of each format.
pub fn measure(device: &Device, folder: &Path, quick: bool) -> Result<Vec<Accuracy>> {
    output::note("comparing logits with those of the CPU");
    let formats = if quick { &Weights::ALL[..3] } else { &Weights::ALL[..] };
    let mut found = vec![of("starter".to_owned(), &open(STARTER)?, device)?];
    for &weights in formats {
        let model = RandomModel { shape: SHAPES[0], weights };
        let pair = file::make(model, folder)?;
        found.push(of(model.to_string(), &ModelSource::open(&pair.target)?, device)?);
    }
    Ok(found)
}

fn of(name: String, source: &ModelSource, device: &Device) -> Result<Accuracy> {
    let vocabulary = source.config()?.vocabulary;
    let tokens: Vec<TokenId> = (0..TOKENS).map(|i| (i * 97 % vocabulary) as TokenId).collect();
    let mut on_device = load_on(source, device)?;
    let exact = logits(&mut TensorModel::exact(source, &candle_core::Device::Cpu)?, &tokens)?;
    let on_cpu = logits(load(source, &Device::Cpu)?.as_mut(), &tokens)?;
    let found = logits(on_device.as_mut(), &tokens)?;
    Ok(Accuracy {
        model: name,
        device: error(&found, &exact),
        cpu: error(&on_cpu, &exact),
        between: error(&found, &on_cpu),
        apart: error(&found, &on_cpu) * size(&on_cpu),
        cpu_bits: bits(&found) == bits(&on_cpu),
        same_bits: same_bits(on_device.as_mut(), &tokens)?,
    })
}

/// The logits after every token.
fn logits(model: &mut dyn Model, tokens: &[TokenId]) -> Result<Vec<Vec<f32>>> {
    let pass = model.run(&TokenTree::chain(tokens.iter().copied()), &Want::all_rows())?;
    let found = pass.logits();
    let rows = (0..tokens.len()).map(|row| Ok(found.row(row).logits()?.to_vec())).collect();
    pass.keep(&[])?;
    rows
}

fn error(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    let square = |of: fn(f32, f32) -> f32| -> f32 {
        let pairs = found.iter().flatten().zip(expected.iter().flatten());
        pairs.map(|(&found, &expected)| of(found, expected).powi(2)).sum()
    };
    (square(|found, expected| found - expected) / square(|_, expected| expected)).sqrt()
}

fn bits(logits: &[Vec<f32>]) -> Vec<u32> {
    logits.iter().flatten().map(|logit| logit.to_bits()).collect()
}

/// Root mean square.
fn size(logits: &[Vec<f32>]) -> f32 {
    let squares: f32 = logits.iter().flatten().map(|logit| logit.powi(2)).sum();
    (squares / logits.iter().map(Vec::len).sum::<usize>() as f32).sqrt()
}

fn same_bits(model: &mut dyn Model, tokens: &[TokenId]) -> Result<Vec<usize>> {
    let (context, next) = tokens.split_at(TOKENS - ROWS);
    model.run(&TokenTree::chain(context.iter().copied()), &Want::nothing())?;
    let mut first_row = |rows: usize| -> Result<Vec<f32>> {
        let tree = TokenTree::chain(next[..rows].iter().copied());
        let pass = model.run(&tree, &Want::all_rows())?;
        let logits = pass.logits().row(0).logits()?.to_vec();
        pass.keep(&[])?;
        Ok(logits)
    };
    let one = first_row(1)?;
    let mut same = Vec::new();
    for rows in 2..=ROWS {
        if first_row(rows)? == one {
            same.push(rows);
        }
    }
    Ok(same)
}
