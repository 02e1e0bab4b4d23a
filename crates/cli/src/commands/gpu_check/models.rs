//! Models that are compared: on the device by the engine that is made for it, on the CPU as candle's tensors; and on the
//! engine for CPUs.

use std::sync::Arc;

use foretoken_engine::device::{Candidate, Device, DeviceChoice, Opened, Problem};
use foretoken_engine::draft::Drafters;
use foretoken_engine::forward::{Model, TensorModel, load};
use foretoken_engine::model::ModelSource;
use foretoken_engine::session::{Form, Hardware, Host, Session};

use crate::error::Result;
use crate::session::this_computer;

/// Loads everything onto this device and no other.
struct There(Opened);

impl Hardware for There {
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<String, Problem>)> {
        Vec::new()
    }

    fn open(&self, _choice: &DeviceChoice) -> Opened {
        self.0.clone()
    }

    fn candidates(&self) -> Vec<Candidate> {
        Vec::new()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> foretoken_engine::Result<Box<dyn Model>> {
        if opened.gpu != self.0.gpu {
            let why = opened.remark.clone().unwrap_or_default();
            return Err(foretoken_engine::Error::Incompatible(why));
        }
        load_there(source, &opened.device)
    }
}

/// A model on `device`; on the CPU as tensors, since it is the CPU's engine that it is compared with.
///
/// # Errors
/// Those of loading a model.
pub fn load_there(source: &ModelSource, device: &Device) -> foretoken_engine::Result<Box<dyn Model>> {
    match device {
        Device::Cpu => Ok(Box::new(TensorModel::load(source, &candle_core::Device::Cpu)?)),
        other => load(source, other),
    }
}

/// A target and the one model that drafts for it, on `device`.
pub fn there(target: &ModelSource, form: Form, draft: &ModelSource, device: &Opened) -> Result<Session> {
    let host = Host { hardware: Arc::new(There(device.clone())), learning: None, ..this_computer()? };
    let mut session = Session::load_onto(&host, target, form, DeviceChoice::Auto, device)?;
    session.draft.drafters = Drafters::one(session.load_draft(draft, device)?.0);
    Ok(session)
}

/// A target on the engine for CPUs, for which nobody drafts.
pub fn on_the_cpu(target: &ModelSource, form: Form) -> Result<Session> {
    Ok(Session::load(&this_computer()?, target, form, DeviceChoice::Cpu)?)
}
