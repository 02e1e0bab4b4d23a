//! `foretoken-bench loading`: time and peak memory of loading a model.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use foretoken_cli::args::DeviceArgs;
use foretoken_cli::commands::bench::numbers::{median, number};
use foretoken_cli::error::Result;
use foretoken_cli::output;
use foretoken_forward::device::{self, Device};
use foretoken_forward::load;
use foretoken_model::ModelSource;
use serde::Serialize;

use crate::resident;

#[derive(Debug, clap::Args)]
pub struct LoadingArgs {
    /// Files or folders of models
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// Repeats after one that fills the page cache; figures are medians of these
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Figures of one model.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(rename = "type")]
    kind: &'static str,
    model: String,
    bytes: u64,
    /// Seconds to load all weights; the fastest and the slowest repeat follow.
    seconds: Option<f64>,
    fastest: Option<f64>,
    slowest: Option<f64>,
    gb_s: Option<f64>,
    /// Most bytes of memory above the file's size; `None` where the system does not measure them.
    peak_over_file_bytes: Option<i64>,
    /// Seconds to build the tokenizer.
    tokenizer_seconds: Option<f64>,
}

impl LoadingArgs {
    /// Measures one model after the other and prints each report as soon as it is done.
    ///
    /// # Errors
    /// Errors of opening and loading a model.
    pub fn run(&self) -> Result<()> {
        let device = device::open(self.device.device()).device;
        for model in &self.models {
            let report = self.measure(model, &device)?;
            if self.json {
                output::json(&report)?;
            } else {
                output::text(&format!("{}\n", report.line()))?;
            }
        }
        Ok(())
    }

    fn measure(&self, model: &Path, device: &Device) -> Result<Report> {
        let bytes = size(model);
        let mut seconds = Vec::new();
        let mut peak = None;
        for repeat in 0..=self.repeats {
            resident::forget_peak();
            let source = ModelSource::open(model)?;
            let start = Instant::now();
            let loaded = load(&source, device)?;
            if repeat > 0 {
                seconds.push(start.elapsed().as_secs_f64());
                peak = peak.max(resident::peak());
            }
            drop(loaded);
        }
        let source = ModelSource::open(model)?;
        let start = Instant::now();
        let tokenizer = source.tokenizer().is_ok().then(|| start.elapsed().as_secs_f64());
        let middle = median(seconds.clone());
        Ok(Report {
            kind: "bench_loading",
            model: model.display().to_string(),
            bytes,
            seconds: middle,
            fastest: seconds.iter().copied().reduce(f64::min),
            slowest: seconds.iter().copied().reduce(f64::max),
            gb_s: middle.map(|seconds| bytes as f64 / seconds / 1e9),
            peak_over_file_bytes: peak.map(|peak| peak as i64 - bytes as i64),
            tokenizer_seconds: tokenizer,
        })
    }
}

impl Report {
    fn line(&self) -> String {
        let over = self.peak_over_file_bytes.map(|bytes| bytes as f64 / 1e6);
        format!(
            "{}: {} MB in {} s ({} to {}), {} GB/s, peak {} MB above the file; tokenizer {} s",
            self.model,
            self.bytes / 1_000_000,
            number(self.seconds, 3),
            number(self.fastest, 3),
            number(self.slowest, 3),
            number(self.gb_s, 2),
            number(over, 0),
            number(self.tokenizer_seconds, 2),
        )
    }
}

/// Bytes of a model's file, or of all weight files of its folder.
fn size(model: &Path) -> u64 {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let Ok(folder) = fs::read_dir(model) else { return bytes(model) };
    let paths = folder.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "safetensors"))
        .map(|path| bytes(&path))
        .sum()
}
