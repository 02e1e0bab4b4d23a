//! Devices: chosen, changed, without room, and failing in the middle of a reply. The GPU is a made-up one,
//! which is the CPU and fails when it is told to.

use std::sync::{Arc, Mutex};

use foretoken_app::ipc::{DRAFT_NONE, EnginePhase, EngineStatus, Settings, Speculating};
use foretoken_engine::device::{DeviceChoice, Gpu, Opened};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::forward::{Model, Pass, Want, load};
use foretoken_engine::model::{ModelConfig, ModelSource};
use foretoken_engine::session::{Hardware, ThisComputer};
use foretoken_engine::token::TokenId;
use foretoken_engine::tree::TokenTree;
use foretoken_engine::{Error, Result};
use foretoken_tests::endless_model;

use super::{Fixture, Survey, let_draft, rounds};

const NO_MEMORY: &str = "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")";
const BROKEN: &str = "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access was encountered\")";

/// A failure that is a mistake in the program.
const PANIC: &str = "a panic";

/// A load that was asked for.
#[derive(Debug, Clone, PartialEq)]
struct Load {
    draft: bool,
    on_gpu: bool,
    context: usize,
}

/// What the GPU is to do, and what was asked of it.
#[derive(Default)]
struct Script {
    /// Whether drafts, and whether targets, have no room.
    full_for: Vec<bool>,
    /// After so many more passes of the draft, or the target, the GPU says this.
    fails: Option<(bool, usize, &'static str)>,
    loads: Vec<Load>,
}

#[derive(Clone, Default)]
struct FakeGpu {
    script: Arc<Mutex<Script>>,
}

impl FakeGpu {
    fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap());
    }

    fn loads(&self) -> Vec<Load> {
        std::mem::take(&mut self.script.lock().unwrap().loads)
    }

    /// With what this pass fails. A panic comes once.
    fn failure(&self, draft: bool) -> Option<&'static str> {
        let fails = &mut self.script.lock().unwrap().fails;
        let (_, left, words) = fails.as_mut().filter(|(of, ..)| *of == draft)?;
        let words = *words;
        match left.checked_sub(1) {
            Some(fewer) => {
                *left = fewer;
                return None;
            }
            None if words == PANIC => *fails = None,
            None => (),
        }
        Some(words)
    }
}

fn failure(words: &str) -> Error {
    Error::Compute(candle_core::Error::Msg(words.to_owned()))
}

impl Hardware for FakeGpu {
    fn survey(&self) -> Survey {
        ThisComputer.survey()
    }

    fn open(&self, choice: DeviceChoice) -> Opened {
        if choice == DeviceChoice::Cpu {
            return Opened::cpu();
        }
        Opened { gpu: Some(Gpu::Cuda), label: "CUDA, a GPU, 1 GB".to_owned(), ..Opened::cpu() }
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>> {
        let draft = source.path().to_str().unwrap().contains("draft");
        let on_gpu = opened.gpu.is_some();
        let mut script = self.script.lock().unwrap();
        script.loads.push(Load { draft, on_gpu, context: source.config()?.context });
        if on_gpu && script.full_for.contains(&draft) {
            return Err(failure(NO_MEMORY));
        }
        let inner = load(source, &opened.device)?;
        let gpu = self.clone();
        Ok(if on_gpu { Box::new(Failing { inner, draft, gpu }) } else { inner })
    }
}

struct Failing {
    inner: Box<dyn Model>,
    draft: bool,
    gpu: FakeGpu,
}

impl Model for Failing {
    fn config(&self) -> &ModelConfig {
        self.inner.config()
    }

    fn cached(&self) -> &[TokenId] {
        self.inner.cached()
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        match self.gpu.failure(self.draft) {
            Some(PANIC) => panic!("{PANIC}"),
            Some(words) => return Err(failure(words)),
            None => (),
        }
        self.inner.run(tree, want)
    }

    fn truncate(&mut self, length: usize) -> usize {
        self.inner.truncate(length)
    }
}

/// An application on a made-up GPU, and that GPU.
fn fixture() -> (Fixture, FakeGpu) {
    let gpu = FakeGpu::default();
    let fixture = Fixture::on(tempfile::tempdir().unwrap(), Box::new(gpu.clone()));
    fixture.set(|_| ());
    gpu.loads();
    (fixture, gpu)
}

/// Changes the settings and waits until that has come to what is wanted.
fn set_until(
    fixture: &Fixture,
    change: impl FnOnce(&mut Settings),
    wanted: impl Fn(&EngineStatus) -> bool,
) -> EngineStatus {
    let status = fixture.set(change);
    if wanted(&status) { status } else { fixture.wait_for(wanted) }
}

fn is_ready(status: &EngineStatus) -> bool {
    status.phase == EnginePhase::Ready && status.loading.is_none()
}

fn draft_is_on(status: &EngineStatus, device: &str) -> bool {
    is_ready(status) && status.draft_device.as_ref().is_some_and(|label| label.starts_with(device))
}

/// Which models were loaded, and whether onto the GPU.
fn places(gpu: &FakeGpu) -> Vec<(bool, bool)> {
    gpu.loads().iter().map(|load| (load.draft, load.on_gpu)).collect()
}

const TARGET: bool = false;
const DRAFT: bool = true;

#[test]
fn a_device_that_cannot_be_had_leaves_the_model_where_it_is_and_says_why() {
    if cfg!(any(feature = "cuda", feature = "metal")) {
        return;
    }
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (first, _) = fixture.send(None, "Count from one to five.");
    let status = fixture.set(|settings| settings.device = DeviceChoice::Cuda);
    assert!(status.device.starts_with("CPU, "), "{}", status.device);
    assert_eq!(status.draft_device.as_ref(), Some(&status.device));
    let [remark] = &status.device_remarks[..] else { panic!("{:?}", status.device_remarks) };
    assert!(remark.contains("CUDA") || remark.contains("NVIDIA"), "{remark}");
    assert!(remark.ends_with(". Using the CPU instead."), "{remark}");
    let usable: Vec<_> =
        status.devices.iter().map(|option| (option.choice, option.problem.is_none())).collect();
    let [auto, cpu, cuda, metal] = DeviceChoice::ALL;
    assert_eq!(usable, [(auto, true), (cpu, true), (cuda, false), (metal, false)]);
    // It was not loaded again: what it had read is still known.
    let (second, _) = fixture.send(Some(first.conversation.id), "And on.");
    assert!(second.reply.summary.unwrap().reused_tokens > 0);
}

#[test]
fn a_model_is_loaded_anew_when_its_device_changes_and_only_then() {
    let (fixture, gpu) = fixture();
    let status = fixture.status();
    assert_eq!(
        (status.device.as_str(), status.draft_device.as_deref()),
        ("CUDA, a GPU, 1 GB", Some("CUDA, a GPU, 1 GB"))
    );

    let to_cpu = |settings: &mut Settings| settings.draft_device = DeviceChoice::Cpu;
    let status = set_until(&fixture, to_cpu, |status| draft_is_on(status, "CPU"));
    assert_eq!(places(&gpu), [(DRAFT, false)]);
    assert!(status.device.starts_with("CUDA"));

    // The GPU is what auto takes: nothing moves.
    let to_gpu = |settings: &mut Settings| settings.device = DeviceChoice::Cuda;
    let status = set_until(&fixture, to_gpu, |status| status.device_choice == DeviceChoice::Cuda);
    assert_eq!((places(&gpu), status.device.as_str()), (vec![], "CUDA, a GPU, 1 GB"));

    let to_cpu = |settings: &mut Settings| {
        settings.device = DeviceChoice::Cpu;
        settings.draft_device = DeviceChoice::Auto;
    };
    let status = set_until(&fixture, to_cpu, |status| is_ready(status) && status.device.starts_with("CPU"));
    assert_eq!(places(&gpu), [(TARGET, false), (DRAFT, false)], "a draft is where its target is");
    assert_eq!(status.device_choice, DeviceChoice::Cpu);
    fixture.send(None, "Hello!");
}

#[test]
fn a_draft_without_room_on_the_gpu_drafts_on_the_cpu_and_the_why_line_says_so() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| script.full_for = vec![DRAFT]);
    let without = |settings: &mut Settings| let_draft(settings, DRAFT_NONE);
    set_until(&fixture, without, |status| status.draft_device.is_none());
    let with = |settings: &mut Settings| let_draft(settings, "starter-draft");
    let status = set_until(&fixture, with, |status| draft_is_on(status, "CPU"));
    assert_eq!(places(&gpu), [(DRAFT, true), (DRAFT, false)]);
    assert_eq!(status.why.state, Speculating::On);
    let sentence = "The draft runs on the CPU: it does not fit in GPU memory";
    assert_eq!(status.why.text, sentence);
    assert_eq!(status.device_remarks, [format!("{sentence}.")]);
    let (_, events) = fixture.send(None, "Count from one to five.");
    assert!(rounds(&events).iter().any(|round| round.accepted() > 0));
}

#[test]
fn a_target_without_room_on_the_gpu_replies_on_the_cpu_and_a_sentence_says_so() {
    let (fixture, gpu) = fixture();
    let to_cpu = |settings: &mut Settings| settings.device = DeviceChoice::Cpu;
    set_until(&fixture, to_cpu, |status| is_ready(status) && status.device.starts_with("CPU"));
    gpu.script(|script| script.full_for = vec![TARGET]);
    gpu.loads();
    let to_gpu = |settings: &mut Settings| settings.device = DeviceChoice::Cuda;
    let status =
        set_until(&fixture, to_gpu, |status| is_ready(status) && status.device_choice == DeviceChoice::Cuda);
    assert_eq!(places(&gpu), [(TARGET, true), (TARGET, false), (DRAFT, false)]);
    assert_eq!(status.message.as_deref(), Some("The target runs on the CPU: it does not fit in GPU memory."));
    assert!(status.device.starts_with("CPU"));
    fixture.send(None, "Hello!");
    // Other settings do not try it again.
    gpu.loads();
    fixture.set(|settings| (settings.device, settings.max_tokens) = (DeviceChoice::Cuda, 20));
    assert_eq!(places(&gpu), []);
}

#[test]
fn a_target_whose_gpu_breaks_keeps_what_was_written_and_goes_on_on_the_cpu() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| script.fails = Some((TARGET, 4, BROKEN)));
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    let streamed = rounds(&events);
    assert!(!streamed.is_empty() && !reply.reply.text.is_empty());
    assert_eq!(fixture.app.trace(reply.reply.id).unwrap(), streamed);
    let problem = reply.reply.problem.unwrap();
    assert!(problem.contains("illegal memory access"), "{problem}");
    assert!(problem.ends_with("Reloading the target on the CPU."), "{problem}");

    let status = fixture.wait_for(|status| is_ready(status) && status.device.starts_with("CPU"));
    assert_eq!(places(&gpu), [(TARGET, false), (DRAFT, false)]);
    assert!(status.message.unwrap().starts_with("The GPU failed, so the target now runs on the CPU."));
    assert_eq!(status.device_remarks.len(), 1, "{:?}", status.device_remarks);
    let (next, _) = fixture.send(Some(reply.conversation.id), "Go on.");
    assert_eq!((next.reply.problem, next.reply.summary.unwrap().tokens), (None, 40));
}

#[test]
fn a_panic_in_a_pass_ends_the_reply_and_the_model_is_loaded_again() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| script.fails = Some((TARGET, 4, PANIC)));
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    assert!(!rounds(&events).is_empty() && !reply.reply.text.is_empty());
    let problem = reply.reply.problem.unwrap();
    assert_eq!(problem, "The engine failed: the log has the reason. Try again; nothing stored is lost.");
    let failed = |status: &EngineStatus| status.message.as_ref().is_some_and(|m| m.contains("loaded again"));
    fixture.wait_for(|status| is_ready(status) && failed(status));
    let (next, _) = fixture.send(Some(reply.conversation.id), "Go on.");
    assert_eq!((next.reply.problem, next.reply.summary.unwrap().tokens), (None, 40));
}

#[test]
fn a_target_that_filled_the_gpu_goes_on_there_with_a_shorter_context() {
    let (fixture, gpu) = fixture();
    let endless = endless_model(fixture.folder.path());
    let entry = fixture.app.add_model(endless.path().to_str().unwrap()).unwrap();
    let endless = |settings: &mut Settings| {
        settings.target = entry.id.clone();
        let_draft(settings, DRAFT_NONE);
    };
    let with_context = |context: u32| {
        move |status: &EngineStatus| {
            is_ready(status) && status.target.as_ref().is_some_and(|target| target.context == context)
        }
    };
    set_until(&fixture, endless, with_context(32_768));
    gpu.loads();
    gpu.script(|script| script.fails = Some((TARGET, 6, NO_MEMORY)));
    let (reply, _) = fixture.send(None, "Hello!");
    let problem = reply.reply.problem.unwrap();
    assert!(problem.ends_with("with a context of at most 2048 tokens."), "{problem}");
    assert!(!reply.reply.text.is_empty());

    let status = fixture.wait_for(with_context(2048));
    assert_eq!(gpu.loads(), [Load { draft: false, on_gpu: true, context: 2048 }]);
    assert!(status.message.unwrap().contains("at most 2048 tokens"));

    // Still too much: the CPU has room, and the whole context again.
    let (reply, _) = fixture.send(None, "Hello!");
    assert!(reply.reply.problem.unwrap().ends_with("on the CPU."));
    fixture.wait_for(with_context(32_768));
    assert_eq!(gpu.loads(), [Load { draft: false, on_gpu: false, context: 32_768 }]);
    assert_eq!(fixture.send(None, "Hello!").0.reply.problem, None);
}

#[test]
fn a_draft_that_fails_on_the_gpu_is_left_out_of_the_reply_and_drafts_on_the_cpu_afterwards() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| script.fails = Some((DRAFT, 10, BROKEN)));
    let (reply, _) = fixture.send(None, "Tell me a story about a fox.");
    assert_eq!((reply.reply.problem, reply.reply.summary.unwrap().tokens), (None, 40));

    let status = fixture.wait_for(|status| draft_is_on(status, "CPU"));
    assert_eq!(places(&gpu), [(DRAFT, false)]);
    assert!(status.device.starts_with("CUDA"));
    assert_eq!(status.device_remarks, ["The draft runs on the CPU: it failed on the GPU."]);
    let (_, events) = fixture.send(None, "Tell me a story about a fox.");
    let drafted = rounds(&events).into_iter().flat_map(|round| round.drafted);
    assert!(drafted.into_iter().any(|drafted| drafted.drafter == DrafterKind::Model));
}
