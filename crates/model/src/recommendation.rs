//! Sampling settings recommended by a model's own files: generation_config.json of a folder,
//! `general.sampling.*` of a GGUF file. Adds no defaults.

use super::{Form, ModelSource};
use crate::recommended::Recommended;
use crate::sampling::ModelPenalties;

/// Names of settings, and their GGUF keys where these differ.
const IN_GGUF: [(&str, &str); 3] =
    [("temperature", "temp"), ("repetition_penalty", "penalty_repeat"), ("repeat_last_n", "penalty_last_n")];

impl ModelSource {
    /// Returns the recommended penalties on repetition; `None` for none.
    pub fn penalties(&self) -> Option<ModelPenalties> {
        Recommended::penalties(self.recommended().as_ref(), self.parameters())
    }

    /// Returns the recommended settings; `None` if the files have no usable ones. Ignores values
    /// that are out of range or not numbers, with a warning in the log.
    pub fn recommended(&self) -> Option<Recommended> {
        let refused = |name: &str, value: f64| {
            tracing::warn!("{}: the recommended {name} of {value} cannot be used", self.path.display());
        };
        let read = match &*self.form {
            Form::Folder(folder) => {
                let config = &folder.generation_config;
                let read = Recommended::read(|name| config[name].as_f64(), refused);
                // The other values would only matter with sampling.
                let greedy = config["do_sample"].as_bool() == Some(false);
                if greedy { Recommended { temperature: Some(0.0), ..Recommended::default() } } else { read }
            }
            Form::Gguf(header) => {
                let number = |name: &str| {
                    let named = IN_GGUF.iter().find(|(ours, _)| *ours == name);
                    let key = format!("general.sampling.{}", named.map_or(name, |(_, theirs)| theirs));
                    let whole = || header.integer(&key).ok().flatten().map(|value| value as f64);
                    let number = header.number(&key).ok().flatten().or_else(whole);
                    if number.is_none() && header.has(&key) {
                        tracing::warn!("{}: {key} is no number", self.path.display());
                    }
                    number
                };
                Recommended::read(number, refused)
            }
        };
        Some(read).filter(|read| !read.is_empty())
    }
}
