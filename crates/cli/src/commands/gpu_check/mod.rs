//! `gpu-check`: checks whether a device computes what the CPU computes, and measures how fast. It
//! passes no judgement; the table shows the targets beside the results.

mod accuracy;
mod models;
mod speed;
mod table;
mod texts;

use std::process::ExitCode;

use foretoken_forward::device::{self, Device, DeviceChoice, Opened};
use foretoken_forward::gpu::{Comparison, comparisons};
use serde::Serialize;

use crate::args::DeviceArgs;
use crate::error::{Error, Result};
use crate::output;
use crate::random::{FolderArgs, RandomModel};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Models with random weights to measure, each a shape and a weight format, such as
    /// `0.5B:Q4_K_M`
    #[arg(
        long,
        value_name = "SHAPE:WEIGHTS",
        value_delimiter = ',',
        default_value = "1.1B:Q4_K_M,8B:Q4_K_M,8B:Q8_0"
    )]
    models: Vec<RandomModel>,
    /// Use tiny models, short texts and small copies: a test of this command more than of the
    /// device
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    folder: FolderArgs,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// All results.
#[derive(Serialize)]
#[serde(tag = "type", rename = "gpu_check")]
struct Report {
    device: String,
    /// A software renderer; its times say nothing about a GPU.
    software: bool,
    /// Operations of the GPU engine beside the CPU's; none on other devices.
    operations: Vec<Comparison>,
    /// Memory bandwidth of the device, reads and writes together, in 10^9 bytes per second.
    memory_gb_s: f64,
    texts: Vec<texts::Text>,
    accuracy: Vec<accuracy::Accuracy>,
    speed: Vec<speed::Speed>,
}

/// # Errors
/// `Error::NoDevice` if another device than the requested one would be measured.
pub fn run(args: &Args) -> Result<ExitCode> {
    let folder = args.folder.path();
    let opened = open(args.device.device());
    if let Some(remark) = &opened.remark {
        if *args.device.device() != DeviceChoice::Auto {
            let why = remark.clone().problem().map_or_else(|| remark.to_string(), |it| it.to_string());
            return Err(Error::NoDevice(why));
        }
        output::note(remark);
    }
    let models = if args.quick { vec![speed::quick()] } else { args.models.clone() };
    let accuracy = accuracy::measure(&opened.device, &folder, args.quick)?;
    let apart = accuracy.first().map_or(0.0, |starter| starter.apart);
    let report = Report {
        device: opened.label.to_string(),
        software: matches!(&opened.device, Device::Gpu(gpu) if gpu.is_software()),
        operations: match &opened.device {
            Device::Gpu(gpu) => comparisons(gpu)?,
            _ => Vec::new(),
        },
        memory_gb_s: speed::memory_gb_s(&opened.device, args.quick)?,
        texts: texts::compare(&opened, apart, args.quick)?,
        accuracy,
        speed: models
            .into_iter()
            .map(|model| speed::measure(model, &opened, &folder, args.quick))
            .collect::<Result<_>>()?,
    };
    if args.json { output::json(&report) } else { output::text(&report.table()) }?;
    let mistakes = report.texts.iter().any(|text| text.mistakes() > 0);
    Ok(if mistakes { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Opens the requested device; without a request, a GPU, even one that may be slower than the CPU.
fn open(choice: &DeviceChoice) -> Opened {
    let opened = device::open(choice);
    let gpu = || device::candidates().into_iter().next();
    match opened.undecided.then(gpu).flatten() {
        Some(gpu) => device::open(&gpu.choice),
        None => opened,
    }
}
