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
    readable: [Buffer; 2],
}

/// Requested logits of a pass over `tokens`.
pub struct LogitRequest<'a> {
    pub tokens: &'a [TokenId],
    /// Number of rows.
    pub rows: usize,
    /// Tokens that rows cover, from the first.
    pub vocabulary: usize,
    pub subset: LogitSubset,
    /// Further tokens whose logits are requested, ascending.
    pub penalised: &'a [TokenId],
}

impl LogitRequest<'_> {
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
            readable: [device.readable(4 * SCORED * words)?, device.readable(16)?],
        })
    }

    /// Encodes the sketches of the pass's logits.
    pub fn sketch(&self, pass: &mut Dispatches, request: &LogitRequest<'_>) {
        let scale = Sketch::scale(request.subset).unwrap_or(1.0);
        let words = [request.vocabulary, self.stride, request.words(), request.tokens.len()]
            .map(|number| number as u32);
        let words = [&words[..], &[scale.to_bits()]].concat();
        self.step.run(pass, &words, [request.stretches(), request.rows]);
    }

    /// Encodes the copy to a readable buffer.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room for it.
    pub fn copy_out(&mut self, recording: &mut Recording<'_>, request: &LogitRequest<'_>) -> Result<()> {
        let (from, words) = match request.subset {
            LogitSubset::Everything => (&self.logits, request.rows * self.stride),
            _ => (&self.found, request.rows * request.words()),
        };
        self.device.grow(&mut self.readable[0], words)?;
        recording.copy(from, &self.readable[0], 0, 4 * words as u64);
        Ok(())
    }

    /// Waits for the requested logits. Whole rows are appended to those of `before`.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn collect(&mut self, request: &LogitRequest<'_>, before: Scores) -> Result<Scores> {
        match request.subset {
            LogitSubset::Everything => self.rows(request, before),
            _ => self.sketches(request),
        }
    }

    fn rows(&self, request: &LogitRequest<'_>, before: Scores) -> Result<Scores> {
        let (mut logits, mut peaks) = match before {
            Scores::Rows(logits, peaks) => (logits, peaks),
            Scores::Sketches(_) => (Vec::new(), Vec::new()),
        };
        let before = logits.len();
        logits.extend(self.device.fetch(&self.readable[0], request.rows * self.stride)?);
        let rows = logits[before..].chunks_exact_mut(self.stride);
        peaks.extend(rows.map(|row| peak(row, request.vocabulary)));
        Ok(Scores::Rows(logits, peaks))
    }

    /// Sketches, with their likely slices.
    fn sketches(&mut self, request: &LogitRequest<'_>) -> Result<Scores> {
        let words = request.words();
        let found = self.device.fetch_words(&self.readable[0], request.rows * words)?;
        let sketch = |(row, words): (usize, &[u32])| {
            let row = Row {
                device: Arc::clone(&self.device),
                logits: self.logits.clone(),
                range: row * self.stride..row * self.stride + request.vocabulary,
            };
            Sketch::new(Box::new(row), request.vocabulary, request.decode(words))
        };
        let mut sketches: Vec<_> = found.chunks_exact(words).enumerate().map(sketch).collect();
        self.fetch_likely(&mut sketches, request)?;
        Ok(Scores::Sketches(sketches))
    }

    /// Fetches likely slices, except of rows with so many that fetching whole rows takes no longer.
    fn fetch_likely(&mut self, sketches: &mut [Sketch], request: &LogitRequest<'_>) -> Result<()> {
        let few = |slices: &Vec<usize>| slices.len() <= request.slices().div_ceil(4);
        let likely = sketches
            .iter()
            .map(|sketch| Some(sketch.likely_slices(request.subset, request.penalised)).filter(few));
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
        self.device.grow(&mut self.readable[1], count.next_power_of_two())?;
        let lengths: Vec<usize> = ranges.iter().map(Range::len).collect();
        let mut found = self.device.download(&self.logits, &ranges, &self.readable[1])?.into_iter();
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
        self.device.download(&self.logits, std::slice::from_ref(&self.range), &to)
    }
}
