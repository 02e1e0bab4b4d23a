//! The option --thinking.

use clap::Args;
use clap::builder::BoolishValueParser;
use foretoken_engine::session::Form;

use crate::output;

/// The option --thinking.
#[derive(Debug, Clone, Args)]
pub struct ThinkingArgs {
    /// Turn the model's thinking on or off, if its chat template has a switch for it [default: the
    /// template's own]
    #[arg(long, value_name = "on|off", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    thinking: Option<bool>,
}

impl ThinkingArgs {
    /// The option's value for a model with the prompt format `form`; warns if the template has no
    /// switch.
    pub fn of(&self, form: &Form) -> Option<bool> {
        if self.thinking.is_some() && form.thinks().is_none() {
            output::note("--thinking has no effect: this model's chat template has no switch for it.");
        }
        self.thinking
    }
}
