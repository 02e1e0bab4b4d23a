//! Instruction set of the kernels: the best that the processor has, or the one named by the
//! variable `FORETOKEN_CPU`.

use std::fmt;

use foretoken_model::error::{Error, Result};

use super::kernels::Kernels;

/// An instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// Environment variable that overrides the choice.
const VARIABLE: &str = "FORETOKEN_CPU";

impl Isa {
    /// All instruction sets of this build, slowest first.
    pub const ALL: &[Self] = &[
        Self::Scalar,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::AvxVnni,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
    ];

    /// Returns the override, or the best available set.
    ///
    /// # Errors
    /// `Error::Setting` for an override that this processor or build lacks.
    pub fn choose() -> Result<Self> {
        match std::env::var(VARIABLE) {
            Ok(name) if !name.is_empty() => Self::named(&name),
            _ => Ok(Self::best()),
        }
    }

    pub fn best() -> Self {
        Self::ALL.iter().copied().rfind(|isa| isa.available()).unwrap_or(Self::Scalar)
    }

    fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().copied().find(|isa| isa.name() == name);
        match found {
            Some(isa) if isa.available() => Ok(isa),
            found => {
                let why = if found.is_some() { "which this processor lacks" } else { "which is not known" };
                Err(Error::Setting { name: VARIABLE, expected: EXPECTED, found: format!("'{name}', {why}") })
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => "avxvnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
        }
    }

    /// Returns whether the processor and its operating system support all that the kernels use.
    pub fn available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2(),
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => avx2() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                avx2()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("dotprod"),
        }
    }

    /// Returns the kernels, which only a processor with this set may run.
    pub fn kernels(self) -> &'static Kernels {
        Kernels::of(self)
    }
}

#[cfg(target_arch = "x86_64")]
const EXPECTED: &str = "scalar, avx2, avxvnni or avx512";
#[cfg(target_arch = "aarch64")]
const EXPECTED: &str = "scalar or neon";
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const EXPECTED: &str = "scalar";

#[cfg(target_arch = "x86_64")]
fn avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "plain instructions",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => "AVX-VNNI",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "AVX-512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "NEON",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_instruction_set_is_available() {
        assert!(Isa::best().available());
        assert_eq!(Isa::named("scalar").unwrap(), Isa::Scalar);
    }

    #[test]
    fn an_unknown_instruction_set_is_rejected_with_a_list_of_the_known() {
        let error = Isa::named("sse9").unwrap_err().to_string();
        assert!(error.contains("'sse9', which is not known") && error.contains("scalar"), "{error}");
    }
}
