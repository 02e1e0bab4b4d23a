//! What a model's own files recommend for sampling: generation_config.json of a folder, `general.sampling.*` of a
//! GGUF file. What a file does not say is for others to know.

use super::{Form, ModelSource};
use crate::recommended::Recommended;
use crate::sampling::ModelPenalties;

/// What GGUF files call some of the values.
const IN_GGUF: [(&str, &str); 3] =
    [("temperature", "temp"), ("repetition_penalty", "penalty_repeat"), ("repeat_last_n", "penalty_last_n")];

impl ModelSource {
    /// The penalties on repetition that the model is best used with; `None` for none.
    pub fn penalties(&self) -> Option<ModelPenalties> {
        Recommended::penalties(self.recommended().as_ref(), self.parameters())
    }

    /// What the files recommend; `None` where they say nothing that can be used. What is out of its range, or no
    /// number, is left out with a line in the log.
    pub fn recommended(&self) -> Option<Recommended> {
        let refused = |name: &str, value: f64| {
            tracing::warn!("{}: the recommended {name} of {value} cannot be used", self.path.display());
        };
        let read = match &*self.form {
            Form::Folder(folder) => {
                let config = &folder.generation_config;
                let read = Recommended::read(|name| config[name].as_f64(), refused);
                // Its other values are then what would hold for sampling.
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
