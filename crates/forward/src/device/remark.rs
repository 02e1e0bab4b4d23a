//! Reasons for the device in use. They display as sentences in English; the window words them in
//! its language.

use std::fmt;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::problem::Problem;

/// Role of a model in speculative decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, rename = "ModelRole")]
pub enum Role {
    Target,
    Draft,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Target => "target",
            Self::Draft => "draft",
        })
    }
}

/// Reason why a device other than the chosen one is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum DeviceRemark {
    /// No GPU can be used, so the CPU is.
    CpuInstead { problem: Problem },
    /// The chosen GPU is not there, so another device is selected automatically.
    Automatic { gpu: String },
    /// The model does not fit in GPU memory, so it runs on the CPU.
    NoRoom { role: Role },
    /// The GPU engine lacks a feature, so the model runs on the CPU.
    CannotRun { role: Role, feature: String },
    /// Loading the model on the GPU failed, so it runs on the CPU.
    LoadFailed { role: Role, detail: String },
    /// The model failed on the GPU, so it runs on the CPU.
    Failed { role: Role },
}

impl DeviceRemark {
    /// Problem of the GPU that was to be opened, if the remark is about one.
    pub fn problem(self) -> Option<Problem> {
        match self {
            Self::CpuInstead { problem } => Some(problem),
            Self::Automatic { gpu } => Some(Problem::Gone(gpu)),
            _ => None,
        }
    }
}

impl fmt::Display for DeviceRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CpuInstead { problem } => write!(f, "{problem} Using the CPU instead."),
            Self::Automatic { gpu } => {
                write!(f, "{} Choosing automatically.", Problem::Gone(gpu.clone()))
            }
            Self::NoRoom { role } => {
                write!(f, "The {role} runs on the CPU: it does not fit in GPU memory.")
            }
            Self::CannotRun { role, feature } => write!(
                f,
                "The {role} runs on the CPU: Foretoken's GPU engine cannot run {feature} yet."
            ),
            Self::LoadFailed { role, detail } => {
                write!(f, "The {role} runs on the CPU, because loading it on the GPU failed: {detail}")
            }
            Self::Failed { role: Role::Target } => f.write_str(
                "The GPU failed, so the target now runs on the CPU. Choose another device in the settings, or \
                 start Foretoken again to try the GPU once more.",
            ),
            Self::Failed { role: Role::Draft } => {
                f.write_str("The draft runs on the CPU because it failed on the GPU.")
            }
        }
    }
}

/// Reason for an automatically selected device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum DeviceNote {
    /// Milliseconds per token on a GPU and on the CPU; the faster one is used.
    Measured { role: Role, gpu: String, gpu_ms: f64, cpu_ms: f64 },
    /// The GPU could not be opened.
    NotOpened { remark: DeviceRemark },
    /// The measurement of the GPU failed.
    NotMeasured { gpu: String, detail: String },
}

impl fmt::Display for DeviceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured { role, gpu, gpu_ms, cpu_ms } => {
                let the = if *role == Role::Draft { "For drafts the" } else { "The" };
                let used = if gpu_ms < cpu_ms { "GPU" } else { "CPU" };
                let [there, here] = [*gpu_ms, *cpu_ms].map(|ms| match ms {
                    10.0.. => format!("{ms:.0}"),
                    1.0.. => format!("{ms:.1}"),
                    _ => format!("{ms:.2}"),
                });
                write!(f, "{the} GPU ({gpu}) takes {there} ms a token, the CPU {here} ms: using the {used}.")
            }
            Self::NotOpened { remark } => remark.fmt(f),
            Self::NotMeasured { gpu, detail } => write!(f, "The GPU ({gpu}) is not used: {detail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_states_the_measurement_and_the_choice() {
        let sentence = |gpu_ms, cpu_ms, role| {
            DeviceNote::Measured { role, gpu: "Vulkan, Intel UHD".to_owned(), gpu_ms, cpu_ms }.to_string()
        };
        assert_eq!(
            sentence(41.3, 17.8, Role::Target),
            "The GPU (Vulkan, Intel UHD) takes 41 ms a token, the CPU 18 ms: using the CPU."
        );
        assert_eq!(
            sentence(0.42, 3.05, Role::Draft),
            "For drafts the GPU (Vulkan, Intel UHD) takes 0.42 ms a token, the CPU 3.0 ms: using the GPU."
        );
    }
}
