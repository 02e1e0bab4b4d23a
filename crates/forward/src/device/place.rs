//! Placement of a model: on the opened device, or on the CPU if the GPU cannot run it.

use foretoken_model::error::{Error, Result};

use super::Opened;
use super::remark::{DeviceRemark, Role};

/// Loads a model by `load` onto `opened`, or onto the CPU if the GPU has no room for it or fails.
/// Returns the model and its device.
///
/// # Errors
/// Those of `load` that concern the model itself, and all of them on the CPU.
pub fn place<T>(opened: &Opened, role: Role, load: impl Fn(&Opened) -> Result<T>) -> Result<(T, Opened)> {
    match load(opened) {
        Err(error @ (Error::Compute(_) | Error::NotOnGpu(_))) if opened.gpu.is_some() => {
            tracing::warn!("loading the {role} on {} failed: {error}", opened.label);
            let cpu = Opened::cpu_because(refusal(role, &error));
            Ok((load(&cpu)?, cpu))
        }
        loaded => Ok((loaded?, opened.clone())),
    }
}

fn refusal(role: Role, error: &Error) -> DeviceRemark {
    match error {
        Error::NotOnGpu(feature) => DeviceRemark::CannotRun { role, feature: (*feature).to_owned() },
        error if error.is_out_of_memory() => DeviceRemark::NoRoom { role },
        error => DeviceRemark::LoadFailed { role, detail: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::device::{DeviceLabel, Gpu};

    fn gpu() -> Opened {
        Opened { gpu: Some(Gpu::Cuda), label: DeviceLabel::named("CUDA, a GPU, 1 GB"), ..Opened::cpu() }
    }

    fn failing(words: &str) -> Error {
        Error::Compute(candle_core::Error::Msg(words.to_owned()))
    }

    /// Places a model whose first attempt fails with `words`.
    fn second_attempt(role: Role, words: &str) -> Opened {
        let attempts = Cell::new(0);
        let (loaded, opened) = place(&gpu(), role, |opened| {
            attempts.set(attempts.get() + 1);
            if attempts.get() == 1 { Err(failing(words)) } else { Ok(opened.gpu) }
        })
        .unwrap();
        assert_eq!((attempts.get(), loaded), (2, None));
        opened
    }

    #[test]
    fn a_model_stays_on_the_gpu_that_has_room() {
        let (_, opened) = place(&gpu(), Role::Target, |_| Ok(())).unwrap();
        assert_eq!((opened.gpu, opened.remark), (Some(Gpu::Cuda), None));
    }

    #[test]
    fn a_model_without_room_on_the_gpu_goes_to_the_cpu() {
        let opened = second_attempt(Role::Draft, "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")");
        assert_eq!(opened.gpu, None);
        assert_eq!(
            opened.remark.unwrap().to_string(),
            "The draft runs on the CPU: it does not fit in GPU memory."
        );
        let remark = second_attempt(Role::Target, "no kernel").remark.unwrap().to_string();
        assert!(
            remark.starts_with("The target runs on the CPU, because loading it on the GPU failed:"),
            "{remark}"
        );
        assert!(remark.ends_with("no kernel."), "{remark}");
    }

    #[test]
    fn a_model_that_the_gpu_cannot_run_goes_to_the_cpu_and_the_remark_says_why() {
        let load = |opened: &Opened| match opened.gpu {
            Some(_) => Err(Error::NotOnGpu("heads of more than 512 dimensions")),
            None => Ok(()),
        };
        let (_, opened) = place(&gpu(), Role::Target, load).unwrap();
        let remark = "The target runs on the CPU: Foretoken's GPU engine cannot run heads of more than 512 dimensions yet.";
        assert_eq!((opened.gpu, opened.remark.unwrap().to_string()), (None, remark.to_owned()));
    }

    #[test]
    fn errors_of_the_model_and_errors_on_the_cpu_are_returned() {
        let refused = place::<()>(&gpu(), Role::Draft, |_| Err(Error::Cancelled)).unwrap_err();
        assert!(matches!(refused, Error::Cancelled));
        let refused = place::<()>(&Opened::cpu(), Role::Draft, |_| Err(failing("no memory"))).unwrap_err();
        assert!(matches!(refused, Error::Compute(_)));
    }
}
