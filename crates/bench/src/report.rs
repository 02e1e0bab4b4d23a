//! Figures of a model with random weights, as JSON and as tables.

use foretoken_cli::commands::bench::cost::RowCost;
use foretoken_cli::commands::bench::numbers::number;
use foretoken_cli::commands::bench::runs::Speed;
use serde::Serialize;

/// All results of a model. Greedy decoding; speeds are medians in tokens per second.
#[derive(Serialize)]
#[serde(tag = "type", rename = "bench_random")]
pub struct Report {
    pub model: String,
    pub target: String,
    pub draft: String,
    pub device: String,
    /// Length of a reply.
    pub tokens: u32,
    pub repeats: u32,
    /// Prefill speed over 512 tokens, including the first token after them.
    pub prompt_tokens_per_second: Option<f64>,
    pub plain: Speed,
    /// By draft length.
    pub speculative: Vec<Drafted>,
    #[serde(flatten)]
    pub memory: Memory,
    /// Missing unless requested.
    #[serde(flatten)]
    pub costs: Option<Costs>,
    /// Null without llama.cpp.
    pub llama_cpp: Option<Theirs>,
}

/// Speculative decoding with one draft length.
#[derive(Serialize)]
pub struct Drafted {
    pub draft_length: usize,
    #[serde(flatten)]
    pub speed: Speed,
    /// Speed over plain decoding's.
    pub speedup: Option<f64>,
}

/// Memory of the target alone, after a prompt and a reply.
#[derive(Serialize)]
pub struct Memory {
    pub file_bytes: u64,
    /// Keys and values of the cached tokens.
    pub cache_bytes: u64,
    /// Resident memory of the whole program; null if the system does not report it.
    pub resident_bytes: Option<u64>,
    /// Resident memory over file and cache.
    pub resident_ratio: Option<f64>,
}

/// Cost of passes, and the bandwidth that limits them.
#[derive(Serialize)]
pub struct Costs {
    pub verify_cost: Vec<RowCost>,
    /// Milliseconds to draft a token; null if nothing was drafted.
    pub draft_ms: Option<f64>,
    /// Bandwidth of reading these weights; null, like the next two fields, if they are on another
    /// device.
    pub read_bandwidth_gb_s: Option<f64>,
    pub weight_bytes_per_token: Option<u64>,
    /// Share of the bandwidth that plain decoding reaches.
    pub bandwidth_share: Option<f64>,
}

/// llama.cpp on the same files.
#[derive(Serialize)]
pub struct Theirs {
    pub folder: String,
    pub prompt_tokens_per_second: Option<f64>,
    pub plain_tokens_per_second: Option<f64>,
    pub speculative: Vec<TheirDrafted>,
    /// Passes that compute only the logits of their last row.
    pub verify_cost: Option<Vec<RowCost>>,
    pub ratios: Option<Ratios>,
    /// A sentence for every program that was left out.
    pub failures: Vec<String>,
}

#[derive(Serialize)]
pub struct TheirDrafted {
    pub draft_length: usize,
    /// Probability of a token below which a draft ends.
    pub least_probability: f64,
    pub tokens_per_second: Option<f64>,
    pub accepted_of_drafted: Option<f64>,
}

/// Our tokens per second over llama.cpp's; null if one of the two is missing.
#[derive(Serialize)]
pub struct Ratios {
    pub prompt: Option<f64>,
    pub plain: Option<f64>,
    /// Each with its best setting.
    pub speculative: Option<f64>,
}

impl Memory {
    pub fn new(file_bytes: u64, cache_bytes: u64, resident_bytes: Option<u64>) -> Self {
        let ratio = |resident| resident as f64 / (file_bytes + cache_bytes) as f64;
        Self { file_bytes, cache_bytes, resident_bytes, resident_ratio: resident_bytes.map(ratio) }
    }
}

impl Report {
    /// The report with its ratios.
    pub fn compared(mut self) -> Self {
        let ours = self.best().and_then(|drafted| drafted.speed.tokens_per_second);
        let (prompt, plain) = (self.prompt_tokens_per_second, self.plain.tokens_per_second);
        if let Some(theirs) = &mut self.llama_cpp {
            let best = theirs.best(|_| true).and_then(|drafted| drafted.tokens_per_second);
            theirs.ratios = Some(Ratios {
                prompt: ratio(prompt, theirs.prompt_tokens_per_second),
                plain: ratio(plain, theirs.plain_tokens_per_second),
                speculative: ratio(ours, best),
            });
        }
        self
    }

    /// The fastest draft length.
    fn best(&self) -> Option<&Drafted> {
        let speed = |drafted: &&Drafted| drafted.speed.tokens_per_second.unwrap_or(0.0);
        self.speculative.iter().max_by(|a, b| speed(a).total_cmp(&speed(b)))
    }

    pub fn table(&self) -> String {
        let Self { model, device, tokens, repeats, target, .. } = self;
        let mut lines = vec![
            format!("{model}, {device}: {target}"),
            format!("medians of {repeats} replies of {tokens} tokens\n"),
        ];
        lines.extend(self.speeds());
        lines.extend(self.costs.iter().flat_map(|costs| self.passes(costs)));
        lines.push(String::new());
        lines.extend(self.facts());
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn speeds(&self) -> Vec<String> {
        let theirs = self.llama_cpp.as_ref();
        let line = |name: &str, ours: Option<f64>, drafts: &str, theirs: Option<f64>| {
            let (speed, their_speed) = (number(ours, 1), number(theirs, 1));
            let beside = match self.llama_cpp {
                Some(_) => format!("  {their_speed:>9}  {:>5}", number(ratio(ours, theirs), 2)),
                None => String::new(),
            };
            format!("{name:14}  {speed:>8}  {drafts:>27}{beside}").trim_end().to_owned()
        };
        let beside = if theirs.is_some() { "  llama.cpp  ratio" } else { "" };
        let prompt = theirs.and_then(|theirs| theirs.prompt_tokens_per_second);
        let plain = theirs.and_then(|theirs| theirs.plain_tokens_per_second);
        let mut lines = vec![
            format!("                tokens/s  acceptance  tokens per round{beside}"),
            line("prompt of 512", self.prompt_tokens_per_second, "", prompt),
            line("plain", self.plain.tokens_per_second, "", plain),
        ];
        let drafts = |speed: &Speed| {
            let rate = speed.acceptance_rate.map_or("-".to_owned(), |rate| format!("{:.1} %", rate * 100.0));
            format!("{rate:>9}  {:>16}", number(speed.tokens_per_round, 2))
        };
        for Drafted { draft_length, speed, .. } in &self.speculative {
            let same = |drafted: &TheirDrafted| drafted.draft_length == *draft_length;
            let theirs = theirs.and_then(|theirs| theirs.best(same)?.tokens_per_second);
            lines.push(line(
                &format!("drafts of {draft_length}"),
                speed.tokens_per_second,
                &drafts(speed),
                theirs,
            ));
        }
        if let Some(best) = self.best() {
            let theirs = theirs.and_then(|theirs| theirs.best(|_| true)?.tokens_per_second);
            let speedup = format!("{} times plain", number(best.speedup, 2));
            lines.push(line(
                &format!("best, of {}", best.draft_length),
                best.speed.tokens_per_second,
                &speedup,
                theirs,
            ));
        }
        lines
    }

    fn passes(&self, costs: &Costs) -> Vec<String> {
        let theirs = self.llama_cpp.as_ref().and_then(|theirs| theirs.verify_cost.as_ref());
        let beside = if theirs.is_some() { "  llama.cpp ms  ratio" } else { "" };
        let mut lines = vec![format!("\n{}{beside}", RowCost::heading(&costs.verify_cost))];
        for ours in &costs.verify_cost {
            let theirs = theirs.and_then(|theirs| theirs.iter().find(|cost| cost.rows == ours.rows));
            let beside =
                theirs.map_or(String::new(), |cost| format!("  {:>12.3}  {:>5.2}", cost.ms, cost.ratio));
            lines.push(format!("{}{beside}", ours.line()));
        }
        if theirs.is_some() {
            lines.push("llama.cpp's passes score their last row alone, ours all".to_owned());
        }
        lines
    }

    fn facts(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(costs) = &self.costs {
            lines.extend(costs.draft_ms.map(|ms| format!("drafting a token takes {ms:.3} ms")));
            let read = costs.read_bandwidth_gb_s.zip(costs.weight_bytes_per_token).zip(costs.bandwidth_share);
            lines.extend(read.map(|((speed, bytes), share)| {
                format!(
                    "these weights can be read at {speed:.1} GB/s; plain decoding reads {} MB a token, at {:.0} % of \
                     that",
                    bytes / 1_000_000,
                    share * 100.0
                )
            }));
        }
        let Memory { file_bytes, resident_bytes, resident_ratio, .. } = self.memory;
        let resident = resident_bytes.zip(resident_ratio).map_or(String::new(), |(bytes, ratio)| {
            format!("; {} MB in memory, {ratio:.2} times file and cache", bytes / 1_000_000)
        });
        lines.push(format!("the file has {} MB{resident}", file_bytes / 1_000_000));
        lines.extend(self.llama_cpp.iter().flat_map(|theirs| theirs.failures.clone()));
        lines
    }
}

impl Theirs {
    /// The fastest of the settings that `wanted` selects.
    fn best(&self, wanted: impl Fn(&TheirDrafted) -> bool) -> Option<&TheirDrafted> {
        let speed = |drafted: &&TheirDrafted| drafted.tokens_per_second.unwrap_or(0.0);
        self.speculative.iter().filter(|drafted| wanted(drafted)).max_by(|a, b| speed(a).total_cmp(&speed(b)))
    }
}

fn ratio(ours: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    Some(ours? / theirs?)
}
