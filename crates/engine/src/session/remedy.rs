//! Recovery of a target whose GPU failed: a shorter context if memory ran out, else the CPU.
//! Decides only; the session loads.

use foretoken_forward::device::{DeviceRemark, Role};
use foretoken_model::error::Error;

/// Recovery after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Stay on the GPU with a context of at most this many tokens.
    Shorter(usize),
    /// Move to the CPU.
    Cpu,
}

impl Remedy {
    /// Minimum length of a shortened context, in tokens.
    const SHORTEST: usize = 2048;

    /// Recovery after `error` on a GPU, for a target with a context of `context` tokens, `cached`
    /// of them in use; `None` if the GPU did not cause the error.
    ///
    /// A GPU's caches double when they are full, so they had room for a power of two. Each recovery
    /// at least halves the context, so that the sequence ends.
    pub fn of(error: &Error, context: usize, cached: usize) -> Option<Self> {
        if !matches!(error, Error::Compute(_)) {
            return None;
        }
        let shorter = cached.next_power_of_two().min(context / 2).max(Self::SHORTEST);
        let helps = error.is_out_of_memory() && shorter < context;
        Some(if helps { Self::Shorter(shorter) } else { Self::Cpu })
    }

    /// Context length to load the target with, if it is to be shorter.
    pub fn context(self) -> Option<usize> {
        match self {
            Self::Shorter(tokens) => Some(tokens),
            Self::Cpu => None,
        }
    }

    /// Announcement to show with the error.
    pub fn announcement(self) -> String {
        match self {
            Self::Shorter(tokens) => {
                format!("Reloading the target with a context of at most {tokens} tokens.")
            }
            Self::Cpu => "Reloading the target on the CPU.".to_owned(),
        }
    }

    /// Message to show from then on: the change and how to undo it.
    pub fn message(self) -> String {
        match self {
            Self::Shorter(tokens) => format!(
                "The GPU's memory ran out, so the target now has a context of at most {tokens} tokens. Choose \
                 the CPU in the settings for longer texts."
            ),
            Self::Cpu => DeviceRemark::Failed { role: Role::Target }.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(words: &str) -> Error {
        Error::Compute(candle_core::Error::Msg(words.to_owned()))
    }

    fn out_of_memory() -> Error {
        failure("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")")
    }

    #[test]
    fn only_device_failures_have_a_remedy() {
        assert_eq!(Remedy::of(&Error::EmptyPrompt, 8192, 0), None);
        assert_eq!(Remedy::of(&Error::PromptTooLong { found: 9, limit: 8 }, 8192, 0), None);
    }

    #[test]
    fn a_broken_gpu_is_not_used_again() {
        let broken = failure("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS)");
        assert_eq!(Remedy::of(&broken, 131_072, 100), Some(Remedy::Cpu));
    }

    #[test]
    fn a_full_gpu_gets_a_context_that_fitted_and_is_at_most_half_of_the_last() {
        let after = |context, cached| Remedy::of(&out_of_memory(), context, cached).unwrap();
        // 4,096 positions were allocated when the next ones had no room.
        assert_eq!(after(131_072, 4_090), Remedy::Shorter(4096));
        assert_eq!(after(131_072, 100), Remedy::Shorter(2048));
        assert_eq!(after(8192, 8000), Remedy::Shorter(4096));
        assert_eq!(after(3000, 2900), Remedy::Shorter(2048));
        assert_eq!(after(2048, 100), Remedy::Cpu);
    }

    #[test]
    fn remedies_end_on_the_cpu() {
        let mut context = 1_000_000;
        for _ in 0..20 {
            match Remedy::of(&out_of_memory(), context, context - 1).unwrap() {
                Remedy::Shorter(shorter) => context = shorter,
                Remedy::Cpu => return,
            }
        }
        panic!("still on the GPU with {context} tokens");
    }

    #[test]
    fn the_sentences_state_the_change() {
        assert!(Remedy::Shorter(4096).message().contains("at most 4096 tokens"));
        assert!(Remedy::Cpu.announcement().contains("on the CPU"));
    }
}
