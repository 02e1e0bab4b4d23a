//! `gpu-check`: everything that has to be found out about a device, in one go: whether it computes what the
//! CPU does, and how fast. Judges nothing; the table says what was wished for beside what was found.

mod accuracy;
mod models;
mod speed;
mod table;
mod texts;

use std::path::PathBuf;
use std::process::ExitCode;

use foretoken_engine::device::{self, Device, DeviceChoice, Opened};
use serde::Serialize;

use super::bench::random::{RandomModel, default_folder};
use crate::args::DeviceArgs;
use crate::error::{Error, Result};
use crate::output;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The models with random weights whose speed is measured, as in `bench --random`
    #[arg(
        long,
        value_name = "SHAPE:WEIGHTS",
        value_delimiter = ',',
        default_value = "1.1B:Q4_K_M,8B:Q4_K_M,8B:Q8_0"
    )]
    models: Vec<RandomModel>,
    /// A quick look: tiny models, short texts, small copies. Says whether this command works, and little
    /// about the device
    #[arg(long)]
    quick: bool,
    /// Where the files with random weights are, or are made [default: foretoken-bench in the system's
    /// folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// All that was found.
#[derive(Serialize)]
#[serde(tag = "type", rename = "gpu_check")]
struct Report {
    device: String,
    /// A program plays the device: its times say nothing of a GPU.
    software: bool,
    /// Gigabytes (10^9 bytes) per second that the device reads from its memory and writes to it.
    memory_gb_s: f64,
    texts: Vec<texts::Text>,
    accuracy: Vec<accuracy::Accuracy>,
    speed: Vec<speed::Speed>,
}

/// # Errors
/// `Error::NoDevice` when another device than the one that was named would be measured.
pub fn run(args: &Args) -> Result<ExitCode> {
    let folder = args.folder.clone().unwrap_or_else(default_folder);
    let opened = open(args.device.device());
    if let Some(remark) = &opened.remark {
        if *args.device.device() != DeviceChoice::Auto {
            let why = remark.trim_end_matches(device::CPU_INSTEAD).to_owned();
            return Err(Error::NoDevice(why));
        }
        output::note(remark);
    }
    let models = if args.quick { vec![speed::quick()] } else { args.models.clone() };
    let accuracy = accuracy::measure(&opened.device, &folder, args.quick)?;
    let apart = accuracy.first().map_or(0.0, |starter| starter.apart);
    let report = Report {
        device: opened.label.clone(),
        software: matches!(&opened.device, Device::Gpu(gpu) if gpu.is_software()),
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

/// What is named; where none is, a GPU, also one that may be slower than the CPU.
fn open(choice: &DeviceChoice) -> Opened {
    let opened = device::open(choice);
    let gpu = || device::candidates().into_iter().next();
    match opened.undecided.then(gpu).flatten() {
        Some(gpu) => device::open(&gpu.choice),
        None => opened,
    }
}
