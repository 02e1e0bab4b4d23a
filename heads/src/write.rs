//! Lets the target write, several replies at a time: they are branches of one tree of tokens, since eight rows of a
//! pass cost little more than one.

use std::collections::HashSet;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{LineWriter, Write};
use std::path::Path;
use std::time::Instant;

use foretoken_engine::context::{After, Context};
use foretoken_engine::forward::{CpuModel, Model, Want};
use foretoken_engine::model::{ModelSource, Renderer};
use foretoken_engine::sampler::Sampler;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::session::Form;
use foretoken_engine::token::TokenId;
use foretoken_engine::tree::TokenTree;

use crate::text::{Prompt, Text, lines};

/// Nodes of a tree after which no further reply is begun in it: every node is looked at in each pass.
const LARGE: usize = 2_048;

/// A reply under way.
struct Branch {
    text: Text,
    sampler: Sampler,
    /// Its last node that was run.
    node: Option<usize>,
}

impl Branch {
    /// Runs with the next pass: its last token, the others having been run.
    fn next(&mut self, tree: &mut TokenTree) {
        let last = self.text.tokens.last().copied().unwrap_or_default();
        self.node = Some(tree.push(last, self.node));
    }
}

/// See the module.
///
/// # Errors
/// When a file cannot be read or written, or the target fails.
pub fn write(
    model: &Path,
    prompts: &Path,
    texts: &Path,
    tokens: usize,
    at_a_time: usize,
) -> Result<(), Box<dyn Error>> {
    let source = ModelSource::open(model)?;
    let tokenizer = source.tokenizer()?;
    let form = Form::chat(&source, &Renderer::in_this_process())?;
    let mut target = CpuModel::load(&source)?;
    let prompts: Vec<Prompt> = lines(prompts)?;
    let done: HashSet<usize> = lines::<Text>(texts)?.into_iter().map(|text| text.number).collect();
    let mut out = LineWriter::new(OpenOptions::new().create(true).append(true).open(texts)?);
    let mut left = prompts.iter().enumerate().filter(|(number, _)| !done.contains(number)).peekable();
    let (begin, mut replies, mut written) = (Instant::now(), done.len(), 0);
    let nothing = Context::new(Vec::new());
    while left.peek().is_some() {
        target.truncate(0);
        let mut tree = TokenTree::default();
        let mut branches: Vec<Branch> = Vec::new();
        let mut pass = target.run(&tree, &Want::nothing())?;
        loop {
            while branches.len() < at_a_time && tree.len() < LARGE {
                let Some((number, prompt)) = left.next() else { break };
                let branch =
                    begin_reply(number, prompt, form.tokens(&tokenizer, &[form.said(&prompt.prompt)?])?)?;
                branches.push(branch);
            }
            if branches.is_empty() {
                break;
            }
            let new = tree.len();
            for branch in branches.iter_mut().filter(|branch| branch.node.is_none()) {
                let before = &branch.text.tokens[..branch.text.prompt - 1];
                branch.node = before.iter().fold(None, |parent, &token| Some(tree.push(token, parent)));
            }
            if tree.len() > new {
                pass = pass.grow(&tree, &Want::nothing())?;
            }
            branches.iter_mut().for_each(|branch| branch.next(&mut tree));
            pass = pass.grow(&tree, &Want::all_rows())?;
            let logits = pass.logits();
            for (row, Branch { text, sampler, .. }) in branches.iter_mut().enumerate() {
                let guesses = sampler.guess(logits.row(row), After { text: &nothing, guesses: &[] }, 1)?;
                text.tokens.extend(guesses.first().map(|guess| guess.token));
            }
            written += branches.len();
            let over = |text: &Text| {
                text.tokens.len() >= text.prompt + tokens
                    || text.tokens.last().is_some_and(|last| tokenizer.ends().contains(last))
            };
            for Branch { text, .. } in branches.extract_if(.., |branch| over(&branch.text)) {
                writeln!(out, "{}", serde_json::to_string(&text)?)?;
                replies += 1;
            }
        }
        let speed = f64::from(written as u32) / begin.elapsed().as_secs_f64();
        eprintln!("{replies} of {} replies, {speed:.0} tokens/s", prompts.len());
    }
    Ok(())
}

fn begin_reply(number: usize, prompt: &Prompt, tokens: Vec<TokenId>) -> Result<Branch, Box<dyn Error>> {
    let sampling =
        Sampling { temperature: prompt.temperature, seed: Some(number as u32), ..Sampling::default() };
    let text = Text { number, prompt: tokens.len(), tokens };
    Ok(Branch { text, sampler: Sampler::new(&sampling)?, node: None })
}
