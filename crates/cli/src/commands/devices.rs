//! `devices`: lists the devices of this computer under the names that `--device` takes, and why one
//! is unusable.

use foretoken_forward::device::{self, DeviceChoice, DeviceRemark, Opened};
use serde::Serialize;

use crate::error::Result;
use crate::output;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    /// Value for `--device`.
    name: String,
    usable: bool,
    /// The device's name, or why it cannot be used.
    label: String,
}

pub fn run(args: &Args) -> Result<()> {
    let mut gpus = 0;
    for (choice, found) in device::survey() {
        let line = match (&choice, found) {
            // Only opening a GPU shows whether its driver works and how it rounds.
            (DeviceChoice::Gpu(_), Ok(name)) => {
                gpus += 1;
                let Opened { gpu, label, remark, .. } = device::open(&choice);
                let problem = remark.and_then(DeviceRemark::problem).filter(|_| gpu.is_none());
                let label = problem.map_or_else(
                    || if gpu.is_some() { label.to_string() } else { name.to_string() },
                    |problem| problem.to_string(),
                );
                Line { name: format!("gpu:{gpus}"), usable: gpu.is_some(), label }
            }
            (_, Ok(label)) => Line { name: choice.to_string(), usable: true, label: label.to_string() },
            (_, Err(problem)) => Line { name: choice.to_string(), usable: false, label: problem.to_string() },
        };
        if args.json {
            output::json(&line)?;
        } else {
            let no = if line.usable { "" } else { "no: " };
            output::line(format_args!("{:8} {no}{}", line.name, line.label))?;
        }
    }
    Ok(())
}
