//! Models to compare: on the device with its own engine, on the CPU with candle's tensors, and on
//! the CPU engine.

use std::sync::Arc;

use foretoken_engine::draft::Drafters;
use foretoken_engine::session::{Form, Hardware, Host, Session};
use foretoken_forward::device::{Candidate, Device, DeviceChoice, DeviceLabel, Opened, Problem};
use foretoken_forward::{Model, TensorModel, load};
use foretoken_model::ModelSource;

use crate::error::Result;
use crate::session::this_computer;

/// Loads every model onto one device.
struct OneDevice(Opened);

impl Hardware for OneDevice {
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<DeviceLabel, Problem>)> {
        Vec::new()
    }

    fn open(&self, _choice: &DeviceChoice) -> Opened {
        self.0.clone()
    }

    fn candidates(&self) -> Vec<Candidate> {
        Vec::new()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> foretoken_model::Result<Box<dyn Model>> {
        if opened.gpu != self.0.gpu {
            let why = opened.remark.as_ref().map(ToString::to_string).unwrap_or_default();
            return Err(foretoken_model::Error::Incompatible(why));
        }
        load_on(source, &opened.device)
    }
}

/// Loads a model on `device`; on the CPU with tensors, since the CPU engine is what it is compared
/// with.
///
/// # Errors
/// Errors of loading a model.
pub fn load_on(source: &ModelSource, device: &Device) -> foretoken_model::Result<Box<dyn Model>> {
    match device {
        Device::Cpu => Ok(Box::new(TensorModel::load(source, &candle_core::Device::Cpu)?)),
        other => load(source, other),
    }
}

/// Loads a target and a draft model on `device`.
pub fn session_on(target: &ModelSource, form: Form, draft: &ModelSource, device: &Opened) -> Result<Session> {
    let host = Host { hardware: Arc::new(OneDevice(device.clone())), learning: None, ..this_computer()? };
    let mut session = Session::load_onto(&host, target, form, DeviceChoice::Auto, device)?;
    session.draft.drafters = Drafters::one(session.load_draft(draft, device)?.0);
    Ok(session)
}

/// Loads a target on the CPU engine, without a draft.
pub fn session_on_cpu(target: &ModelSource, form: Form) -> Result<Session> {
    Ok(Session::load(&this_computer()?, target, form, DeviceChoice::Cpu)?)
}
