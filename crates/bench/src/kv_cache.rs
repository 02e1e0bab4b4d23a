//! `foretoken-bench kv-cache`: a model with keys and values in 16 and in 8 bits, over the same
//! texts: memory, time of passes, and how far the predictions of 8 bits differ.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use foretoken_cli::commands::bench::numbers::{median, number};
use foretoken_cli::error::{Error, Result};
use foretoken_cli::output;
use foretoken_forward::device::Device;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{LogitSubset, Model, Want, load};
use foretoken_model::token::TokenId;
use foretoken_model::{KvDtype, ModelSource, Special};
use serde::Serialize;

/// Tokens in a pass that reads a text.
const CHUNK: usize = 64;

/// Last rows of each length that are compared.
const COMPARED: usize = 256;

/// Tokens of a greedy continuation.
const CONTINUED: usize = 64;

/// Repeats of each pass that is timed.
const REPEATS: usize = 11;

#[derive(Debug, clap::Args)]
pub struct KvCacheArgs {
    /// Model
    model: PathBuf,
    /// Texts, each longer than the greatest length
    #[arg(required = true, value_name = "FILE")]
    texts: Vec<PathBuf>,
    /// Lengths in tokens at which both are compared
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "512,4096,8000")]
    lengths: Vec<usize>,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

/// Figures at one length. Pairs are of 16 and of 8 bits.
#[derive(Debug, Default, Serialize)]
struct Figures {
    length: usize,
    texts: usize,
    cache_bytes: [usize; 2],
    perplexity: [f64; 2],
    /// Kullback-Leibler divergence of 8 bits from 16: mean and largest.
    divergence: [f64; 2],
    /// Share of rows whose likeliest token is the same.
    agreement: f64,
    /// Share of greedy continuations that is equal up to the first difference.
    continued: f64,
    /// Milliseconds of a pass over one row and over eight.
    one_row_ms: [f64; 2],
    eight_rows_ms: [f64; 2],
}

impl KvCacheArgs {
    /// Compares both caches at each length.
    ///
    /// # Errors
    /// Errors of the model and of reading the texts.
    pub fn run(&self) -> Result<()> {
        let source = ModelSource::open(&self.model)?;
        let dtypes = [KvDtype::F16, KvDtype::Int8];
        let [f16, int8] = dtypes.map(|dtype| load(&source.clone().with_kv_dtype(dtype), &Device::Cpu));
        let mut models = [f16?, int8?];
        let tokenizer = source.tokenizer()?;
        let mut sums: Vec<Sums> = self.lengths.iter().map(|_| Sums::default()).collect();
        for path in &self.texts {
            let read = |source| Error::Read { path: path.clone(), source };
            let text = fs::read_to_string(path).map_err(read)?;
            let tokens = tokenizer.encode(&text, Special::Ignore)?;
            for model in &mut models {
                model.truncate(0);
            }
            for (&length, sums) in self.lengths.iter().zip(&mut sums) {
                if tokens.len() <= length || source.config()?.context <= length + CONTINUED {
                    output::note(format_args!("{} is too short for {length} tokens", path.display()));
                    break;
                }
                sums.add(&mut models, &tokens[..=length])?;
                sums.time(&mut models, &tokens[..=length])?;
            }
        }
        for (length, sums) in self.lengths.iter().zip(sums) {
            let figures = sums.figures(*length);
            if self.json { output::json(&figures)? } else { output::line(figures.line())? }
        }
        Ok(())
    }
}

/// Sums over texts.
#[derive(Default)]
struct Sums {
    texts: usize,
    rows: usize,
    cache_bytes: [usize; 2],
    surprise: [f64; 2],
    divergence: f64,
    largest: f64,
    agreeing: usize,
    continued: usize,
    /// Times of one row and of eight.
    times: [[Vec<f64>; 2]; 2],
}

impl Sums {
    /// Reads the text up to its last token, compares the last rows, and continues it.
    fn add(&mut self, models: &mut [Box<dyn Model>; 2], tokens: &[TokenId]) -> Result<()> {
        let length = tokens.len() - 1;
        let compared = length - COMPARED.min(length);
        while models[0].cached().len() < length {
            let at = models[0].cached().len();
            // A chunk ends where the compared rows begin.
            let end = if at < compared { compared } else { length };
            let chunk = &tokens[at..end.min(at + CHUNK)];
            let want = if at < compared { Want::nothing() } else { Want::all_rows() };
            let mut rows = [Vec::new(), Vec::new()];
            for (model, rows) in models.iter_mut().zip(&mut rows) {
                let pass = model.run(&TokenTree::chain(chunk.iter().copied()), &want)?;
                for row in (0..chunk.len()).filter(|_| at >= compared) {
                    rows.push(log_softmax(pass.logits().row(row).logits()?));
                }
            }
            for (row, (f16, int8)) in rows[0].iter().zip(&rows[1]).enumerate() {
                self.compare(f16, int8, tokens[at + row + 1] as usize);
            }
        }
        for (bytes, model) in self.cache_bytes.iter_mut().zip(&*models) {
            *bytes = model.park().map_or(0, |text| text.buffers().map(|(_, bytes)| bytes).sum());
        }
        let mut continuations = Vec::new();
        for model in models.iter_mut() {
            continuations.push(continuation(model.as_mut(), tokens[length])?);
            model.truncate(length);
        }
        let same = continuations[0].iter().zip(&continuations[1]).take_while(|(one, other)| one == other);
        (self.continued, self.texts) = (self.continued + same.count(), self.texts + 1);
        Ok(())
    }

    fn compare(&mut self, f16: &[f64], int8: &[f64], next: usize) {
        self.rows += 1;
        self.surprise[0] -= f16[next];
        self.surprise[1] -= int8[next];
        let divergence: f64 = f16.iter().zip(int8).map(|(p, q)| p.exp() * (p - q)).sum();
        self.divergence += divergence;
        self.largest = self.largest.max(divergence);
        let likeliest =
            |row: &[f64]| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(id, _)| id);
        self.agreeing += usize::from(likeliest(f16) == likeliest(int8));
    }

    /// Times passes after the text in turn, as rounds of a reply run them.
    fn time(&mut self, models: &mut [Box<dyn Model>; 2], tokens: &[TokenId]) -> Result<()> {
        for _ in 0..REPEATS {
            for (rows, of_rows) in [1, 8].into_iter().zip(&mut self.times) {
                let tree = TokenTree::chain(tokens.iter().rev().take(rows).copied());
                for (model, times) in models.iter_mut().zip(of_rows) {
                    // The pass after one over as many rows is measured.
                    for repeat in 0..2 {
                        let start = Instant::now();
                        let pass = model.run(&tree, &Want::all_rows().subset(LogitSubset::Peaks))?;
                        let ms = start.elapsed().as_secs_f64() * 1e3;
                        pass.keep(&[])?;
                        times.extend((repeat > 0).then_some(ms));
                    }
                }
            }
        }
        Ok(())
    }

    fn figures(self, length: usize) -> Figures {
        let (rows, texts) = (self.rows as f64, self.texts as f64);
        let [one_row_ms, eight_rows_ms] =
            self.times.map(|times| times.map(|times| median(times).unwrap_or_default()));
        Figures {
            length,
            texts: self.texts,
            cache_bytes: self.cache_bytes,
            perplexity: self.surprise.map(|surprise| (surprise / rows).exp()),
            divergence: [self.divergence / rows, self.largest],
            agreement: self.agreeing as f64 / rows,
            continued: self.continued as f64 / texts / CONTINUED as f64,
            one_row_ms,
            eight_rows_ms,
        }
    }
}

impl Figures {
    fn line(&self) -> String {
        let ratio = |[of, to]: [f64; 2]| number(Some(to / of), 3);
        let [one, eight] = [self.one_row_ms, self.eight_rows_ms];
        format!(
            "{} tokens, {} texts: cache {} of {} bytes ({}); perplexity {:.4}, {:.4} ({}); divergence {:.5}, at most \
             {:.4}; same likeliest token {:.4}, greedy {:.3}; one row {:.2}, {:.2} ms, eight rows {:.2}, {:.2} ms \
             ({:.2}, {:.2} of one)",
            self.length,
            self.texts,
            self.cache_bytes[1],
            self.cache_bytes[0],
            ratio(self.cache_bytes.map(|bytes| bytes as f64)),
            self.perplexity[0],
            self.perplexity[1],
            ratio(self.perplexity),
            self.divergence[0],
            self.divergence[1],
            self.agreement,
            self.continued,
            one[0],
            one[1],
            eight[0],
            eight[1],
            eight[0] / one[0],
            eight[1] / one[1],
        )
    }
}

/// Logarithms of the probabilities of a row.
fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit - largest).exp()).sum();
    logits.iter().map(|&logit| f64::from(logit - largest) - sum.ln()).collect()
}

/// Greedy continuation after `last`, which is not cached yet.
fn continuation(model: &mut dyn Model, last: TokenId) -> Result<Vec<TokenId>> {
    let (mut token, mut tokens) = (last, Vec::new());
    for _ in 0..CONTINUED {
        let pass = model.run(&TokenTree::chain([token]), &Want::all_rows().subset(LogitSubset::Peaks))?;
        token = pass.logits().row(0).likeliest();
        tokens.push(token);
    }
    Ok(tokens)
}
