//! `foretoken-bench record`: texts of a target, and the drafts at each of their positions.

use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use foretoken_cli::args::{PairDeviceArgs, SamplingArgs, read_text};
use foretoken_cli::error::{Error, Result};
use foretoken_cli::output;
use foretoken_cli::session::{form, load};
use foretoken_engine::context::Context;
use foretoken_engine::decoder::Request;
use foretoken_engine::distribution::Distribution;
use foretoken_engine::draft::{Draft, DraftRequest, Drafter, Observation, replay_for};
use foretoken_engine::governor::TextKind;
use foretoken_engine::penalties::PenaltyTokens;
use foretoken_engine::replay::{RecordedPosition, Recording};
use foretoken_engine::sampler::Sampler;
use foretoken_engine::session::Session;
use foretoken_engine::speculation::{MAX_TREE_WIDTH, Speculation};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, Want};
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use serde::Deserialize;

/// Depth of the recorded trees, and their guesses.
const DEPTH: usize = 8;
const GUESSES: usize = 48;
/// Least chance of a recorded guess and of all before it; no policy verifies a less likely one.
const LEAST_CHANCE: f32 = 0.002;

#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Target model
    #[arg(long, value_name = "MODEL")]
    target: String,
    /// Draft model or draft head
    #[arg(long, value_name = "MODEL")]
    draft: String,
    /// File with one JSON object per line: {"topic": "...", "prompt": "..."}
    #[arg(long, value_name = "FILE")]
    prompts: PathBuf,
    /// File to write, as gzip
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Maximum length of a reply in tokens
    #[arg(long, value_name = "N", default_value = "96", value_parser = clap::value_parser!(u32).range(2..))]
    tokens: u32,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    pub device: PairDeviceArgs,
}

/// A line of the file of prompts.
#[derive(Deserialize)]
struct Prompt {
    topic: String,
    prompt: String,
}

impl RecordArgs {
    /// Records a text for each prompt.
    ///
    /// # Errors
    /// Errors of reading the prompts, of the models, and of writing the file.
    pub fn run(&self) -> Result<()> {
        let prompts = read_prompts(&self.prompts)?;
        let source = self.device.target.open(&self.target)?;
        let mut session = load(&source, form(&source, false)?, &self.device)?;
        let draft = self.device.target.open(&self.draft)?;
        let device = session.draft_device(self.device.draft_device());
        let (mut drafter, _) = session.load_drafter(&draft, &device)?;
        let sampling = self.sampling.over(Sampling { seed: Some(0), ..Sampling::default() })?;
        let sampling = session.decoder.sampling(&sampling);
        let sampling = Sampling { automatic_penalties: false, mode: Mode::Reproducible, ..sampling };
        let path = || self.out.clone();
        let file = File::create(&self.out).map_err(|source| Error::Write { path: path(), source })?;
        let mut file = GzEncoder::new(file, Compression::best());
        for (number, Prompt { topic, prompt }) in prompts.iter().enumerate() {
            output::note(format_args!("text {} of {}: {topic}", number + 1, prompts.len()));
            let request = Request {
                prompt: session.text(prompt)?,
                sampling: sampling.clone(),
                speculation: Speculation::off(),
                max_tokens: Some(self.tokens as usize),
                ..Request::new(Vec::new())
            };
            let recording = record(&mut session, drafter.as_mut(), &request, topic)?;
            let line = serde_json::to_string(&recording).map_err(std::io::Error::from)?;
            writeln!(file, "{line}").map_err(|source| Error::Write { path: path(), source })?;
        }
        file.finish().map(drop).map_err(|source| Error::Write { path: path(), source })
    }
}

fn read_prompts(path: &Path) -> Result<Vec<Prompt>> {
    let parse = |line: &str| {
        serde_json::from_str(line).map_err(|error| Error::Content {
            path: path.to_owned(),
            expected: "a JSON object a line with a \"topic\" and a \"prompt\"",
            found: error.to_string(),
        })
    };
    read_text(path)?.lines().filter(|line| !line.trim().is_empty()).map(parse).collect()
}

/// Writes a reply and records the drafts at each of its positions.
fn record(
    session: &mut Session,
    drafter: &mut dyn Drafter,
    request: &Request,
    topic: &str,
) -> Result<Recording> {
    let text = session.reply(request, &mut |_| ControlFlow::Continue(()))?.tokens;
    let sampling = &request.sampling;
    let end: String = {
        let last = &request.prompt[request.prompt.len().saturating_sub(256)..];
        let bytes = last.iter().flat_map(|&token| session.tokenizer().decode_bytes(token));
        String::from_utf8_lossy(&bytes.copied().collect::<Vec<u8>>()).into_owned()
    };
    let penalised = PenaltyTokens::of(session.tokenizer(), &sampling.dry_sequence_breakers);
    let mut sampler = Sampler::with_tokens(sampling, penalised.into())?;
    let target = session.decoder.target_mut();
    let mut context = Context::new(request.prompt.clone());
    let go_on = &mut || ControlFlow::Continue(());
    // Nothing stops it.
    let _ = replay_for(target, drafter, &context, go_on)?;
    let _ = drafter.prepare(&context, &mut |_, _| ControlFlow::Continue(()))?;
    let taps = drafter.taps().cloned().unwrap_or_default();
    let want = Want::all_rows().subset(Distribution::logit_subset(sampling)).features(&taps);
    let mut positions = Vec::new();
    for &token in &text {
        sampler.follow(&context);
        let last: TokenId = context[context.len() - 1];
        let request = DraftRequest::tree(DEPTH, MAX_TREE_WIDTH, GUESSES);
        let draft = drafter.draft(&context, &request, &mut sampler)?;
        let pass = target.run(&TokenTree::chain([last]), &want)?;
        let leaders = pass.logits().row(0).leaders(MAX_TREE_WIDTH);
        let leaders = leaders.into_iter().map(|(token, chance)| (token, rounded(chance))).collect();
        let features = pass.features().map(|features| Features::new(features.row(0), features.width()));
        let at = context.len() - 1;
        drafter.observe(&Observation { at, tokens: &[last], rows: None, features })?;
        pass.keep(&[0])?;
        positions.push(RecordedPosition { leaders, draft: likely(&draft) });
        context.push(token);
    }
    Ok(Recording {
        topic: topic.to_owned(),
        kind: TextKind::of(&end, sampling),
        sampling: sampling.clone(),
        prompt: request.prompt.clone(),
        text,
        positions,
    })
}

/// Guesses of a draft that a policy may verify.
fn likely(draft: &Draft) -> Vec<(Option<u16>, TokenId, f32)> {
    let mut places: Vec<Option<(u16, f32)>> = Vec::new();
    let mut kept = Vec::new();
    for guess in draft.guesses.iter() {
        let parent = guess.parent.map(|parent| places[parent]);
        let reached = parent.map_or(Some(1.0), |parent| parent.map(|(_, reached)| reached));
        let chance =
            reached.map(|reached| reached * guess.confidence).filter(|&chance| chance >= LEAST_CHANCE);
        places.push(chance.map(|chance| (kept.len() as u16, chance)));
        if chance.is_some() {
            kept.push((parent.flatten().map(|(place, _)| place), guess.token, rounded(guess.confidence)));
        }
    }
    kept
}

/// A probability to three digits.
fn rounded(probability: f32) -> f32 {
    (probability * 1e3).round() / 1e3
}
