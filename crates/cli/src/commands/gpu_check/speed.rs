//! Speed of a model on the device, and how close it comes to the memory bandwidth.

use std::path::Path;
use std::time::Instant;

use candle_core::{DType, Tensor};
use foretoken_engine::decoder::Request;
use foretoken_engine::session::Form;
use foretoken_engine::speculation::{DrafterChoice, MAX_DRAFT_LENGTH, Speculation};
use foretoken_forward::device::{Device, Opened};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{LogitSubset, Model, Want};
use foretoken_model::ModelSource;
use foretoken_model::sampling::Sampling;
use serde::Serialize;

use super::models::session_on;
use crate::commands::bench::cost::{
    CONTEXT, RowCost, draft_cost, fill_with_text, milliseconds, prompt_speed, verify_cost,
};
use crate::commands::bench::numbers::median;
use crate::commands::bench::prompts::{Workload, built_in, requests};
use crate::commands::bench::runs::{self, compare};
use crate::error::Result;
use crate::output;
use crate::random::mixture::Weights;
use crate::random::shape::SHAPES;
use crate::random::{RandomModel, file};

/// Draft lengths to measure beside the governor's choice.
const LENGTHS: [usize; 3] = [2, 4, 7];

/// Acceptance rate that the estimated speedup assumes.
pub const ACCEPTANCE: f64 = 0.7;

const REPEATS: usize = 15;

/// Speed of one model, with its first layers as a draft.
#[derive(Serialize)]
pub struct Speed {
    pub model: String,
    /// Size of the target's file.
    pub bytes: u64,
    pub plain: runs::Speed,
    pub speculative: Vec<Drafted>,
    pub verify_cost: Vec<RowCost>,
    /// Milliseconds to draft a token; null if nothing was drafted.
    pub draft_ms: Option<f64>,
    /// Milliseconds until the layers of a pass over one row are submitted, without the logits: the
    /// CPU's share, which counts where the CPU is slower than the device.
    pub host_ms: f64,
    /// Null where the device does not run this engine's own kernels.
    pub pass_work: Option<PassWork>,
    pub prompt_tokens_per_second: f64,
    /// Best speedup possible at these costs and 70 % acceptance, and the draft length it needs.
    pub estimate: Option<(f64, usize)>,
}

/// GPU work of a pass over one row.
#[derive(Serialize)]
pub struct PassWork {
    /// Dispatches, including those for the logits.
    pub dispatches: usize,
    /// Dispatches per layer, without those for the logits.
    pub per_layer: f64,
    /// Bytes of weights read.
    pub read_bytes: u64,
}

/// One way of drafting.
#[derive(Serialize)]
pub struct Drafted {
    pub name: String,
    #[serde(flatten)]
    pub speed: runs::Speed,
}

/// The model of a quick look.
pub fn quick() -> RandomModel {
    RandomModel { shape: SHAPES[0], weights: Weights::Q4KM }
}

/// Measures memory bandwidth by adding 1 to an array, or by copying one.
pub fn memory_gb_s(device: &Device, quick: bool) -> Result<f64> {
    let numbers: usize = if quick { 1 << 22 } else { 1 << 28 };
    let mut best = 0.0_f64;
    let mut time = |pass: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        for _ in 0..5 {
            device.wait()?;
            let start = Instant::now();
            pass()?;
            device.wait()?;
            best = best.max(2.0 * 4.0 * numbers as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
        Ok(best)
    };
    let device = match device {
        Device::Gpu(gpu) => {
            let copy = gpu.copier(4 * numbers)?;
            return time(&mut || {
                copy();
                Ok(())
            });
        }
        Device::Cpu => &candle_core::Device::Cpu,
        Device::Tensors(device) => device,
    };
    let source = Tensor::ones(numbers, DType::F32, device).map_err(engine)?;
    time(&mut || (&source + 1.0).map(drop).map_err(engine))
}

fn engine(error: candle_core::Error) -> crate::error::Error {
    foretoken_model::Error::from(error).into()
}

pub fn measure(model: RandomModel, device: &Opened, folder: &Path, quick: bool) -> Result<Speed> {
    let pair = file::make(model, folder)?;
    output::note(format_args!("measuring {model}"));
    let target = ModelSource::open(&pair.target)?;
    let draft = match &pair.draft {
        Some(draft) => ModelSource::open(draft)?,
        None => target.mtp_head()?,
    };
    let mut session = session_on(&target, Form::Raw, &draft, device)?;
    let base = Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(if quick { 16 } else { 128 }),
        ignore_end: true,
        continues: true,
        ..Request::new(Vec::new())
    };
    let texts = built_in(Workload::default());
    let requests = requests(&session, &texts[..if quick { 1 } else { 3 }], &base)?;
    let drafted = |speculation| Speculation { drafter: DrafterChoice::Model, ..speculation };
    let mut ways = vec![("plain".to_owned(), Speculation::off())];
    ways.push(("auto".to_owned(), drafted(Speculation::default())));
    let fixed = |length: usize| (length.to_string(), drafted(Speculation::fixed(length)));
    ways.extend(LENGTHS.into_iter().map(fixed));
    let mut totals = compare(&mut session, &requests, &ways, if quick { 1 } else { 3 }, false)?.into_iter();
    let plain = totals.next().unwrap_or_default().plain();
    let speculative = ways.into_iter().skip(1).zip(totals);
    let speculative = speculative.map(|((name, _), totals)| Drafted { name, speed: totals.speculative() });
    let speculative = speculative.collect();
    let verify_cost = verify_cost(&mut session, &requests, CONTEXT)?;
    let draft_ms = draft_cost(&mut session, &requests)?;
    let target = session.decoder.target_mut();
    let prompt_tokens_per_second = prompt_speed(target, &requests)?;
    let host_ms = host_ms(target, &requests, &device.device)?;
    Ok(Speed {
        model: model.to_string(),
        bytes: pair.bytes,
        plain,
        speculative,
        host_ms,
        pass_work: pass_work(target)?,
        prompt_tokens_per_second,
        estimate: draft_ms.and_then(|draft_ms| estimate(&verify_cost, draft_ms)),
        verify_cost,
        draft_ms,
    })
}

/// Measures a pass without logits, which returns before the device is done.
fn host_ms(target: &mut dyn Model, requests: &[Request], device: &Device) -> Result<f64> {
    fill_with_text(target, requests)?;
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        device.wait()?;
        let start = Instant::now();
        let pass = target.run(&TokenTree::chain([0]), &Want::nothing())?;
        times.push(milliseconds(start));
        pass.keep(&[])?;
    }
    Ok(median(times).unwrap_or_default())
}

fn pass_work(target: &mut dyn Model) -> Result<Option<PassWork>> {
    let mut run = |want: &Want<'_>| -> Result<_> {
        target.run(&TokenTree::chain([0]), want)?.keep(&[])?;
        Ok(target.dispatch_stats().map(|pass_work| (pass_work, target.config().depth())))
    };
    let layers = run(&Want::nothing())?;
    let all = run(&Want::all_rows().subset(LogitSubset::Peaks))?;
    Ok(layers.zip(all).map(|((of_layers, layers), (all, _))| PassWork {
        dispatches: all.dispatches,
        per_layer: of_layers.dispatches as f64 / layers as f64,
        read_bytes: all.bytes,
    }))
}

/// Estimated speedup by Leviathan et al. 2023: (1 + P + ... + P^N) / (N T_s + T_v(N + 1)) against 1
/// / T_v(1).
fn estimate(verify_cost: &[RowCost], draft_ms: f64) -> Option<(f64, usize)> {
    let one = verify_cost.first()?.ms;
    let speedup = |length: usize| {
        let tokens: f64 = (0..=length as i32).map(|depth| ACCEPTANCE.powi(depth)).sum();
        let ms = length as f64 * draft_ms + verify_cost.get(length)?.ms;
        Some((tokens * one / ms, length))
    };
    (1..=MAX_DRAFT_LENGTH).filter_map(speedup).max_by(|left, right| left.0.total_cmp(&right.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_rows_and_drafts_reach_the_geometric_sum_and_expensive_ones_gain_nothing() {
        let flat = RowCost::of((1..=17).map(|rows| (rows, 10.0)));
        let (speedup, length) = estimate(&flat, 0.0).unwrap();
        assert_eq!(length, MAX_DRAFT_LENGTH);
        assert!((speedup - (1.0 - ACCEPTANCE.powi(17)) / (1.0 - ACCEPTANCE)).abs() < 1e-9);
        let steep = RowCost::of((1..=17).map(|rows| (rows, 10.0 * rows as f64)));
        assert!(estimate(&steep, 1.0).unwrap().0 < 1.0);
    }
}
