//! `foretoken-bench masks`: time per row of a grammar's masks, with the way to the child process
//! and back, and of their use on synthetic logits.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use foretoken_cli::error::Result;
use foretoken_cli::output;
use foretoken_engine::distribution::Distribution;
use foretoken_forward::Row;
use foretoken_grammar::{Grammar, Grammars, Mask};
use foretoken_model::child::Program;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Tokenizer};
use serde::Serialize;

/// Kinds of schemas as programs use them, each with a value in the form that replies have.
const SCHEMAS: [(&str, &str, &str); 6] = [
    (
        "record",
        r#"{"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": "string"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150}, "member": {"type": "boolean"}},
            "required": ["name", "email", "age", "member"], "additionalProperties": false}"#,
        r#"{"name": "Ada Lovelace", "email": "ada@example.com", "age": 36, "member": true}"#,
    ),
    (
        "list",
        r#"{"type": "array", "items": {"type": "object", "properties": {"city": {"type": "string"},
            "kind": {"enum": ["capital", "port", "village"]}, "people": {"type": "integer"}},
            "required": ["city", "kind"]}, "maxItems": 20}"#,
        r#"[{"city": "Vienna", "kind": "capital", "people": 2000000}, {"city": "Trieste", "kind": "port"}]"#,
    ),
    (
        "optional",
        r#"{"type": "object", "properties": {"title": {"type": "string"}, "year": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}}, "rating": {"type": "number"},
            "note": {"type": ["string", "null"]}}, "additionalProperties": false}"#,
        r#"{"title": "The fox and the lantern", "tags": ["story", "night"], "rating": 4.5, "note": null}"#,
    ),
    (
        "union",
        r#"{"anyOf": [{"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"],
            "additionalProperties": false}, {"type": "object", "properties": {"result": {"type": "number"},
            "unit": {"enum": ["m", "s", "kg"]}}, "required": ["result", "unit"], "additionalProperties": false}]}"#,
        r#"{"result": 299792458, "unit": "m"}"#,
    ),
    (
        "recursive",
        r##"{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"value": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["value", "children"],
            "additionalProperties": false}}}"##,
        r#"{"value": "root", "children": [{"value": "left", "children": []}, {"value": "right", "children": []}]}"#,
    ),
    (
        "patterns",
        r#"{"type": "object", "properties": {"date": {"type": "string", "format": "date"},
            "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}, "id": {"type": "string", "format": "uuid"}},
            "required": ["date", "code", "id"], "additionalProperties": false}"#,
        r#"{"date": "2026-11-28", "code": "FOX-2026", "id": "123e4567-e89b-12d3-a456-426614174000"}"#,
    ),
];

#[derive(Debug, clap::Args)]
pub struct MasksArgs {
    /// Model whose vocabulary is used
    model: PathBuf,
    /// Repeats of each text
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Compute the masks in this process, to compare: what is left out is the way to the child
    #[arg(long)]
    in_process: bool,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

/// Figures of one schema, in microseconds.
#[derive(Debug, Serialize)]
struct Measured {
    schema: &'static str,
    vocabulary: usize,
    /// Tokens of the text, and how many of them are forced.
    tokens: usize,
    forced: usize,
    /// Compilation with the first mask.
    begin: f64,
    /// Median, 99th percentile and longest time of a mask.
    mask: [f64; 3],
    /// Median and longest time of a greedy choice with the mask, and of a draw with top-p.
    greedy: [f64; 2],
    drawn: [f64; 2],
}

impl MasksArgs {
    /// Measures one schema after the other.
    ///
    /// # Errors
    /// Errors of the model's file and of the grammars.
    pub fn run(&self) -> Result<()> {
        let source = ModelSource::open(&self.model)?;
        let tokenizer = source.tokenizer()?;
        let rows = source.config().map_or(tokenizer.vocabulary(), |config| config.vocabulary);
        let tokenizer = Arc::new(tokenizer);
        let grammars = match self.in_process {
            true => Grammars::in_this_process(&tokenizer, rows),
            false => Grammars::in_child(&Program::This, &self.model, &tokenizer, rows),
        };
        let start = Instant::now();
        grammars.begin(&Grammar::Json)?;
        let ready = start.elapsed().as_secs_f64();
        let logits: Vec<f32> = (0..rows).map(|token| ((token * 7919) % 5003) as f32 / 300.0).collect();
        if !self.json {
            output::line(format!("{rows} tokens, vocabulary ready after {ready:.1} s; times in µs"))?;
            output::line(
                "schema       tokens  forced    begin   mask  99 %  longest  greedy  longest   drawn  longest",
            )?;
        }
        for (schema, source, text) in SCHEMAS {
            let grammar = Grammar::Schema(source.to_owned());
            let mut figures = Figures::default();
            for _ in 0..self.repeats {
                figures.measure(&tokenizer, &grammars, &grammar, text.as_bytes(), &logits)?;
            }
            let measured = figures.measured(schema, rows, self.repeats as usize);
            if self.json { output::json(&measured) } else { output::line(measured.line()) }?;
        }
        Ok(())
    }
}

/// Times of all repeats, in microseconds.
#[derive(Default)]
struct Figures {
    tokens: usize,
    forced: usize,
    begin: Vec<f64>,
    mask: Vec<f64>,
    greedy: Vec<f64>,
    drawn: Vec<f64>,
}

impl Figures {
    /// Follows `text` once.
    fn measure(
        &mut self,
        tokenizer: &Tokenizer,
        grammars: &Arc<Grammars>,
        grammar: &Grammar,
        mut text: &[u8],
        logits: &[f32],
    ) -> Result<()> {
        let greedy = Sampling::greedy();
        let drawn = Sampling { top_p: 0.95, ..Sampling::default() };
        let start = Instant::now();
        let mut cursor = grammars.begin(grammar)?;
        self.begin.push(microseconds(start));
        while !text.is_empty() {
            let start = Instant::now();
            let masks = cursor.masks(&[&[]])?;
            self.mask.push(microseconds(start));
            let Some(mask) = masks.first().and_then(|masks| masks.first()) else { break };
            for (sampling, times) in [(&greedy, &mut self.greedy), (&drawn, &mut self.drawn)] {
                let row = Row::of(logits);
                let start = Instant::now();
                Distribution::constrained(row, sampling, &[], mask)?;
                times.push(microseconds(start));
            }
            let Some(token) = longest(tokenizer, mask, text) else { break };
            self.tokens += 1;
            self.forced += usize::from(mask.forced().is_some());
            text = &text[tokenizer.decode_bytes(token).len()..];
            cursor.extend(&[token]);
        }
        Ok(())
    }

    fn measured(mut self, schema: &'static str, vocabulary: usize, repeats: usize) -> Measured {
        Measured {
            schema,
            vocabulary,
            tokens: self.tokens / repeats,
            forced: self.forced / repeats,
            begin: percentile(&mut self.begin, 50),
            mask: [50, 99, 100].map(|percent| percentile(&mut self.mask, percent)),
            greedy: [50, 100].map(|percent| percentile(&mut self.greedy, percent)),
            drawn: [50, 100].map(|percent| percentile(&mut self.drawn, percent)),
        }
    }
}

/// Value that this share of the values, at least one, does not exceed.
fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) * percent / 100]
}

impl Measured {
    fn line(&self) -> String {
        let Self { schema, tokens, forced, begin, mask, greedy, drawn, .. } = self;
        format!(
            "{schema:12}{tokens:>7}{forced:>8}{begin:>9.0}{:>7.0}{:>6.0}{:>9.0}{:>8.0}{:>9.0}{:>8.0}{:>9.0}",
            mask[0], mask[1], mask[2], greedy[0], greedy[1], drawn[0], drawn[1]
        )
    }
}

/// The longest allowed token with which `text` begins.
fn longest(tokenizer: &Tokenizer, mask: &Mask, text: &[u8]) -> Option<TokenId> {
    let fits = |&token: &TokenId| {
        let bytes = tokenizer.decode_bytes(token);
        !bytes.is_empty() && text.starts_with(bytes) && mask.allows(token)
    };
    let tokens = (0..tokenizer.vocabulary() as TokenId).filter(fits);
    tokens.max_by_key(|&token| tokenizer.decode_bytes(token).len())
}

fn microseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}
