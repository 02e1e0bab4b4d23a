//! Automatic choice of a model's device: the fastest GPU, if a token takes less time there than on
//! the CPU. This is measured once per model and GPU, on a part of the model, which is faster than
//! loading it twice. The result is saved.

use std::time::{Duration, Instant};

use foretoken_forward::device::{Candidate, DeviceChoice, DeviceNote, DeviceRemark, Opened, Role};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{LogitSubset, Model, Want};
use foretoken_model::error::{Error, Result};
use foretoken_model::{ModelSource, Part};

use super::Host;
use super::learning::{Pair, TokenTimes};

/// Bytes of measured layers: more than most processors' caches hold.
const BYTES: u64 = 96_000_000;

/// Time limit of a measurement, which has at least [`FEWEST`] samples.
const WITHIN: Duration = Duration::from_millis(150);
const FEWEST: usize = 2;

/// Factor over the CPU's time from which a GPU's measurement ends early.
const HOPELESS: f64 = 4.0;

/// Device for a model by `choice`; the faster one if it leaves that open.
pub fn choose(host: &Host, source: &ModelSource, role: Role, choice: &DeviceChoice) -> Opened {
    let cpu = host.hardware.open(choice);
    if !cpu.undecided {
        return cpu;
    }
    faster(host, source, role, &host.hardware.candidates(), cpu)
}

/// Device for a draft model whose target is on `gpu`: the CPU, if that is faster.
pub fn beside(host: &Host, source: &ModelSource, gpu: &Opened) -> Opened {
    let candidates = host.hardware.candidates();
    match candidates.iter().find(|candidate| gpu.is(&candidate.choice)) {
        Some(one) => faster(host, source, Role::Draft, std::slice::from_ref(one), Opened::cpu()),
        None => gpu.clone(),
    }
}

/// The fastest of `gpus`, or the CPU if it is faster.
fn faster(host: &Host, source: &ModelSource, role: Role, gpus: &[Candidate], cpu: Opened) -> Opened {
    let (mut fastest, mut why): (Option<Measured<'_>>, _) = (None, None);
    for gpu in gpus {
        match times(host, source, gpu, &cpu) {
            Ok(Some((times, open))) => {
                if fastest.as_ref().is_none_or(|(_, known, _)| times.gpu_ms < known.gpu_ms) {
                    fastest = Some((gpu, times, open));
                }
            }
            Ok(None) => return cpu,
            Err(reason) => why = why.or(reason),
        }
    }
    let Some((gpu, times, open)) = fastest else { return Opened { note: why, ..cpu } };
    let TokenTimes { gpu_ms, cpu_ms } = times;
    let takes_less = gpu_ms < cpu_ms;
    let opened =
        if takes_less { open.unwrap_or_else(|| host.hardware.open(&gpu.choice)) } else { cpu.clone() };
    // The remark that another build could use the GPU does not apply: this one tried it.
    let remark = cpu.remark.filter(|remark| !matches!(remark, DeviceRemark::CpuInstead { .. }));
    let note = DeviceNote::Measured { role, gpu: gpu.name.clone(), gpu_ms, cpu_ms };
    let note = Some(note).filter(|_| takes_less == opened.gpu.is_some());
    Opened { remark: opened.remark.filter(|_| takes_less).or(remark), note, ..opened }
}

/// GPU, its measured times, and the open device if it was opened for that.
type Measured<'a> = (&'a Candidate, TokenTimes, Option<Opened>);

/// Saved or measured times, and the GPU if it was opened; `None` for a model that cannot run alone.
///
/// # Errors
/// Reason why the GPU is not used, if there is one to show.
fn times(
    host: &Host,
    source: &ModelSource,
    gpu: &Candidate,
    cpu: &Opened,
) -> std::result::Result<Option<(TokenTimes, Option<Opened>)>, Option<DeviceNote>> {
    let mut devices = vec![gpu.name.clone(), gpu.driver.clone(), cpu.label.to_string()];
    // Kernels become faster with new versions.
    devices.push(env!("CARGO_PKG_VERSION").to_owned());
    devices.extend(source.eight_bits().then(|| "eight bits".to_owned()));
    let pair = Pair { models: vec![source.path().to_owned()], devices };
    let learning = host.learning.as_ref();
    if let Some(known) = learning.and_then(|learning| learning.load_times(&pair)) {
        return Ok(Some((known, None)));
    }
    let opened = host.hardware.open(&gpu.choice);
    if opened.gpu.is_none() {
        return Err(opened.remark.map(|remark| DeviceNote::NotOpened { remark }));
    }
    let measured = measure(host, source, &opened);
    let failed =
        |error: Error| Some(DeviceNote::NotMeasured { gpu: gpu.name.clone(), detail: error.to_string() });
    let Some(times) = measured.map_err(failed)? else { return Ok(None) };
    tracing::info!("{}: {times:?}", gpu.name);
    if let Some(Err(error)) = learning.map(|learning| learning.save_times(&pair, &times)) {
        tracing::warn!("how fast the GPU is is not kept: {error}");
    }
    Ok(Some((times, Some(opened))))
}

fn measure(host: &Host, source: &ModelSource, gpu: &Opened) -> Result<Option<TokenTimes>> {
    let Some(part) = source.part(BYTES)? else { return Ok(None) };
    let load = |opened: &Opened| host.hardware.load(&part.source, opened);
    // If the GPU cannot load it, the CPU is not measured.
    let mut there = load(gpu)?;
    let cpu_ms = token_ms(load(&Opened::cpu())?.as_mut(), &part, f64::INFINITY)?;
    Ok(Some(TokenTimes { gpu_ms: token_ms(there.as_mut(), &part, HOPELESS * cpu_ms)?, cpu_ms }))
}

/// Milliseconds per token of the whole model: consecutive passes over the part, as many as make up
/// all layers, and the output matrix scaled by its size. The shortest of several measurements
/// counts, since other work only makes them longer. One above `hopeless` ends it.
fn token_ms(model: &mut dyn Model, part: &Part, hopeless: f64) -> Result<f64> {
    let nothing = Want::nothing();
    let logits = Want::all_rows().subset(LogitSubset::Peaks);
    let passes = part.layers.round() as usize;
    // The first pass touches memory for the first time.
    passes_ms(model, 1, &logits)?;
    let [mut layers, mut without, mut with] = [f64::INFINITY; 3];
    let begin = Instant::now();
    for turn in 1.. {
        layers = layers.min(passes_ms(model, passes, &nothing)?);
        if layers > hopeless {
            return Ok(layers);
        }
        without = without.min(passes_ms(model, 1, &nothing)?);
        with = with.min(passes_ms(model, 1, &logits)?);
        if turn >= FEWEST && begin.elapsed() > WITHIN {
            break;
        }
    }
    Ok(layers * part.layers / passes as f64 + (with - without).max(0.0) * part.vocabulary)
}

/// Milliseconds of `passes` passes over one token, of which nothing stays cached.
fn passes_ms(model: &mut dyn Model, passes: usize, want: &Want<'_>) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..passes {
        model.run(&TokenTree::chain([0]), want)?.keep(&[])?;
    }
    model.wait()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
