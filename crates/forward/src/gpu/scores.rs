//! Logits of a pass: whole rows, or sketches whose slices and rows are fetched when needed.

use std::ops::Range;
use std::sync::Arc;

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::recording::Recording;
use super::state::{ROWS, SCORED};
use super::step::Step;
use crate::cpu::reference::peak;
use crate::cpu::simd::LANES;
use crate::sketch::{DeviceRow, Sketch, SketchData};
use crate::slices::{SLICE, STRETCH, sum_of_parts};
use crate::{LogitSubset, Logits, Peak};

/// Logits of the last pass.
pub enum Scores {
    /// Values `[rows, stride]`, and the peak of each row.
    Rows(Vec<f32>, Vec<Peak>),
    Sketches(Vec<Sketch>),
}

impl Scores {
    /// Scores of no rows.
    pub fn none() -> Self {
        Self::Sketches(Vec::new())
    }
}

/// Sketches logits on the device and downloads requested ones.
pub struct Scorer {
    device: Arc<GpuDevice>,
    step: Step,
    logits: Buffer, // [rows, stride]
    found: Buffer,  // [rows, words]
    stride: usize,
    /// Readable buffers for sketches and for likely slices.
    returning: [Buffer; 2],
}

/// Requested logits of a pass over `tokens`.
pub struct Asked<'a> {
    pub tokens: &'a [TokenId],
    /// Number of rows.
    pub rows: usize,
    /// Tokens that rows cover, from the first.
    pub vocabulary: usize,
    pub subset: LogitSubset,
    /// Further tokens whose logits are requested, ascending.
    pub penalised: &'a [TokenId],
}

impl Asked<'_> {
    fn slices(&self) -> usize {
        self.vocabulary.div_ceil(SLICE)
    }

    fn stretches(&self) -> usize {
        self.vocabulary.div_ceil(STRETCH)
    }

    /// Words per row.
    fn words(&self) -> usize {
        2 * self.slices() + 3 * self.stretches() + self.tokens.len()
    }

    /// Decodes the words of a row.
    fn decode(&self, words: &[u32]) -> SketchData {
        let numbers = |words: &[u32]| words.iter().map(|&word| f32::from_bits(word)).collect::<Vec<_>>();
        let (maxima, rest) = words.split_at(self.slices());
        let (leaders, rest) = rest.split_at(self.slices());
        let (stretches, logits) = rest.split_at(3 * self.stretches());
        let (maxima, stretches) = (numbers(maxima), numbers(stretches));
        let largest = maxima.iter().copied().fold(f32::MIN, f32::max);
        let first = maxima.iter().position(|&maximum| maximum == largest).unwrap_or(0);
        let sum = |which: usize, scale| {
            let sums = stretches.chunks_exact(3).map(|stretch| (stretch[0], stretch[1 + which]));
            sum_of_parts(sums, largest, scale)
        };
        let logits = self.tokens.iter().copied().zip(numbers(logits));
        SketchData {
            peak: Peak { token: leaders[first], largest, sum: sum(0, 1.0) },
            scaled: Sketch::scale(self.subset).map(|scale| (scale, sum(1, scale))),
            logits: logits.filter(|&(token, _)| (token as usize) < self.vocabulary).collect(),
            maxima,
            leaders: leaders.to_vec(),
        }
    }
}

impl Scorer {
    /// Binds the sketch kernel to `logits`, `[rows, vocabulary in whole vectors]`, and the pass's
    /// `tokens`.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room, or its driver rejects the kernel.
    pub fn new(device: &Arc<GpuDevice>, logits: &Buffer, tokens: &Buffer, vocabulary: usize) -> Result<Self> {
        let words = 2 * vocabulary.div_ceil(SLICE) + 3 * vocabulary.div_ceil(STRETCH) + ROWS;
        let found = device.buffer(4 * SCORED * words)?;
        Ok(Self {
            device: Arc::clone(device),
            step: Step::new(device, Kernel::Sketch, &[logits, tokens, &found])?,
            logits: logits.clone(),
            found,
            stride: vocabulary.next_multiple_of(LANES),
            returning: [device.readable(4 * SCORED * words)?, device.readable(16)?],
        })
    }

    /// Encodes the sketches of the pass's logits.
    pub fn sketch(&self, pass: &mut Dispatches, asked: &Asked<'_>) {
        let scale = Sketch::scale(asked.subset).unwrap_or(1.0);
        let words =
            [asked.vocabulary, self.stride, asked.words(), asked.tokens.len()].map(|number| number as u32);
        let words = [&words[..], &[scale.to_bits()]].concat();
        self.step.run(pass, &words, (asked.stretches(), asked.rows));
    }

    /// Encodes the copy to a readable buffer.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room for it.
    pub fn bring_back(&mut self, recording: &mut Recording<'_>, asked: &Asked<'_>) -> Result<()> {
        let (from, words) = match asked.subset {
            LogitSubset::Everything => (&self.logits, asked.rows * self.stride),
            _ => (&self.found, asked.rows * asked.words()),
        };
        self.device.grow(&mut self.returning[0], words)?;
        recording.copy(from, (&self.returning[0], 0), 4 * words as u64);
        Ok(())
    }

    /// Waits for the requested logits. Whole rows are appended to those of `before`.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn collect(&mut self, asked: &Asked<'_>, before: Scores) -> Result<Scores> {
        match asked.subset {
            LogitSubset::Everything => self.rows(asked, before),
            _ => self.sketches(asked),
        }
    }

    fn rows(&self, asked: &Asked<'_>, before: Scores) -> Result<Scores> {
        let (mut logits, mut peaks) = match before {
            Scores::Rows(logits, peaks) => (logits, peaks),
            Scores::Sketches(_) => (Vec::new(), Vec::new()),
        };
        let before = logits.len();
        logits.extend(self.device.fetch(&self.returning[0], asked.rows * self.stride)?);
        let rows = logits[before..].chunks_exact_mut(self.stride);
        peaks.extend(rows.map(|row| peak(row, asked.vocabulary)));
        Ok(Scores::Rows(logits, peaks))
    }

    /// Sketches, with their likely slices.
    fn sketches(&mut self, asked: &Asked<'_>) -> Result<Scores> {
        let words = asked.words();
        let found = self.device.fetch_words(&self.returning[0], asked.rows * words)?;
        let sketch = |(row, words): (usize, &[u32])| {
            let row = Row {
                device: Arc::clone(&self.device),
                logits: self.logits.clone(),
                range: row * self.stride..row * self.stride + asked.vocabulary,
            };
            Sketch::new(Box::new(row), asked.vocabulary, asked.decode(words))
        };
        let mut sketches: Vec<_> = found.chunks_exact(words).enumerate().map(sketch).collect();
        self.fetch_likely(&mut sketches, asked)?;
        Ok(Scores::Sketches(sketches))
    }

    /// Fetches likely slices, except of rows with so many that fetching whole rows takes no longer.
    fn fetch_likely(&mut self, sketches: &mut [Sketch], asked: &Asked<'_>) -> Result<()> {
        let few = |slices: &Vec<usize>| slices.len() <= asked.slices().div_ceil(4);
        let likely = sketches
            .iter()
            .map(|sketch| Some(sketch.likely_slices(asked.subset, asked.penalised)).filter(few));
        let likely: Vec<Vec<usize>> = likely.map(Option::unwrap_or_default).collect();
        let range = |row: usize, slice: usize| {
            let start = row * self.stride;
            start + slice * SLICE..(start + slice * SLICE + SLICE).min(start + self.stride)
        };
        let of_row = |(row, slices): (usize, &Vec<usize>)| -> Vec<Range<usize>> {
            slices.iter().map(|&slice| range(row, slice)).collect()
        };
        let ranges: Vec<Range<usize>> = likely.iter().enumerate().flat_map(of_row).collect();
        let count: usize = ranges.iter().map(Range::len).sum();
        if count == 0 {
            return Ok(());
        }
        self.device.grow(&mut self.returning[1], count.next_power_of_two())?;
        let lengths: Vec<usize> = ranges.iter().map(Range::len).collect();
        let mut found = self.device.bring(&self.logits, &ranges, &self.returning[1])?.into_iter();
        let mut lengths = lengths.into_iter();
        for (sketch, slices) in sketches.iter_mut().zip(likely) {
            let numbers = |slice| (slice, found.by_ref().take(lengths.next().unwrap_or(0)).collect());
            sketch.add_slices(slices.into_iter().map(numbers));
        }
        Ok(())
    }

    /// Rows of the first `vocabulary` tokens.
    pub fn logits<'a>(&self, scores: &'a Scores, vocabulary: usize) -> Logits<'a> {
        match scores {
            Scores::Rows(logits, peaks) => Logits::new(logits, vocabulary, self.stride, peaks),
            Scores::Sketches(sketches) => Logits::on_device(sketches),
        }
    }
}

/// A row on the device, valid until the model's next pass.
#[derive(Debug)]
struct Row {
    device: Arc<GpuDevice>,
    logits: Buffer,
    range: Range<usize>,
}

impl DeviceRow for Row {
    fn fetch(&self) -> Result<Vec<f32>> {
        let to = self.device.readable(4 * self.range.len())?;
        self.device.bring(&self.logits, std::slice::from_ref(&self.range), &to)
    }
}
