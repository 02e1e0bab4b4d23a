//! Opens what a command names for the engine's session: models by path or name, devices, and the
//! files that keep acceptance statistics.

use std::ops::ControlFlow;
use std::sync::Arc;

use foretoken_engine::decoder::{Progress, Reply, Request};
use foretoken_engine::session::{Draft, DraftSource, Form, Host, Learning, Session, ThisComputer};
use foretoken_engine::trace::Round;
use foretoken_forward::device::{DeviceRemark, Opened, Role};
use foretoken_library::{Folders, Library};
use foretoken_model::{ModelSource, Renderer};
use foretoken_persistence::StatsFile;

use crate::args::{DraftChoice, PairDeviceArgs};
use crate::error::Result;
use crate::interrupt::Interrupt;

/// Every model on this computer.
pub fn library() -> Result<Library> {
    Ok(Library::new(&Folders::locate()?, None))
}

/// Opens a model by path or name; reads its header only.
pub fn open(name: &str) -> Result<ModelSource> {
    Ok(ModelSource::open(&library()?.resolve(name)?)?)
}

/// # Errors
/// `Error::NoTemplate` or `Error::Template` when a conversation is wanted of a model that has none.
pub fn form(source: &ModelSource, raw: bool) -> Result<Form> {
    Ok(if raw { Form::Raw } else { Form::chat(source, &this_computer()?.renderer)? })
}

/// Loads a target without a draft.
pub fn load(source: &ModelSource, form: Form, devices: &PairDeviceArgs) -> Result<Session> {
    let context = devices.context(source.config()?.context)?;
    let source = source.clone().with_kv_dtype(devices.target.kv_cache_dtype);
    let mut session = Session::load(&this_computer()?, &source, form, devices.target.device().clone())?;
    session.limit_context(context);
    Ok(session)
}

/// The engine's host: this computer's devices, the saved statistics, and chat templates rendered in
/// a separate process.
pub fn this_computer() -> Result<Host> {
    let learning: Arc<dyn Learning> = Arc::new(StatsFile(Folders::locate()?));
    Ok(Host {
        hardware: Arc::new(ThisComputer),
        learning: Some(learning),
        renderer: Renderer::this_program(),
    })
}

/// Replaces the drafters; the target stays loaded with its cache. On an error the previous drafters
/// stay. `stage` drafts for the draft model. Returns the previous drafters.
///
/// # Errors
/// Errors of opening and loading a model, and `Error::Incompatible` for one whose vocabulary has
/// too little in common with the target's.
pub fn choose_draft(
    session: &mut Session,
    choice: &DraftChoice,
    stage: Option<&str>,
    devices: &PairDeviceArgs,
) -> Result<Draft> {
    let draft = match draft_source(session, choice, stage, devices)? {
        Some(source) => session.open_draft(&source, devices.draft_device())?,
        None => Draft::default(),
    };
    Ok(std::mem::replace(&mut session.draft, draft))
}

/// Loads the drafters again with their model on the CPU, because its GPU failed. On an error there
/// is no draft.
///
/// # Errors
/// As [`choose_draft`].
pub fn draft_on_cpu(
    session: &mut Session,
    choice: &DraftChoice,
    stage: Option<&str>,
    devices: &PairDeviceArgs,
) -> Result<()> {
    // GPU memory is freed first.
    session.draft = Draft::default();
    if let Some(source) = draft_source(session, choice, stage, devices)? {
        let cpu = Opened::cpu_because(DeviceRemark::Failed { role: Role::Draft });
        session.draft = session.open_draft_onto(&source, devices.draft_device(), &cpu)?;
    }
    Ok(())
}

/// Opens what drafts; `None` without drafts.
fn draft_source(
    session: &Session,
    choice: &DraftChoice,
    stage: Option<&str>,
    devices: &PairDeviceArgs,
) -> Result<Option<DraftSource>> {
    let open = |name: &str| devices.target.open(name);
    Ok(Some(match choice {
        DraftChoice::None => return Ok(None),
        DraftChoice::Ngram => DraftSource::WithoutModel,
        DraftChoice::Mtp => DraftSource::Model { source: session.mtp_head()?, stage: None },
        DraftChoice::Model(name) => {
            DraftSource::Model { source: open(name)?, stage: stage.map(open).transpose()? }
        }
    }))
}

/// Writes a reply and passes each round to `on_round`. `interrupt` may stop it. Saves the
/// statistics.
///
/// # Errors
/// Errors of the engine, and those that `on_round` returns, which end the reply.
pub fn reply(
    session: &mut Session,
    request: &Request,
    interrupt: &Interrupt,
    on_round: &mut dyn FnMut(&Round) -> Result<()>,
) -> Result<Reply> {
    let mut failed = None;
    let mut on_progress = |progress: Progress<'_>| {
        if let Progress::Round(round) = progress
            && let Err(error) = on_round(round)
        {
            failed = Some(error);
            return ControlFlow::Break(());
        }
        if interrupt.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    interrupt.begin();
    let reply = session.reply(request, &mut on_progress);
    interrupt.end();
    session.save_stats();
    match failed {
        Some(error) => Err(error),
        None => Ok(reply?),
    }
}
