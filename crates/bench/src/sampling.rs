//! `foretoken-bench sampling`: time per row of sampling on the host, over synthetic logits of a
//! target and a draft model.

use std::time::Instant;

use foretoken_cli::commands::bench::numbers::median;
use foretoken_cli::error::Result;
use foretoken_cli::output;
use foretoken_engine::accept::{Guesses, accept};
use foretoken_engine::context::{After, Context};
use foretoken_engine::distribution::Distribution;
use foretoken_engine::penalties::Penalties;
use foretoken_engine::random::{Generator, Randomness};
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::Verification;
use foretoken_forward::{Logits, Peak};
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use serde::Serialize;

/// Length of a draft. The target has one row more.
const DRAFT_LENGTH: usize = 4;

/// Tokens before the rows.
const TEXT: usize = 400;

#[derive(Debug, clap::Args)]
pub struct SamplingArgs {
    /// Sizes of the vocabulary
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "49152,151936", value_parser = clap::value_parser!(u32).range(16..))]
    vocabulary: Vec<u32>,
    /// Temperatures
    #[arg(long, value_name = "T", value_delimiter = ',', default_value = "0.7,1,2")]
    temperature: Vec<f32>,
    /// Shares of top-p
    #[arg(long, value_name = "P", value_delimiter = ',', default_value = "1,0.95")]
    top_p: Vec<f32>,
    /// Rounds per figure; figures are medians
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

/// Figures of one combination of settings.
#[derive(Debug, Serialize)]
struct Measured {
    vocabulary: u32,
    temperature: f32,
    top_p: f32,
    /// Repetition penalty and DRY as small models have them by default.
    penalties: bool,
    reproducible: bool,
    /// Microseconds of a row of plain decoding.
    row: f64,
    /// Microseconds per drawn draft token.
    draft: f64,
    /// Microseconds of judging a chain of four draft tokens, five rows.
    verify: f64,
    /// Accepted tokens per round.
    accepted: f64,
    /// Hash of all sampled tokens.
    tokens: String,
}

impl SamplingArgs {
    /// Measures one combination after the other.
    ///
    /// # Errors
    /// `Error::Setting` for settings out of their range.
    pub fn run(&self) -> Result<()> {
        if !self.json {
            output::line(
                "vocabulary     T  top-p  penalties  mode          row µs  draft µs  verify µs  accepted  tokens",
            )?;
        }
        for &vocabulary in &self.vocabulary {
            let rounds: Vec<_> = (0..self.rounds).map(|round| Rows::new(vocabulary, round)).collect();
            for &temperature in &self.temperature {
                for &top_p in &self.top_p {
                    for (penalties, reproducible) in [(false, false), (true, false), (false, true)] {
                        let measured = Measured {
                            vocabulary,
                            temperature,
                            top_p,
                            penalties,
                            reproducible,
                            row: 0.0,
                            draft: 0.0,
                            verify: 0.0,
                            accepted: 0.0,
                            tokens: String::new(),
                        }
                        .measure(&rounds)?;
                        if self.json { output::json(&measured) } else { output::line(measured.line()) }?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Measured {
    fn sampling(&self) -> Sampling {
        let mut sampling = Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            automatic_penalties: false,
            seed: Some(7),
            mode: if self.reproducible { Mode::Reproducible } else { Mode::Fastest },
            ..Sampling::default()
        };
        if self.penalties {
            sampling.repetition_penalty = 1.03;
            sampling.repeat_last_n = 128;
            sampling.dry_multiplier = 0.8;
            sampling.dry_allowed_length = 4;
            sampling.dry_penalty_last_n = 2048;
        }
        sampling
    }

    fn measure(self, rounds: &[Rows]) -> Result<Self> {
        let sampling = self.sampling();
        let context = Context::new(text(self.vocabulary));
        let mut sampler = Sampler::new(&sampling)?;
        sampler.follow(&context);
        let mut penalties = Penalties::new(&sampling);
        penalties.follow(&context);
        let mut generator = Generator::new(&sampling);
        let [mut row, mut draft, mut verify] = [const { Vec::new() }; 3];
        let (mut accepted, mut hash) = (0, Hash::default());
        for (round, rows) in rounds.iter().enumerate() {
            let (target, drafted) = (Logits::of(&rows.target, &rows.peaks[..=DRAFT_LENGTH]), &rows.draft);
            let drafted = Logits::of(drafted, &rows.peaks[DRAFT_LENGTH + 1..]);
            let position = context.len() + 8 * round;

            let start = Instant::now();
            let p = Distribution::processed(target.row(0), &sampling, &penalties.at(&context[..]))?;
            hash.add(generator.draw(position, &p));
            drop(p);
            row.push(micros(start));

            let start = Instant::now();
            let (mut guesses, mut path) = (Guesses::default(), Vec::new());
            for index in 0..DRAFT_LENGTH {
                let after = After { text: &context, guesses: &path };
                let Some(guess) = sampler.guess(drafted.row(index), after, 1)?.pop() else { break };
                path.push(guess.token);
                guesses.follow(guess);
            }
            draft.push(micros(start) / DRAFT_LENGTH as f64);
            path.iter().for_each(|&token| hash.add(token));

            let start = Instant::now();
            let p = |parent: Option<usize>| {
                let after = After { text: &context, guesses: &guesses.path(parent) };
                Distribution::processed(target.row(Guesses::row(parent)), &sampling, &penalties.at(after))
            };
            let verdict = accept(&guesses, Verification::Block, position, p, &mut generator)?;
            verify.push(micros(start));
            accepted += verdict.path.len();
            hash.add(verdict.path.len() as TokenId);
            hash.add(verdict.extra);
        }
        let of = |values: Vec<f64>| median(values).unwrap_or_default();
        Ok(Self {
            row: of(row),
            draft: of(draft),
            verify: of(verify),
            accepted: accepted as f64 / rounds.len() as f64,
            tokens: format!("{:016x}", hash.0),
            ..self
        })
    }

    fn line(&self) -> String {
        let Self { vocabulary, temperature, top_p, row, draft, verify, accepted, tokens, .. } = self;
        let penalties = if self.penalties { "yes" } else { "no" };
        let mode = if self.reproducible { "reproducible" } else { "fastest" };
        format!(
            "{vocabulary:>10} {temperature:>5} {top_p:>6}  {penalties:<9}  {mode:<12} {row:>7.0} {draft:>9.0} \
             {verify:>10.0} {accepted:>9.2}  {tokens}"
        )
    }
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

/// Logits of one round.
struct Rows {
    target: Vec<f32>, // [DRAFT_LENGTH + 1, vocabulary]
    draft: Vec<f32>,  // [DRAFT_LENGTH, vocabulary]
    peaks: Vec<Peak>, // of the target's rows, then of the draft's
}

impl Rows {
    /// Normally distributed logits with a few hundred likelier tokens on top: some rows are certain
    /// of a token, others are not. The draft's are scaled down and noisy.
    fn new(vocabulary: u32, round: u32) -> Self {
        let random = &mut Random(u64::from(round) << 32 | u64::from(vocabulary));
        let mut target = Vec::new();
        for _ in 0..=DRAFT_LENGTH {
            let row: Vec<f32> = (0..vocabulary).map(|_| 2.5 * random.normal()).collect();
            target.extend(row);
            let start = target.len() - vocabulary as usize;
            let (height, slope) = (10.0 + 10.0 * random.uniform(), 0.4 + random.uniform());
            for rank in 1..200u16 {
                let token = (random.next() % u64::from(vocabulary)) as usize;
                target[start + token] = height - slope * f32::from(rank).ln() * 3.0 + random.normal();
            }
        }
        let drafted = &target[..DRAFT_LENGTH * vocabulary as usize];
        let draft: Vec<f32> = drafted.iter().map(|logit| 0.9 * logit + 0.7 * random.normal()).collect();
        let rows = target.chunks(vocabulary as usize).chain(draft.chunks(vocabulary as usize));
        let peaks = rows.map(Peak::of).collect();
        Self { target, draft, peaks }
    }
}

/// Text with sequences that repeat.
fn text(vocabulary: u32) -> Vec<TokenId> {
    let random = &mut Random(1);
    let mut text: Vec<TokenId> = Vec::new();
    while text.len() < TEXT {
        let repeated = random.next() as usize % 30;
        if random.uniform() < 0.3 && text.len() > 60 {
            let start = text.len() - 30 - repeated;
            text.extend_from_within(start..start + 12);
        } else {
            text.push((random.next() % u64::from(vocabulary)) as TokenId);
        }
    }
    text
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Number in 0..1.
    fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Standard normal number (Irwin-Hall of twelve).
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.uniform()).sum::<f32>() - 6.0
    }
}

/// FNV-1a over tokens.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, token: TokenId) {
        for byte in token.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
