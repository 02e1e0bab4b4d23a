//! `logits`: the target's logits after every token of a text, to compare implementations and to
//! check that neither chunks nor threads change a bit.

use std::ops::Range;

use foretoken_engine::session::choose;
use foretoken_forward::device::{self, Role, place};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Want, load};
use foretoken_model::Error as EngineError;
use foretoken_model::token::TokenId;
use serde::Serialize;

use crate::args::{DeviceArgs, TokenIds};
use crate::error::Result;
use crate::output;
use crate::session::this_computer;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model
    #[arg(long, value_name = "MODEL")]
    target: String,
    /// The text as token ids; no begin-of-text token is added
    #[arg(long, value_name = "1,2,3")]
    tokens: TokenIds,
    /// Number of tokens in each pass; the last number applies to all remaining passes
    #[arg(long, value_name = "1,2", default_value = "128", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    chunks: Vec<u32>,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// The logits after one token.
#[derive(Serialize)]
struct Row {
    position: usize,
    token: TokenId,
    /// FNV-1a (64 bits, hexadecimal) over all logits as little-endian f32.
    hash: String,
    /// The most likely tokens and their logits, best first.
    top: Vec<(TokenId, f32)>,
}

/// Number of tokens shown per row.
const SHOWN: usize = 20;

pub fn run(args: &Args) -> Result<()> {
    let source = args.device.open(&args.target)?.with_kv_dtype(args.device.kv_cache_dtype);
    let (tokens, limit) = (&args.tokens.0, source.config()?.context);
    if tokens.len() > limit {
        return Err(EngineError::PromptTooLong { found: tokens.len(), limit }.into());
    }
    device::use_threads_steadily();
    let wanted = choose(&this_computer()?, &source, Role::Target, args.device.device());
    let (mut model, device) = place(&wanted, Role::Target, |opened| load(&source, &opened.device))?;
    device.remark.iter().for_each(output::note);
    model.prepare_for_length(tokens.len());
    for pass in passes(tokens.len(), &args.chunks) {
        let chunk = TokenTree::chain(tokens[pass.clone()].iter().copied());
        let scored = model.run(&chunk, &Want::all_rows())?;
        let logits = scored.logits();
        for (row, position) in pass.enumerate() {
            show(&Row::of(position, tokens[position], logits.row(row).logits()?), args.json)?;
        }
    }
    Ok(())
}

/// Splits `total` tokens into passes of `chunks` tokens, never 0; the last number applies to the
/// rest.
fn passes(total: usize, chunks: &[u32]) -> Vec<Range<usize>> {
    let rest = chunks.last().into_iter().cycle();
    let mut start = 0;
    let passes = chunks.iter().chain(rest).map_while(|&size| {
        let pass = start..total.min(start + size as usize);
        start = pass.end;
        (!pass.is_empty()).then_some(pass)
    });
    passes.collect()
}

impl Row {
    fn of(position: usize, token: TokenId, logits: &[f32]) -> Self {
        let mut top: Vec<(TokenId, f32)> =
            logits.iter().enumerate().map(|(id, &logit)| (id as TokenId, logit)).collect();
        top.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        top.truncate(SHOWN);
        Self { position, token, hash: format!("{:016x}", fingerprint(logits)), top }
    }
}

fn show(row: &Row, json: bool) -> Result<()> {
    if json {
        return output::json(row);
    }
    let top: Vec<String> = row.top.iter().take(5).map(|(id, logit)| format!("{id}:{logit:.4}")).collect();
    output::line(format_args!("{:5} {:7} {} {}", row.position, row.token, row.hash, top.join(" ")))
}

/// Hash of the logits' bits as little-endian bytes; equal only if every bit is.
fn fingerprint(logits: &[f32]) -> u64 {
    fnv_1a(logits.iter().flat_map(|logit| logit.to_bits().to_le_bytes()))
}

/// FNV-1a, 64 bits.
fn fnv_1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_chunk_size_repeats() {
        assert_eq!(passes(8, &[1, 3]), [0..1, 1..4, 4..7, 7..8]);
        assert_eq!(passes(4, &[4]), vec![0..4; 1]);
        assert_eq!(passes(2, &[5, 1]), vec![0..2; 1]);
    }

    #[test]
    fn the_hash_is_standard_fnv_1a() {
        assert_eq!(fnv_1a("".bytes()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a("foobar".bytes()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn rows_that_differ_in_one_bit_have_different_fingerprints() {
        assert_ne!(fingerprint(&[1.0, 0.0]), fingerprint(&[1.0, -0.0]));
        assert_ne!(fingerprint(&[1.0, 0.0]), fingerprint(&[0.0, 1.0]));
    }
}
