//! Runs the target over texts and stores the training data of a head: for each position the input
//! states of some layers, and the target's most likely next tokens with their probabilities.
//!
//! Arrays in a folder, little-endian, one row for each token of all texts: `tokens.u32`,
//! `states.f16` (a row has the layers' states one after the other), `likeliest.u32` and
//! `probabilities.f16`; and `texts.json` with the numbers of rows and prompt rows of each text, and
//! the widths.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{CpuModel, LogitSubset, Model, Taps, Want};
use foretoken_model::ModelSource;
use half::f16;
use serde::Serialize;

use crate::text::{Text, lines};

/// Tokens per pass.
const CHUNK: usize = 64;

/// Description of the arrays.
#[derive(Serialize)]
struct Index {
    hidden: usize,
    vocabulary: usize,
    layers: Vec<usize>,
    likeliest: usize,
    /// For each text its number of rows, and how many of them are the prompt's.
    texts: Vec<(usize, usize)>,
}

/// Stores the states; see the module.
///
/// # Errors
/// Returns an error if a file cannot be read or written, or the target fails.
pub fn states(
    model: &Path,
    texts: &Path,
    folder: &Path,
    layers: Vec<usize>,
    likeliest: usize,
) -> Result<(), Box<dyn Error>> {
    let mut target = CpuModel::load(&ModelSource::open(model)?)?;
    let texts: Vec<Text> = lines(texts)?;
    fs::create_dir_all(folder)?;
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    let (mut tokens, mut states) = (create("tokens.u32")?, create("states.f16")?);
    let (mut best, mut probabilities) = (create("likeliest.u32")?, create("probabilities.f16")?);
    let taps = Taps { entering: layers.clone(), ..Taps::default() };
    let subset = LogitSubset::Likely { temperature: 1.0, margin: 0.0, top: likeliest };
    for (number, text) in texts.iter().enumerate() {
        target.truncate(0);
        for chunk in text.tokens.chunks(CHUNK) {
            let tree = TokenTree::chain(chunk.iter().copied());
            let pass = target.run(&tree, &Want::all_rows().subset(subset).features(&taps))?;
            let (logits, features) = (pass.logits(), pass.features().ok_or("the target provides no states")?);
            for (row, &token) in chunk.iter().enumerate() {
                tokens.write_all(&token.to_le_bytes())?;
                for state in features.row(row) {
                    states.write_all(&f16::from_f32(*state).to_le_bytes())?;
                }
                let row = logits.row(row);
                for (token, _) in row.top(likeliest)? {
                    best.write_all(&token.to_le_bytes())?;
                    probabilities.write_all(&f16::from_f32(row.probability(token)?).to_le_bytes())?;
                }
            }
        }
        if number % 500 == 499 {
            eprintln!("{} of {} texts", number + 1, texts.len());
        }
    }
    for array in [&mut tokens, &mut states, &mut best, &mut probabilities] {
        array.flush()?;
    }
    let config = target.config();
    let index = Index {
        hidden: config.hidden,
        vocabulary: config.vocabulary,
        layers,
        likeliest,
        texts: texts.iter().map(|text| (text.tokens.len(), text.prompt)).collect(),
    };
    fs::write(folder.join("texts.json"), serde_json::to_string(&index)?)?;
    Ok(())
}
