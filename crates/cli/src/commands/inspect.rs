//! `inspect`: describes a model without loading it.

use foretoken_model::{Description, Sizes, SpecialToken};
use serde::Serialize;

use crate::error::Result;
use crate::output;
use crate::session::open;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model
    #[arg(value_name = "MODEL")]
    model: String,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    path: String,
    #[serde(flatten)]
    description: &'a Description,
}

pub fn run(args: &Args) -> Result<()> {
    let source = open(&args.model)?;
    let path = source.path().display().to_string();
    let description = source.describe();
    if args.json {
        return output::json(&Line { path, description: &description });
    }
    let rows = rows(path, &description);
    output::text(&rows.iter().map(|(name, value)| format!("{name:14} {value}\n")).collect::<String>())
}

fn rows(path: String, model: &Description) -> Vec<(&'static str, String)> {
    let or = |value: &Option<String>, none: &str| value.clone().unwrap_or_else(|| none.to_owned());
    let mut rows = vec![
        ("name", model.name.clone()),
        ("path", path),
        ("architecture", or(&model.architecture, "none: only a tokenizer")),
        ("format", model.format.to_owned()),
        ("parameters", format!("{:.2} M", model.parameters as f64 / 1e6)),
        ("weights", format!("{:.1} MB", model.bytes as f64 / 1e6)),
        ("quantisation", or(&model.quantisation, "none")),
    ];
    if let Some(sizes) = &model.sizes {
        let Sizes { context, layers, hidden, intermediate, heads, kv_heads, head_size, .. } = sizes;
        let tied = if sizes.tied_embeddings { ", tied embeddings" } else { "" };
        let kilobytes = sizes.kv_bytes as f64 / 1e3;
        rows.push(("context", format!("{context} tokens, {kilobytes:.1} kB of keys and values each")));
        rows.extend(
            sizes.int8_kv_bytes.map(|bytes| ("8-bit KV cache", format!("{:.1} kB", bytes as f64 / 1e3))),
        );
        rows.extend(sizes.rope_scaling.map(|scaling| ("RoPE scaling", scaling.to_string())));
        rows.push(("layers", format!("{layers}, width {hidden}, feed-forward {intermediate}{tied}")));
        rows.push(("heads", format!("{heads} of size {head_size}, {kv_heads} for keys and values")));
    }
    if !model.special.is_empty() {
        rows.push(("special", model.special.join(", ")));
    }
    if let Some(tokenizer) = &model.tokenizer {
        let special = &tokenizer.special;
        let begins = if special.adds_bos { "added to raw text" } else { "not added to raw text" };
        rows.push(("tokenizer", format!("{}, {} tokens", tokenizer.kind, tokenizer.vocabulary)));
        rows.push(("begin of text", format!("{} ({begins})", listed(special.bos.as_slice()))));
        rows.push(("end of reply", listed(&special.ends)));
        rows.extend(special.warnings.iter().map(|warning| ("ignored", warning.clone())));
    }
    if let Some(problem) = &model.tokenizer_problem {
        rows.push(("tokenizer", problem.clone()));
    }
    if let Some(tags) = model.thinking {
        rows.push(("thinking tags", format!("{} and {}", tags.open, tags.close)));
    }
    // A draft head uses its target's tokenizer and template.
    if model.tokenizer.is_some() || model.tokenizer_problem.is_some() {
        rows.push(("chat template", or(&model.template, "none: only raw text works")));
    }
    rows
}

fn listed(tokens: &[SpecialToken]) -> String {
    let named: Vec<String> = tokens.iter().map(|token| format!("{} {}", token.id, token.text)).collect();
    if named.is_empty() { "none".to_owned() } else { named.join(", ") }
}
