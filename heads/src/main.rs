//! What a draft head is trained on: the replies its target writes to open prompts, and the hidden states from which
//! it wrote them. README.md has the whole way.
#![allow(clippy::print_stderr, reason = "a program for the terminal that says how far it is")]

mod states;
mod text;
mod write;

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Make what a draft head is trained on
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Let the target reply to prompts, several at a time; what is there already is kept
    Write {
        /// The target
        #[arg(long)]
        model: PathBuf,
        /// A line of JSON each: {"prompt": "...", "temperature": 0.7}; without a prompt the target writes that, too
        #[arg(long)]
        prompts: PathBuf,
        /// Gets a line for each reply
        #[arg(long)]
        texts: PathBuf,
        /// Tokens of a reply at most
        #[arg(long, default_value_t = 384)]
        tokens: usize,
        /// Replies that are written at a time
        #[arg(long, default_value_t = 16)]
        at_a_time: usize,
    },
    /// Run the target over its texts and keep its states and its likeliest tokens
    States {
        /// The target
        #[arg(long)]
        model: PathBuf,
        /// What `write` wrote
        #[arg(long)]
        texts: PathBuf,
        /// Gets the arrays
        #[arg(long)]
        folder: PathBuf,
        /// The layers whose entering states are kept
        #[arg(long, value_delimiter = ',', default_value = "2,15,27")]
        layers: Vec<usize>,
        /// How many of the likeliest tokens are kept of each position
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
