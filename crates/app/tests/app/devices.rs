//! Devices: chosen, changed, without memory, and failing during a reply. The GPU is a fake that
//! runs on the CPU and fails on request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use foretoken_app::ipc::{
    AdviceState, DRAFT_NONE, DraftRemark, EngineMessage, EnginePhase, EngineStatus, Settings, Speculating,
};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::session::{Hardware, ThisComputer};
use foretoken_engine::speculation::Speculation;
use foretoken_forward::device::{
    Candidate, DeviceChoice, DeviceLabel, DeviceRemark, Gpu, GpuName, Opened, Problem, Role,
};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, Pass, Want, load};
use foretoken_model::token::TokenId;
use foretoken_model::{Error, Result};
use foretoken_model::{ModelConfig, ModelSource};
use foretoken_tests::endless_model;

use super::{Fixture, Survey, let_draft, rounds};

const NO_MEMORY: &str = "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")";
const BROKEN: &str = "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access was encountered\")";

/// A failure caused by a bug of the program.
const PANIC: &str = "a panic";

/// Beginning of the reason that a panic of the draft is reported with.
const STOPPED: &str = "an internal error";

/// A load that was requested.
#[derive(Debug, Clone, PartialEq)]
struct Load {
    draft: bool,
    on_gpu: bool,
    context: usize,
}

/// Behaviour of the fake GPU, and the requests it received.
#[derive(Default)]
struct Script {
    /// Models that do not fit: drafts (`true`), targets (`false`).
    full_for: Vec<bool>,
    /// Failure of the draft (`true`) or target after this many passes.
    fails: Option<(bool, usize, &'static str)>,
    /// True if these failures also happen on the CPU.
    fails_on_cpu: bool,
    /// True if loading a draft panics.
    panics_on_load: bool,
    loads: Vec<Load>,
    /// Extra time of a pass of the target on the GPU and on the CPU, and of the draft.
    passes: Passes,
}

#[derive(Default, Clone, Copy)]
struct Passes {
    target: [Duration; 2],
    draft: [Duration; 2],
}

#[derive(Clone)]
struct FakeGpu {
    script: Arc<Mutex<Script>>,
    kind: Gpu,
    /// Name; `None` if it is absent.
    name: Option<&'static str>,
    /// Another GPU, and the extra time of the target's passes on it.
    other: Option<(&'static str, Duration)>,
}

impl FakeGpu {
    fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap());
    }

    fn loads(&self) -> Vec<Load> {
        std::mem::take(&mut self.script.lock().unwrap().loads)
    }

    /// Returns the failure of this pass. A panic happens once.
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

    fn open(&self, choice: &DeviceChoice) -> Opened {
        let opened =
            |label: &str| Opened { gpu: Some(self.kind), label: DeviceLabel::named(label), ..Opened::cpu() };
        match (self.kind, choice, self.name) {
            (_, DeviceChoice::Cpu, _) => Opened::cpu(),
            (Gpu::Cuda, ..) => opened("CUDA, a GPU, 1 GB"),
            (_, DeviceChoice::Gpu(GpuName::Called(name)), _)
                if self.other.is_some_and(|(other, _)| other == name) =>
            {
                opened(&format!("{name}, bit-identical to the CPU"))
            }
            (_, DeviceChoice::Gpu(_), Some(name)) => opened(&format!("{name}, bit-identical to the CPU")),
            (_, DeviceChoice::Gpu(GpuName::Called(name)), None) => {
                // Same remark as `device::open`.
                let remark = DeviceRemark::Automatic { gpu: name.clone() };
                Opened { undecided: true, ..Opened::cpu_because(remark) }
            }
            _ => Opened { undecided: true, ..Opened::cpu() },
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let name = self.name.filter(|_| self.kind == Gpu::Any);
        let other = self.other.map(|(name, _)| name);
        let candidate =
            |name: &str| Candidate { choice: called(name), name: name.to_owned(), driver: String::new() };
        name.into_iter().chain(other).map(candidate).collect()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>> {
        let draft = source.path().to_str().unwrap().contains("draft");
        let on_gpu = opened.gpu.is_some();
        let mut script = self.script.lock().unwrap();
        script.loads.push(Load { draft, on_gpu, context: source.config()?.context });
        if on_gpu && script.full_for.contains(&draft) {
            return Err(failure(NO_MEMORY));
        }
        if draft && script.panics_on_load {
            drop(script);
            panic!("{PANIC}");
        }
        let passes = if draft { script.passes.draft } else { script.passes.target };
        let other = self.other.filter(|(name, _)| opened.label.to_string().starts_with(name));
        let pass = other.map_or(passes[usize::from(!on_gpu)], |(_, pass)| pass);
        let inner = load(source, &opened.device)?;
        let gpu = self.clone();
        Ok(Box::new(Scripted { inner, draft, on_gpu, gpu, pass }))
    }
}

struct Scripted {
    inner: Box<dyn Model>,
    draft: bool,
    on_gpu: bool,
    gpu: FakeGpu,
    /// Extra time of a pass.
    pass: Duration,
}

impl Model for Scripted {
    fn config(&self) -> &ModelConfig {
        self.inner.config()
    }

    fn cached(&self) -> &[TokenId] {
        self.inner.cached()
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        std::thread::sleep(self.pass);
        let fails = self.on_gpu || self.gpu.script.lock().unwrap().fails_on_cpu;
        match fails.then(|| self.gpu.failure(self.draft)).flatten() {
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

/// Starts an application on a fake GPU with CUDA, and returns both.
fn fixture() -> (Fixture, FakeGpu) {
    fixture_on(FakeGpu { script: Arc::default(), kind: Gpu::Cuda, name: None, other: None })
}

fn fixture_on(gpu: FakeGpu) -> (Fixture, FakeGpu) {
    let fixture = Fixture::on(tempfile::tempdir().unwrap(), Box::new(gpu.clone()));
    fixture.set(|_| ());
    gpu.loads();
    (fixture, gpu)
}

/// Creates a GPU of any vendor with these times per pass.
fn any_gpu(passes: Passes) -> FakeGpu {
    let script = Script { passes, ..Script::default() };
    FakeGpu { script: Arc::new(Mutex::new(script)), kind: Gpu::Any, name: Some(RADEON), other: None }
}

const RADEON: &str = "Vulkan, AMD Radeon 780M";
const ARC: &str = "Vulkan, Intel Arc A770";

fn called(name: &str) -> DeviceChoice {
    DeviceChoice::Gpu(GpuName::Called(name.to_owned()))
}

/// Changes the settings and waits until the status is as wanted.
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
    is_ready(status)
        && status.draft_device.as_ref().is_some_and(|label| label.to_string().starts_with(device))
}

/// Returns which models were loaded, and whether onto the GPU.
fn places(gpu: &FakeGpu) -> Vec<(bool, bool)> {
    gpu.loads().iter().map(|load| (load.draft, load.on_gpu)).collect()
}

const TARGET: bool = false;
const DRAFT: bool = true;

#[test]
fn an_unavailable_device_leaves_the_model_in_place_and_is_explained() {
    if cfg!(any(feature = "cuda", feature = "metal")) {
        return;
    }
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (first, _) = fixture.send(None, "Count from one to five.");
    let status = fixture.set(|settings| settings.device = DeviceChoice::Cuda);
    assert!(status.device.name == "CPU", "{}", status.device);
    assert_eq!(status.draft_device.as_ref(), Some(&status.device));
    let [remark] = &status.device_remarks[..] else { panic!("{:?}", status.device_remarks) };
    let remark = remark.to_string();
    assert!(remark.contains("CUDA") || remark.contains("NVIDIA"), "{remark}");
    assert!(remark.ends_with(". Using the CPU instead."), "{remark}");
    fixture.app.look_for_devices();
    let devices = fixture.status().devices;
    let usable = |choice| devices.iter().find(|option| option.choice == choice).unwrap().problem.is_none();
    use DeviceChoice::{Auto, Cpu, Cuda, Metal};
    assert_eq!([Auto, Cpu, Cuda, Metal].map(usable), [true, true, false, false]);
    // It was not loaded again: its cache is still valid.
    let (second, _) = fixture.send(Some(first.conversation.id), "And on.");
    assert!(second.reply.summary.unwrap().reused_tokens > 0);
}

#[test]
fn a_model_is_reloaded_only_when_its_device_changes() {
    let (fixture, gpu) = fixture();
    let status = fixture.status();
    assert_eq!(
        (status.device.name.as_str(), status.draft_device.as_ref()),
        ("CUDA, a GPU, 1 GB", Some(&status.device))
    );

    let to_cpu = |settings: &mut Settings| settings.draft_device = DeviceChoice::Cpu;
    let status = set_until(&fixture, to_cpu, |status| draft_is_on(status, "CPU"));
    assert_eq!(places(&gpu), [(DRAFT, false)]);
    assert!(status.device.to_string().starts_with("CUDA"));

    // The GPU is what `auto` chooses: nothing moves.
    let to_gpu = |settings: &mut Settings| settings.device = DeviceChoice::Cuda;
    let status = set_until(&fixture, to_gpu, |status| status.device_choice == DeviceChoice::Cuda);
    assert_eq!((places(&gpu), status.device.to_string().as_str()), (vec![], "CUDA, a GPU, 1 GB"));

    let to_cpu = |settings: &mut Settings| {
        settings.device = DeviceChoice::Cpu;
        settings.draft_device = DeviceChoice::Auto;
    };
    let status = set_until(&fixture, to_cpu, |status| is_ready(status) && status.device.name == "CPU");
    assert_eq!(places(&gpu), [(TARGET, false), (DRAFT, false)], "a draft is on its target's device");
    assert_eq!(status.device_choice, DeviceChoice::Cpu);
    fixture.send(None, "Hello!");
}

#[test]
fn a_draft_that_does_not_fit_on_the_gpu_drafts_on_the_cpu_with_a_remark() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| script.full_for = vec![DRAFT]);
    let without = |settings: &mut Settings| let_draft(settings, DRAFT_NONE);
    set_until(&fixture, without, |status| status.draft_device.is_none());
    let with = |settings: &mut Settings| let_draft(settings, "starter-draft");
    let status = set_until(&fixture, with, |status| draft_is_on(status, "CPU"));
    assert_eq!(places(&gpu), [(DRAFT, true), (DRAFT, false)]);
    assert_eq!(status.why.state, Speculating::On);
    let remark = DeviceRemark::NoRoom { role: Role::Draft };
    assert_eq!(status.device_remarks, std::slice::from_ref(&remark));
    assert_eq!(status.why.remarks, [DraftRemark::OnCpu { remark }]);
    let (_, events) = fixture.send(None, "Count from one to five.");
    assert!(rounds(&events).iter().any(|round| round.accepted() > 0));
}

#[test]
fn a_target_that_does_not_fit_on_the_gpu_replies_on_the_cpu_with_a_message() {
    let (fixture, gpu) = fixture();
    let to_cpu = |settings: &mut Settings| settings.device = DeviceChoice::Cpu;
    set_until(&fixture, to_cpu, |status| is_ready(status) && status.device.name == "CPU");
    gpu.script(|script| script.full_for = vec![TARGET]);
    gpu.loads();
    let to_gpu = |settings: &mut Settings| settings.device = DeviceChoice::Cuda;
    let status =
        set_until(&fixture, to_gpu, |status| is_ready(status) && status.device_choice == DeviceChoice::Cuda);
    assert_eq!(places(&gpu), [(TARGET, true), (TARGET, false), (DRAFT, false)]);
    let remark = DeviceRemark::NoRoom { role: Role::Target };
    assert_eq!(status.message, Some(EngineMessage::Device { remark }));
    assert!(status.device.name == "CPU");
    fixture.send(None, "Hello!");
    // Other settings do not retry it.
    gpu.loads();
    fixture.set(|settings| (settings.device, settings.max_tokens) = (DeviceChoice::Cuda, 20));
    assert_eq!(places(&gpu), []);
}

#[test]
fn a_target_whose_gpu_fails_keeps_its_text_and_continues_on_the_cpu() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| script.fails = Some((TARGET, 4, BROKEN)));
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    let streamed = rounds(&events);
    assert!(!streamed.is_empty() && !reply.reply.text.is_empty());
    assert_eq!(fixture.app.trace(reply.reply.id).unwrap(), streamed);
    let problem = reply.reply.problem.unwrap();
    assert!(problem.contains("illegal memory access"), "{problem}");
    assert!(problem.ends_with("Reloading the target on the CPU."), "{problem}");

    let status = fixture.wait_for(|status| is_ready(status) && status.device.name == "CPU");
    assert_eq!(places(&gpu), [(TARGET, false), (DRAFT, false)]);
    let remark = DeviceRemark::Failed { role: Role::Target };
    assert_eq!(status.message, Some(EngineMessage::Device { remark }));
    assert_eq!(status.device_remarks.len(), 1, "{:?}", status.device_remarks);
    let (next, _) = fixture.send(Some(reply.conversation.id), "Go on.");
    assert_eq!((next.reply.problem, next.reply.summary.unwrap().tokens), (None, 40));
}

#[test]
fn a_panic_in_a_pass_ends_the_reply_and_the_model_is_reloaded() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| script.fails = Some((TARGET, 4, PANIC)));
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    assert!(!rounds(&events).is_empty() && !reply.reply.text.is_empty());
    let problem = reply.reply.problem.unwrap();
    assert_eq!(problem, "The engine failed. Its log has the reason. Try again; nothing stored is lost.");
    let failed = |status: &EngineStatus| status.message == Some(EngineMessage::Reloaded);
    fixture.wait_for(|status| is_ready(status) && failed(status));
    let (next, _) = fixture.send(Some(reply.conversation.id), "Go on.");
    assert_eq!((next.reply.problem, next.reply.summary.unwrap().tokens), (None, 40));
}

#[test]
fn a_target_that_filled_the_gpu_continues_there_with_a_shorter_context() {
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
    assert_eq!(status.message, Some(EngineMessage::ShorterContext { tokens: 2048 }));

    // Still too much: the CPU has space, and the whole context again.
    let (reply, _) = fixture.send(None, "Hello!");
    assert!(reply.reply.problem.unwrap().ends_with("on the CPU."));
    fixture.wait_for(with_context(32_768));
    assert_eq!(gpu.loads(), [Load { draft: false, on_gpu: false, context: 32_768 }]);
    assert_eq!(fixture.send(None, "Hello!").0.reply.problem, None);
}

#[test]
fn a_draft_that_fails_on_the_gpu_is_skipped_for_the_reply_and_moves_to_the_cpu() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| script.fails = Some((DRAFT, 10, BROKEN)));
    let (reply, _) = fixture.send(None, "Tell me a story about a fox.");
    assert_eq!((reply.reply.problem, reply.reply.summary.unwrap().tokens), (None, 40));

    let status = fixture.wait_for(|status| draft_is_on(status, "CPU"));
    assert_eq!(places(&gpu), [(DRAFT, false)]);
    assert!(status.device.to_string().starts_with("CUDA"));
    assert_eq!(status.device_remarks, [DeviceRemark::Failed { role: Role::Draft }]);
    let (_, events) = fixture.send(None, "Tell me a story about a fox.");
    let drafted = rounds(&events).into_iter().flat_map(|round| round.drafted);
    assert!(drafted.into_iter().any(|drafted| drafted.drafter == DrafterKind::Model));
}

/// Chooses the starter's draft again, with a script, and waits until the status is as wanted.
fn with_draft(
    fixture: &Fixture,
    gpu: &FakeGpu,
    script: impl FnOnce(&mut Script),
    wanted: impl Fn(&EngineStatus) -> bool,
) {
    let none = |status: &EngineStatus| is_ready(status) && status.draft == DRAFT_NONE;
    set_until(fixture, |settings| let_draft(settings, DRAFT_NONE), none);
    gpu.loads();
    gpu.script(script);
    set_until(fixture, |settings| let_draft(settings, "starter-draft"), wanted);
}

#[test]
fn a_draft_that_panics_while_drafting_never_takes_its_target_along() {
    let (fixture, gpu) = fixture();
    // The draft runs in every round, whatever the measured costs.
    fixture.set(|settings| settings.speculation = Speculation::fixed(4));
    for device in [DeviceChoice::Auto, DeviceChoice::Cpu] {
        let on_cpu = device == DeviceChoice::Cpu;
        fixture.set(|settings| settings.device = device);
        // A draft begins one pass, which its steps continue.
        for passes in [0, 2, 6] {
            let script = |script: &mut Script| {
                (script.fails, script.fails_on_cpu) = (Some((DRAFT, passes, PANIC)), on_cpu);
            };
            with_draft(&fixture, &gpu, script, is_ready);
            let (reply, _) = fixture.send(None, "Tell me a story about a fox.");
            assert_eq!((reply.reply.problem, reply.reply.summary.unwrap().tokens), (None, 40), "{passes}");
            let is_failure = |remark: &DraftRemark| matches!(remark, DraftRemark::Failed { detail } if detail.starts_with(STOPPED));
            let shown = |status: &EngineStatus| match on_cpu {
                true => is_ready(status) && status.why.remarks.iter().any(is_failure),
                false => draft_is_on(status, "CPU"),
            };
            let now = fixture.status();
            let status = if shown(&now) { now } else { fixture.wait_for(shown) };
            assert_ne!(status.message, Some(EngineMessage::Failed));
            assert!(gpu.loads().iter().all(|load| load.draft), "the target was loaded again");
        }
    }
}

#[test]
fn a_draft_that_panics_while_it_is_loaded_never_takes_its_target_along() {
    let (fixture, gpu) = fixture();
    let is_refusal = |remark: &DraftRemark| matches!(remark, DraftRemark::Unusable { detail } if detail.starts_with(STOPPED));
    let refused = |status: &EngineStatus| is_ready(status) && status.why.remarks.iter().any(is_refusal);
    with_draft(&fixture, &gpu, |script| script.panics_on_load = true, refused);
    assert_eq!(fixture.send(None, "Hello!").0.reply.problem, None);
    assert!(gpu.loads().iter().all(|load| load.draft), "the target was loaded again");
}

#[test]
fn a_draft_that_panics_while_it_is_tried_never_takes_its_target_along() {
    let (fixture, gpu) = fixture();
    gpu.script(|script| (script.fails, script.fails_on_cpu) = (Some((DRAFT, 2, PANIC)), true));
    let (sender, received) = std::sync::mpsc::channel();
    fixture.app.advise(None, Box::new(move |advice| sender.send(advice).unwrap())).unwrap();
    let failed: Vec<_> = received.try_iter().filter(|advice| advice.state == AdviceState::Failed).collect();
    let [advice] = &failed[..] else { panic!("{failed:?}") };
    assert!(advice.reason.as_ref().is_some_and(|reason| reason.contains("internal error")), "{advice:?}");
    assert!(gpu.loads().iter().all(|load| load.draft), "the target was loaded again");
    assert_eq!(fixture.send(None, "Hello!").0.reply.problem, None);
}

/// Extra time of passes on the GPU and on the CPU.
const SLOW: Duration = Duration::from_millis(8);
const FAST: Duration = Duration::ZERO;

#[test]
fn a_gpu_slower_than_the_cpu_is_not_used_and_a_note_explains_it_after_a_restart_too() {
    let gpu = any_gpu(Passes { target: [SLOW, FAST], draft: [FAST, FAST] });
    let fixture = Fixture::on(tempfile::tempdir().unwrap(), Box::new(gpu.clone()));
    let status = fixture.status();
    assert!(status.device.name == "CPU", "{}", status.device);
    let [note] = &status.device_notes[..] else { panic!("{:?}", status.device_notes) };
    let sentence = note.to_string();
    assert!(sentence.starts_with(&format!("The GPU ({RADEON}) takes ")), "{sentence}");
    assert!(sentence.ends_with(" ms: using the CPU."), "{sentence}");
    assert!(status.device_remarks.is_empty(), "nothing is wrong: {:?}", status.device_remarks);
    // Part of the target on both devices, and then the target.
    assert_eq!(places(&gpu)[..3], [(TARGET, true), (TARGET, false), (TARGET, false)]);

    // Known times are not measured again.
    let Fixture { app, folder, .. } = fixture;
    drop(app);
    let fixture = Fixture::on(folder, Box::new(gpu.clone()));
    assert_eq!(fixture.status().device_notes, std::slice::from_ref(note));
    assert_eq!(places(&gpu)[0], (TARGET, false));
    fixture.send(None, "Hello!");
}

#[test]
fn a_faster_gpu_is_used_and_the_draft_runs_where_it_is_faster() {
    let (fixture, gpu) = fixture_on(any_gpu(Passes { target: [FAST, SLOW], draft: [SLOW, FAST] }));
    let status = set_until(&fixture, |_| (), |status| draft_is_on(status, "CPU"));
    assert_eq!(status.device.to_string(), format!("{RADEON}, bit-identical to the CPU"));
    let [target, draft] = &status.device_notes[..] else { panic!("{:?}", status.device_notes) };
    let [target, draft] = [target, draft].map(ToString::to_string);
    assert!(target.starts_with("The GPU (") && target.ends_with(": using the GPU."), "{target}");
    assert!(draft.starts_with("For drafts the GPU (") && draft.ends_with(": using the CPU."), "{draft}");
    assert!(status.device_remarks.is_empty());
    fixture.send(None, "Hello!");

    // A device chosen by name needs no measurement.
    gpu.loads();
    let status = set_until(
        &fixture,
        |settings| (settings.device, settings.draft_device) = (called(RADEON), called(RADEON)),
        |status| draft_is_on(status, RADEON),
    );
    assert_eq!((places(&gpu), status.device_notes.len()), (vec![(DRAFT, true)], 0));
}

#[test]
fn the_fastest_of_several_gpus_is_used_in_any_order() {
    let slow = any_gpu(Passes { target: [SLOW, 2 * SLOW], draft: [SLOW, FAST] });
    let fixture = Fixture::on(
        tempfile::tempdir().unwrap(),
        Box::new(FakeGpu { other: Some((ARC, FAST)), ..slow.clone() }),
    );
    let status = fixture.status();
    assert_eq!(status.device.to_string(), format!("{ARC}, bit-identical to the CPU"));
    assert!(
        status.device_notes[0].to_string().starts_with(&format!("The GPU ({ARC}) takes ")),
        "{:?}",
        status.device_notes
    );
    // Part of the target on each GPU and on the CPU, and then the target.
    let measured = [(TARGET, true), (TARGET, false)];
    assert_eq!(places(&slow)[..5], [&measured[..], &measured, &[(TARGET, true)]].concat());

    // Known times are not measured again.
    let Fixture { app, folder, .. } = fixture;
    drop(app);
    let fixture = Fixture::on(folder, Box::new(FakeGpu { other: Some((ARC, FAST)), ..slow.clone() }));
    assert_eq!(fixture.status().device.to_string(), format!("{ARC}, bit-identical to the CPU"));
    assert_eq!(places(&slow)[0], (TARGET, true));
    fixture.send(None, "Hello!");

    let fixture = Fixture::on(
        tempfile::tempdir().unwrap(),
        Box::new(FakeGpu { other: Some((ARC, 2 * SLOW)), ..slow.clone() }),
    );
    assert_eq!(fixture.status().device.to_string(), format!("{RADEON}, bit-identical to the CPU"));
}

#[test]
fn a_missing_gpu_stays_chosen_by_name_and_the_automatic_choice_replaces_it() {
    let gone = FakeGpu { name: None, ..any_gpu(Passes::default()) };
    let (fixture, _) = fixture_on(gone);
    let choose = |settings: &mut Settings| settings.device = called("Vulkan, NVIDIA GeForce RTX 4070");
    let status = set_until(&fixture, choose, |status| is_ready(status) && !status.device_remarks.is_empty());
    let gpu = "Vulkan, NVIDIA GeForce RTX 4070".to_owned();
    assert_eq!(status.device_remarks, [DeviceRemark::Automatic { gpu: gpu.clone() }]);
    assert!(status.device.name == "CPU");
    fixture.app.look_for_devices();
    let devices = fixture.status().devices;
    let option = devices.iter().find(|option| option.label.name == "NVIDIA GeForce RTX 4070").unwrap();
    assert_eq!(option.label.api.as_deref(), Some("Vulkan"));
    assert_eq!(option.problem, Some(Problem::Gone(gpu)));
    assert_eq!(fixture.app.settings().device, called("Vulkan, NVIDIA GeForce RTX 4070"));
    fixture.send(None, "Hello!");
}

#[test]
fn a_lost_gpu_keeps_the_text_and_the_cpu_continues() {
    const LOST: &str = "the GPU was lost (the driver was reset)";
    let (fixture, gpu) = fixture_on(any_gpu(Passes::default()));
    let named =
        |settings: &mut Settings| (settings.device, settings.draft_device) = (called(RADEON), called(RADEON));
    set_until(&fixture, named, |status| {
        draft_is_on(status, RADEON) && status.device.to_string().starts_with(RADEON)
    });
    gpu.script(|script| script.fails = Some((TARGET, 4, LOST)));
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    assert_eq!(fixture.app.trace(reply.reply.id).unwrap(), rounds(&events));
    assert!(!reply.reply.text.is_empty());
    let problem = reply.reply.problem.unwrap();
    assert!(problem.contains(LOST) && problem.ends_with("Reloading the target on the CPU."), "{problem}");
    let status = fixture.wait_for(|status| is_ready(status) && status.device.name == "CPU");
    assert_eq!(status.device_remarks.len(), 1, "{:?}", status.device_remarks);
    let (next, _) = fixture.send(Some(reply.conversation.id), "Go on.");
    assert_eq!((next.reply.problem, next.reply.summary.unwrap().tokens), (None, 40));
}
