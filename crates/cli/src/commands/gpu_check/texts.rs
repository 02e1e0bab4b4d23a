//! Whether the device writes what the CPU writes.

use foretoken_engine::check::difference;
use foretoken_engine::decoder::Request;
use foretoken_engine::device::Opened;
use foretoken_engine::sampling::{Mode, Sampling};
use foretoken_engine::speculation::Speculation;
use foretoken_library::{STARTER, STARTER_DRAFT};
use serde::Serialize;

use super::models::{on_the_cpu, there};
use crate::commands::bench::prompts::{Workload, built_in, requests};
use crate::commands::bench::runs::write;
use crate::error::Result;
use crate::output;
use crate::session::{form, open};

/// The starter's replies on the device against those on the CPU without drafts, of one way to choose tokens.
#[derive(Serialize)]
pub struct Text {
    pub way: &'static str,
    pub replies: usize,
    pub tokens: usize,
    /// Replies that are the CPU's to the last token.
    pub same: usize,
    /// Of the others those whose two tokens the CPU scores about alike: by no more than four times what its
    /// logits and the device's are apart anyway, as both round activations. Any further ones are a mistake.
    pub near_ties: usize,
}

impl Text {
    /// Replies that differ where rounding is no excuse.
    pub fn mistakes(&self) -> usize {
        self.replies - self.same - self.near_ties
    }
}

/// Every way, over the built-in prompts. `apart` is how far logits are from the CPU's.
pub fn compare(device: &Opened, apart: f32, quick: bool) -> Result<Vec<Text>> {
    output::note("comparing the starter's texts with those of the CPU");
    let source = open(STARTER)?;
    let mut there = there(&source, form(&source, false)?, &open(STARTER_DRAFT)?, device)?;
    let mut here = on_the_cpu(&source, form(&source, false)?)?;
    // Without penalties, which the sampler adds whatever the device: a near tie is one of the device's own scores.
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
        let requests = requests(&here, texts, &base)?;
        let mut found = Text { way, replies: requests.len(), tokens: 0, same: 0, near_ties: 0 };
        for request in requests {
            let expected = write(&mut here, &request)?.tokens;
            let reply = write(&mut there, &Request { speculation: speculation.clone(), ..request.clone() })?;
            found.tokens += expected.len();
            match difference(here.decoder.target_mut(), &request, &reply.tokens, &expected)? {
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
