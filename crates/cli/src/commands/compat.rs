//! `compat`: whether one model can draft for another. An answer either way is a success.

use foretoken_engine::compat::verdict;

use crate::error::Result;
use crate::output;
use crate::session::open;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The model that would write
    #[arg(long, value_name = "MODEL")]
    target: String,
    /// The model that would draft
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
