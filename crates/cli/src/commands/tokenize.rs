//! `tokenize` and `detokenize`: text to tokens and back.

use std::path::PathBuf;
use std::sync::Arc;

use foretoken_engine::session::whole_text;
use foretoken_model::Error as EngineError;
use foretoken_model::Special;
use foretoken_model::token::TokenId;
use serde::Serialize;

use crate::args::{TokenIds, read_text};
use crate::error::Result;
use crate::output;
use crate::session::open;

#[derive(Debug, clap::Args)]
pub struct TokenizeArgs {
    /// Model whose tokenizer is used; a GGUF file with only a tokenizer works too
    #[arg(long, value_name = "MODEL")]
    model: String,
    #[command(flatten)]
    text: TextArgs,
    /// Add the begin-of-text token, if the tokenizer asks for one, and recognise special tokens in
    /// the text; without --special they are read as ordinary text
    #[arg(long)]
    special: bool,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct TextArgs {
    /// Text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// File with the text; `-` is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct DetokenizeArgs {
    /// Model whose tokenizer is used
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Token ids
    #[arg(long, value_name = "1,2,3")]
    ids: TokenIds,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Tokens {
    ids: Vec<TokenId>,
    pieces: Vec<String>,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

pub fn tokenize(args: &TokenizeArgs) -> Result<()> {
    let text = match (&args.text.text, &args.text.file) {
        (None, Some(path)) => read_text(path)?,
        (text, _) => text.clone().unwrap_or_default(),
    };
    let tokenizer = Arc::new(open(&args.model)?.tokenizer()?);
    let ids = if args.special {
        whole_text(&tokenizer, &text, usize::MAX, &|| false)?
    } else {
        tokenizer.encode(&text, Special::Ignore)?
    };
    let pieces: Vec<String> = ids.iter().map(|&id| tokenizer.piece(id)).collect();
    if args.json {
        return output::json(&Tokens { ids, pieces });
    }
    for (id, piece) in ids.iter().zip(&pieces) {
        output::line(format_args!("{id:7} {piece:?}"))?;
    }
    Ok(())
}

pub fn detokenize(args: &DetokenizeArgs) -> Result<()> {
    let tokenizer = open(&args.model)?.tokenizer()?;
    let (ids, vocabulary) = (&args.ids.0, tokenizer.vocabulary());
    if let Some(&token) = ids.iter().find(|&&id| id as usize >= vocabulary) {
        return Err(EngineError::UnknownToken { token, vocabulary }.into());
    }
    let text = tokenizer.decode(ids);
    if args.json { output::json(&Text { text }) } else { output::line(text) }
}
