//! Sessions whose GPU is full, is lost, hangs or returns nothing: the text so far is kept and
//! continued on the CPU. Runs on a software renderer if there is no GPU.

use std::sync::Mutex;
use std::time::Duration;

use foretoken_forward::device::{Candidate, Device, DeviceLabel, Gpu, Problem};
use foretoken_forward::gpu::GpuDevice;
use foretoken_forward::{GpuModel, Model};
use foretoken_model::token::TokenId;

use super::tests::{host, load, request};
use super::*;

/// The first GPU, opened once and shared by the sessions of a test.
struct FirstGpu {
    device: Arc<GpuDevice>,
    /// Number of models loaded onto it.
    loaded: Mutex<usize>,
}

impl FirstGpu {
    fn open() -> Arc<Self> {
        Arc::new(Self { device: GpuDevice::open(0, true).unwrap(), loaded: Mutex::default() })
    }
}

impl Hardware for FirstGpu {
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<DeviceLabel, Problem>)> {
        Vec::new()
    }

    fn open(&self, choice: &DeviceChoice) -> Opened {
        if *choice == DeviceChoice::Cpu {
            return Opened::cpu();
        }
        let (device, label) =
            (Device::Gpu(Arc::clone(&self.device)), DeviceLabel::of_gpu(self.device.label()));
        Opened { device, gpu: Some(Gpu::Any), label, ..Opened::cpu() }
    }

    fn candidates(&self) -> Vec<Candidate> {
        Vec::new()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>> {
        let Device::Gpu(device) = &opened.device else { return ThisComputer.load(source, opened) };
        let model = GpuModel::load(source, device)?;
        *self.loaded.lock().unwrap() += 1;
        Ok(Box::new(model))
    }
}

/// Result of a reply whose device failed midway.
struct Interrupted {
    error: Error,
    session: Session,
    /// Tokens written before the failure and by the recovered session.
    tokens: Vec<TokenId>,
}

/// Applies `harm` to the device after three tokens.
fn interrupted(gpu: &Arc<FirstGpu>, harm: impl Fn(&GpuDevice)) -> Interrupted {
    let mut session = load(&host(gpu.clone(), None));
    assert_eq!((session.device().gpu, *gpu.loaded.lock().unwrap()), (Some(Gpu::Any), 1));
    let request = Request { ignore_end: true, ..request(&session) };
    let mut tokens: Vec<TokenId> = Vec::new();
    let reply = session.reply(&request, &mut |progress| {
        if let Progress::Round(round) = progress {
            tokens.extend(round.emitted().map(|(token, _)| token));
            if tokens.len() == 3 {
                harm(&gpu.device);
            }
        }
        ControlFlow::Continue(())
    });
    let error = reply.map(|reply| reply.text).unwrap_err();
    assert_eq!(tokens.len(), 3, "{error}");
    let remedy = session.remedy(&error).unwrap();
    let mut session = session.recover(remedy, |source| source).unwrap();
    let prompt = [&request.prompt[..], &tokens].concat();
    let rest = Request { prompt, max_tokens: request.max_tokens.map(|most| most - 3), ..request };
    tokens.extend(session.reply(&rest, &mut |_| ControlFlow::Continue(())).unwrap().tokens);
    Interrupted { error, session, tokens }
}

/// Reply of the CPU without a failure.
fn undisturbed() -> Vec<TokenId> {
    let mut session = load(&host(Arc::new(ThisComputer), None));
    let request = Request { ignore_end: true, ..request(&session) };
    session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap().tokens
}

#[test]
fn a_reply_continues_on_the_cpu_when_its_gpu_is_lost_or_hangs() {
    let expected = undisturbed();
    let hang = |device: &GpuDevice| device.bound(|bounds| bounds.timeout = Duration::ZERO);
    for (found, words) in [
        (interrupted(&FirstGpu::open(), GpuDevice::lose), "the computation failed: "),
        (
            interrupted(&FirstGpu::open(), hang),
            "the computation failed: the GPU did not answer for 0 seconds.",
        ),
    ] {
        assert!(found.error.to_string().starts_with(words), "{}", found.error);
        assert_eq!(found.session.device().gpu, None);
        let remarks: Vec<_> = found.session.remarks().collect();
        assert_eq!(remarks, [&DeviceRemark::Failed { role: Role::Target }]);
        assert_eq!(found.tokens, expected);
    }
}

#[test]
fn a_target_larger_than_gpu_memory_runs_on_the_cpu() {
    let gpu = FirstGpu::open();
    gpu.device.bound(|bounds| bounds.free_memory = || 256 << 20);
    let mut session = load(&host(gpu.clone(), None));
    assert_eq!((session.device().gpu, *gpu.loaded.lock().unwrap()), (None, 0));
    let remarks: Vec<_> = session.remarks().collect();
    assert_eq!(remarks, [&DeviceRemark::NoRoom { role: Role::Target }]);
    let request = Request { ignore_end: true, ..request(&session) };
    let found = session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap().tokens;
    assert_eq!(found, undisturbed());
}

/// The starter's context is longer than a page of the cache, which the prompt fills here.
#[test]
fn a_cache_that_cannot_grow_ends_the_reply_and_then_the_context_is_shortened_or_the_model_moves_to_the_cpu() {
    let gpu = FirstGpu::open();
    let mut session = load(&host(gpu.clone(), None));
    let prompt: Vec<TokenId> = (0..250).map(|i| 3 + i * 761 % 4000).collect();
    let request = Request { ignore_end: true, prompt, ..request(&session) };
    let mut written = Vec::new();
    let reply = session.reply(&request, &mut |progress| {
        if let Progress::Round(round) = progress {
            gpu.device.bound(|bounds| bounds.buffer = 16);
            written.extend(round.emitted().map(|(token, _)| token));
        }
        ControlFlow::Continue(())
    });
    let error = reply.map(|reply| reply.text).unwrap_err();
    assert!(error.is_out_of_memory() && (5..8).contains(&written.len()), "{error}, {written:?}");
    let remedy = session.remedy(&error).unwrap();
    let session = session.recover(remedy, |source| source).unwrap();
    // A new model does not fit either.
    assert_eq!(session.device().gpu, None);
}
