//! `foretoken-bench gpu-kernels`: times of every kernel in a pass of the GPU engine, by the
//! device's own clock.

use std::path::PathBuf;
use std::time::Instant;

use foretoken_cli::args::DeviceArgs;
use foretoken_cli::commands::bench::numbers::median;
use foretoken_cli::error::{Error, Result};
use foretoken_cli::output;
use foretoken_cli::random::{FolderArgs, RandomModel, file};
use foretoken_forward::device::{self, Device, Opened};
use foretoken_forward::gpu::{GpuDevice, KernelTime, profiled};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{LogitSubset, Model, Want, load};
use foretoken_model::ModelSource;
use foretoken_model::token::TokenId;
use serde::Serialize;

/// Passes per measurement: times on the computer's clock are medians of these.
const REPEATS: usize = 7;

/// Tokens per pass while the cache is filled.
const CHUNK: usize = 512;

#[derive(Debug, clap::Args)]
pub struct KernelArgs {
    /// Models with random weights, such as `8B:Q4_K_M`
    #[arg(value_name = "SHAPE:WEIGHTS", value_delimiter = ',', required_unless_present = "model")]
    models: Vec<RandomModel>,
    /// A model's file instead
    #[arg(long, value_name = "FILE", conflicts_with = "models")]
    model: Option<PathBuf>,
    /// Rows per pass
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8")]
    rows: Vec<usize>,
    /// Tokens in the cache before the pass
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "64,2048")]
    positions: Vec<usize>,
    #[command(flatten)]
    folder: FolderArgs,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// One kind of pass.
#[derive(Serialize)]
struct Measured {
    model: String,
    device: String,
    rows: usize,
    positions: usize,
    /// Milliseconds of a pass on the computer's clock.
    ms: f64,
    /// Milliseconds of a pass's kernels on the device's clock.
    kernels_ms: f64,
    kernels: Vec<Kernel>,
}

/// One kernel in a pass.
#[derive(Serialize)]
struct Kernel {
    kernel: String,
    /// Workgroups in x and y.
    groups: [usize; 2],
    dispatches: usize,
    /// Microseconds of all its dispatches in one pass.
    micros: f64,
}

impl KernelArgs {
    /// Measures one model after the other.
    ///
    /// # Errors
    /// `Error::Kernels` if the device is no GPU of this engine, and those of loading and running.
    pub fn run(&self) -> Result<()> {
        let opened = device::open(self.device.device());
        let Device::Gpu(gpu) = &opened.device else {
            return Err(Error::Kernels(opened.label.to_string()));
        };
        if let Some(path) = &self.model {
            return self.measure(&path.display().to_string(), &ModelSource::open(path)?, &opened, gpu);
        }
        let folder = self.folder.path();
        for &model in &self.models {
            let pair = file::make(model, &folder)?;
            self.measure(&model.to_string(), &ModelSource::open(&pair.target)?, &opened, gpu)?;
        }
        Ok(())
    }

    fn measure(&self, name: &str, source: &ModelSource, opened: &Opened, gpu: &GpuDevice) -> Result<()> {
        output::note(format_args!("measuring {name}"));
        let mut target = load(source, &opened.device)?;
        for &positions in &self.positions {
            fill(target.as_mut(), positions)?;
            for &rows in &self.rows {
                let (ms, times) = pass(target.as_mut(), rows, gpu)?;
                let kernels: Vec<_> = times.into_iter().map(Kernel::of).collect();
                let kernels_ms = kernels.iter().map(|kernel| kernel.micros).sum::<f64>() / 1e3;
                let (model, device) = (name.to_owned(), opened.label.to_string());
                let measured = Measured { model, device, rows, positions, ms, kernels_ms, kernels };
                if self.json { output::json(&measured) } else { output::text(&measured.table()) }?;
            }
        }
        Ok(())
    }
}

impl Kernel {
    /// Averages over the repeats.
    fn of(time: KernelTime) -> Self {
        let KernelTime { kernel, groups, dispatches, micros } = time;
        Self { kernel, groups, dispatches: dispatches / REPEATS, micros: micros / REPEATS as f64 }
    }
}

impl Measured {
    fn table(&self) -> String {
        let Self { model, rows, positions, ms, kernels_ms, .. } = self;
        let mut lines = vec![
            format!(
                "{model}, {rows} rows after {positions} tokens: {ms:.2} ms, {kernels_ms:.2} ms of them in kernels"
            ),
            "kernel                           workgroups  dispatches        µs  share".to_owned(),
        ];
        for Kernel { kernel, groups: [across, down], dispatches, micros } in &self.kernels {
            let share = micros / kernels_ms / 10.0;
            let groups = format!("{across}x{down}");
            lines.push(format!("{kernel:<32} {groups:>10} {dispatches:>11} {micros:>9.1} {share:>5.1}%"));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Tokens that are as good as any for a model with random weights.
fn tokens(target: &dyn Model) -> impl Iterator<Item = TokenId> + use<> {
    let vocabulary = target.config().vocabulary;
    (0..).map(move |index: usize| (index * 97 % vocabulary) as TokenId)
}

fn fill(target: &mut dyn Model, positions: usize) -> Result<()> {
    target.truncate(0);
    let tokens: Vec<_> = tokens(target).take(positions).collect();
    for chunk in tokens.chunks(CHUNK) {
        target.run(&TokenTree::chain(chunk.iter().copied()), &Want::nothing())?;
    }
    target.wait()?;
    Ok(())
}

/// Milliseconds of a pass over `rows` rows, and the times of its kernels in all repeats.
fn pass(target: &mut dyn Model, rows: usize, gpu: &GpuDevice) -> Result<(f64, Vec<KernelTime>)> {
    let tree = TokenTree::chain(tokens(target).take(rows));
    let once = |target: &mut dyn Model| -> Result<f64> {
        let start = Instant::now();
        target.run(&tree, &Want::all_rows().subset(LogitSubset::Peaks))?.keep(&[])?;
        target.wait()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    once(target)?;
    let times = (0..REPEATS).map(|_| once(target)).collect::<Result<Vec<_>>>()?;
    let kernels = profiled(gpu, || (0..REPEATS).try_for_each(|_| once(target).map(drop)))?;
    Ok((median(times).unwrap_or_default(), kernels))
}
