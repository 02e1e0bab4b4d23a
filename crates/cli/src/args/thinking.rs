//! Whether a model shall think before it answers.

use clap::Args;
use clap::builder::BoolishValueParser;
use foretoken_engine::session::Form;

use crate::output;

/// See the module.
#[derive(Debug, Args)]
pub struct ThinkingArgs {
    /// Have the model think before it answers, or not, where its chat template has a switch for that [default: as its
    /// makers have it]
    #[arg(long, value_name = "on|off", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    thinking: Option<bool>,
}

impl ThinkingArgs {
    /// What was said, for a model whose prompts take `form`; where that changes nothing, a note says so.
    pub fn of(&self, form: &Form) -> Option<bool> {
        if self.thinking.is_some() && form.thinks().is_none() {
            output::note("--thinking changes nothing: this model's chat template has no switch for it.");
        }
        self.thinking
    }
}
