//! `models`: what is on this computer.

use foretoken_library::{Installed, Kind};
use serde::Serialize;

use crate::error::Result;
use crate::output;
use crate::session::library;

#[derive(Debug, clap::Subcommand)]
pub enum Models {
    /// List the starter pair, the models folder and what is in the hub's cache
    List {
        /// Print JSON, an object a line, and nothing else
        #[arg(long)]
        json: bool,
    },
}

#[derive(Serialize)]
struct Line {
    name: String,
    path: String,
    kind: &'static str,
    bytes: u64,
}

pub fn run(Models::List { json }: &Models) -> Result<()> {
    for model in library()?.installed() {
        let line = Line::from(model);
        if *json {
            output::json(&line)?;
        } else {
            let megabytes = line.bytes as f64 / 1e6;
            output::line(format_args!("{:40} {megabytes:10.1} MB  {}", line.name, line.path))?;
        }
    }
    Ok(())
}

impl From<Installed> for Line {
    fn from(model: Installed) -> Self {
        let kind = match model.kind {
            Kind::Starter => "starter",
            Kind::Local => "local",
            Kind::HubCache => "hub_cache",
        };
        Self { name: model.name, path: model.path.display().to_string(), kind, bytes: model.size_bytes }
    }
}
