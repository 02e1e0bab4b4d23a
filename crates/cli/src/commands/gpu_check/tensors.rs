//! Sessions that are compared: on candle's tensors on some device, and on the engine for CPUs.

use std::sync::Arc;

use foretoken_engine::device::{DeviceChoice, Opened, Problem};
use foretoken_engine::draft::Drafters;
use foretoken_engine::forward::{Model, TensorModel};
use foretoken_engine::model::ModelSource;
use foretoken_engine::session::{Form, Hardware, Host, Session};

use crate::error::Result;
use crate::session::this_computer;

/// Loads everything as tensors, also on the CPU, onto this device and no other.
struct Tensors(Opened);

impl Hardware for Tensors {
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<String, Problem>)> {
        Vec::new()
    }

    fn open(&self, _choice: DeviceChoice) -> Opened {
        self.0.clone()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> foretoken_engine::Result<Box<dyn Model>> {
        if opened.gpu != self.0.gpu {
            let why = opened.remark.clone().unwrap_or_default();
            return Err(foretoken_engine::Error::Incompatible(why));
        }
        Ok(Box::new(TensorModel::load(source, &opened.device)?))
    }
}

/// A target and the one model that drafts for it, as tensors on `device`.
pub fn on_tensors(target: &ModelSource, form: Form, draft: &ModelSource, device: &Opened) -> Result<Session> {
    let host = Host { hardware: Arc::new(Tensors(device.clone())), learning: None, ..this_computer()? };
    let mut session = Session::load_onto(&host, target, form, DeviceChoice::Auto, device)?;
    session.draft.drafters = Drafters::one(session.load_draft(draft, device)?.0);
    Ok(session)
}

/// A target on the engine for CPUs, for which nobody drafts.
pub fn on_the_cpu(target: &ModelSource, form: Form) -> Result<Session> {
    Ok(Session::load(&this_computer()?, target, form, DeviceChoice::Cpu)?)
}
