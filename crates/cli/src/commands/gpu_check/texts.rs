//! Compares the texts that the device writes with the CPU's.

use foretoken_engine::check::difference;
use foretoken_engine::decoder::Request;
use foretoken_engine::speculation::Speculation;
use foretoken_forward::device::Opened;
use foretoken_library::{STARTER, STARTER_DRAFT};
use foretoken_model::sampling::{Mode, Sampling};
use serde::Serialize;

use super::models::{session_on, session_on_cpu};
use crate::commands::bench::prompts::{Workload, built_in, requests};
use crate::commands::bench::runs::write;
use crate::error::Result;
use crate::output;
use crate::session::{form, open};

/// Replies of the starter on the device against the CPU's without drafts, for one way of sampling.
#[derive(Serialize)]
pub struct Text {
    pub way: &'static str,
    pub replies: usize,
    pub tokens: usize,
    /// Number of replies identical to the CPU's.
    pub same: usize,
    /// Number of other replies that first differ at two tokens with nearly equal logits on the CPU:
    /// by at most four times the measured difference of logits. All further ones are mistakes.
    pub near_ties: usize,
}

impl Text {
    /// Number of replies that differ by more than rounding explains.
    pub fn mistakes(&self) -> usize {
        self.replies - self.same - self.near_ties
    }
}

/// Compares every way over the built-in prompts. `apart` is the largest difference from the CPU's
/// logits.
pub fn compare(device: &Opened, apart: f32, quick: bool) -> Result<Vec<Text>> {
    output::note("comparing the starter's texts with those of the CPU");
    let source = open(STARTER)?;
    let mut on_device = session_on(&source, form(&source, false)?, &open(STARTER_DRAFT)?, device)?;
    let mut on_cpu = session_on_cpu(&source, form(&source, false)?)?;
    // Without penalties, which are added after the device's logits: a near tie is one of these.
    let coupled = Sampling {
        seed: Some(7),
        mode: Mode::Reproducible,
        automatic_penalties: false,
        ..Sampling::default()
    };
    let ways = [
        ("greedy, plain", Sampling::greedy(), Speculation::off()),
        ("greedy, drafted", Sampling::greedy(), Speculation::default()),
        ("coupled, plain", coupled.clone(), Speculation::off()),
        ("coupled, drafted", coupled, Speculation::default()),
    ];
    let texts = built_in(Workload::default());
    let texts = if quick { &texts[..2] } else { &texts[..] };
    let way = |(way, sampling, speculation): (&'static str, Sampling, Speculation)| -> Result<Text> {
        let tokens = if quick { 16 } else { 128 };
        let base = Request { sampling, max_tokens: Some(tokens), ..Request::new(Vec::new()) };
        let requests = requests(&on_cpu, texts, &base)?;
        let mut found = Text { way, replies: requests.len(), tokens: 0, same: 0, near_ties: 0 };
        for request in requests {
            let expected = write(&mut on_cpu, &request)?.tokens;
            let reply =
                write(&mut on_device, &Request { speculation: speculation.clone(), ..request.clone() })?;
            found.tokens += expected.len();
            match difference(on_cpu.decoder.target_mut(), &request, &reply.tokens, &expected)? {
                None => found.same += 1,
                Some(difference) => {
                    found.near_ties += usize::from(difference.gap.is_some_and(|gap| gap <= 4.0 * apart))
                }
            }
        }
        Ok(found)
    };
    ways.into_iter().map(way).collect()
}
