//! `compat`: checks whether one model can draft for another. Exit code 0 with either answer.

use foretoken_engine::compat::verdict;

use crate::error::Result;
use crate::output;
use crate::session::open;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Target model
    #[arg(long, value_name = "MODEL")]
    target: String,
    /// Draft model
    #[arg(long, value_name = "MODEL")]
    draft: String,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let verdict = verdict(&open(&args.target)?, &open(&args.draft)?)?;
    if args.json {
        return output::json(&verdict);
    }
    let answer = if verdict.compatible { "compatible" } else { "not compatible" };
    output::line(format_args!("{answer}: {}", verdict.reason))?;
    output::line(format_args!("{}", verdict.detail))
}
