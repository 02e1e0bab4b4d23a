//! Training data of a draft head: replies that its target writes to open prompts, and the hidden
//! states behind them. README.md describes the whole procedure.
#![allow(clippy::print_stderr, reason = "a terminal program that prints its progress")]

mod states;
mod text;
mod write;

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Create the training data of a draft head
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Let the target reply to prompts, several at a time; existing replies are kept
    Write {
        /// Target model
        #[arg(long)]
        model: PathBuf,
        /// One JSON object per line: {"prompt": "...", "temperature": 0.7}; without a prompt the
        /// target writes it too
        #[arg(long)]
        prompts: PathBuf,
        /// Output file, one line per reply
        #[arg(long)]
        texts: PathBuf,
        /// Longest reply in tokens
        #[arg(long, default_value_t = 384)]
        tokens: usize,
        /// Replies written at a time
        #[arg(long, default_value_t = 16)]
        at_a_time: usize,
    },
    /// Run the target over its texts and store its states and most likely tokens
    States {
        /// Target model
        #[arg(long)]
        model: PathBuf,
        /// Output of `write`
        #[arg(long)]
        texts: PathBuf,
        /// Output folder of the arrays
        #[arg(long)]
        folder: PathBuf,
        /// Layers whose input states are stored
        #[arg(long, value_delimiter = ',', default_value = "2,15,27")]
        layers: Vec<usize>,
        /// Number of most likely tokens stored per position
        #[arg(long, default_value_t = 16)]
        likeliest: usize,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().command {
        Command::Write { model, prompts, texts, tokens, at_a_time } => {
            write::write(&model, &prompts, &texts, tokens, at_a_time)
        }
        Command::States { model, texts, folder, layers, likeliest } => {
            states::states(&model, &texts, &folder, layers, likeliest)
        }
    }
}
