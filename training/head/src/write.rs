//! Lets the target write several replies at a time: they are branches of one token tree, because
//! eight rows of a pass cost little more than one.

use std::collections::HashSet;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{LineWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use foretoken_engine::context::{After, Context};
use foretoken_engine::sampler::Sampler;
use foretoken_engine::session::Form;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{CpuModel, Model, Want};
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Renderer, Tokenizer};

use crate::text::{Prompt, Text, lines};

/// Nodes of a tree after which no further reply starts in it: each pass attends to every node.
const LARGE: usize = 2_048;

/// Most tokens of a prompt that the target writes: a longer one is dropped.
const LONGEST_PROMPT: usize = 256;

/// Tokens that the template adds around a first message.
struct Turn {
    before: Vec<TokenId>,
    after: Vec<TokenId>,
}

impl Turn {
    /// Finds them by comparing two one-message conversations that differ only in the message.
    fn of(form: &Form, tokenizer: &Arc<Tokenizer>) -> Result<Self, Box<dyn Error>> {
        let tokens =
            |message: &str| form.tokens(tokenizer, &[form.said(message)?], None, usize::MAX, &|| false);
        let (one, two) = (tokens("1")?, tokens("2")?);
        let at = one.iter().zip(&two).position(|(one, two)| one != two).unwrap_or(one.len() - 1);
        let after = one[at + 1..].to_vec();
        if !two.ends_with(&after) {
            return Err("the template repeats the text of a first message".into());
        }
        Ok(Self { before: one[..at].to_vec(), after })
    }
}

/// Continuation of a text.
#[derive(PartialEq, Eq)]
enum Next {
    Token,
    End,
    /// The text is not usable for training.
    Nothing,
}

/// A text being written.
struct Branch {
    text: Text,
    sampler: Sampler,
    /// Sampler of the reply while the target still writes the prompt.
    replies: Option<Sampler>,
    /// Number of tokens already run, and the node of the last one.
    run: usize,
    node: Option<usize>,
    next: Next,
}

impl Branch {
    fn begin(
        number: usize,
        prompt: &Prompt,
        turn: &Turn,
        tokens: impl Fn(&str) -> foretoken_model::error::Result<Vec<TokenId>>,
    ) -> Result<Self, Box<dyn Error>> {
        let sampler = |temperature| {
            Sampler::new(&Sampling { temperature, seed: Some(number as u32), ..Sampling::default() })
        };
        let reply = sampler(prompt.temperature)?;
        let (tokens, sampler, replies) = match &prompt.prompt {
            Some(prompt) => (tokens(prompt)?, reply, None),
            None => (turn.before.clone(), sampler(1.0)?, Some(reply)),
        };
        let text = Text { number, prompt: tokens.len(), tokens };
        Ok(Self { text, sampler, replies, run: 0, node: None, next: Next::Token })
    }

    /// Adds the tokens up to `end` to the next pass.
    fn run(&mut self, tree: &mut TokenTree, end: usize) {
        let tokens = self.text.tokens[self.run..end].iter();
        self.node = tokens.fold(self.node, |parent, &token| Some(tree.push(token, parent)));
        self.run = end;
    }

    /// Appends its next token; `ends` marks the end of a message, and a reply has at most `most`
    /// tokens.
    fn take(&mut self, token: TokenId, ends: bool, most: usize, turn: &Turn) {
        let Self { text, replies, .. } = self;
        let written = text.tokens.len() - text.prompt;
        match replies.take_if(|_| ends) {
            Some(reply) if written > 0 => {
                text.tokens.extend(&turn.after);
                (text.prompt, self.sampler) = (text.tokens.len(), reply);
            }
            Some(_) => self.next = Next::Nothing,
            None => {
                text.tokens.push(token);
                if replies.is_some() && written >= LONGEST_PROMPT {
                    self.next = Next::Nothing;
                } else if replies.is_none() && (ends || written + 1 >= most) {
                    self.next = Next::End;
                }
            }
        }
    }
}

/// Writes the replies; see the module.
///
/// # Errors
/// Returns an error if a file cannot be read or written, or the target fails.
pub fn write(
    model: &Path,
    prompts: &Path,
    texts: &Path,
    tokens: usize,
    at_a_time: usize,
) -> Result<(), Box<dyn Error>> {
    let source = ModelSource::open(model)?;
    let tokenizer = Arc::new(source.tokenizer()?);
    let form = Form::chat(&source, &Renderer::in_this_process())?;
    let turn = Turn::of(&form, &tokenizer)?;
    let prompt_tokens =
        |prompt: &str| form.tokens(&tokenizer, &[form.said(prompt)?], None, usize::MAX, &|| false);
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
                branches.push(Branch::begin(number, prompt, &turn, prompt_tokens)?);
            }
            if branches.is_empty() {
                break;
            }
            let new = tree.len();
            for branch in &mut branches {
                branch.run(&mut tree, branch.text.tokens.len() - 1);
            }
            if tree.len() > new {
                pass = pass.grow(&tree, &Want::nothing())?;
            }
            for branch in &mut branches {
                branch.run(&mut tree, branch.text.tokens.len());
            }
            pass = pass.grow(&tree, &Want::all_rows())?;
            let logits = pass.logits();
            for (row, branch) in branches.iter_mut().enumerate() {
                let nothing = After { text: &nothing, guesses: &[] };
                let guesses = branch.sampler.guess(logits.row(row), nothing, 1)?;
                let token = guesses.first().ok_or("the target provides no token")?.token;
                branch.take(token, tokenizer.ends().contains(&token), tokens, &turn);
            }
            written += branches.len();
            for Branch { text, .. } in branches
                .extract_if(.., |branch| branch.next != Next::Token)
                .filter(|branch| branch.next == Next::End)
            {
                writeln!(out, "{}", serde_json::to_string(&text)?)?;
                replies += 1;
            }
        }
        let speed = f64::from(written as u32) / begin.elapsed().as_secs_f64();
        eprintln!("{replies} of {} replies, {speed:.0} tokens/s", prompts.len());
    }
    Ok(())
}
