//! Tools of the window: servers in `mcp.json`, which run once a person has switched them on, what a
//! person decides about calls, and the loop of replies and calls.
//!
//! - `builtins`: built-in tools, and what they need of the application
//! - `contents`: prompts and resources of servers
//! - [`running`]: the running servers, and decisions that a reply waits for
//! - `servers`: the list of servers, switched on and off, imported
//! - `turns`: runs the calls of a reply and writes the next part

mod builtins;
mod contents;
pub(crate) mod running;
mod servers;
pub(crate) mod turns;

use std::sync::Arc;

use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_model::Tool;
use foretoken_tools::Offer;

use crate::app::App;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{CallDecision, OfferedTool, PresetValues, ToolMode, ToolRule};

/// Tools of a reply.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offered {
    pub(crate) offers: Arc<Vec<Offer>>,
    pub(crate) mode: ToolMode,
}

impl Offered {
    /// Returns the tools as a model gets them; `is_asked` if it replies to a question.
    pub(crate) fn tool_use(&self, is_asked: bool) -> Option<ToolUse> {
        let choice = match self.mode {
            ToolMode::First if is_asked => ToolChoice::Required,
            _ => ToolChoice::Auto,
        };
        let tool = |offer: &Offer| Tool {
            name: offer.name.clone(),
            description: Some(offer.description.clone()),
            parameters: offer.parameters.clone(),
        };
        ToolUse::of(self.offers.iter().map(tool).collect(), choice)
    }
}

impl App {
    /// Returns the tools of a reply with these values in a conversation, once servers that are
    /// switched on have started.
    pub(crate) fn offered(
        &self,
        values: &PresetValues,
        conversation: Option<i64>,
        cancel: &Cancel,
    ) -> Result<Offered> {
        if values.tools == ToolMode::Off {
            return Ok(Offered::default());
        }
        self.start_servers()?;
        let toolbox = self.tools.toolbox()?;
        toolbox.wait(&|| cancel.is_cancelled());
        let mut offers = toolbox.offers(&self.builtins());
        let mut rules = Vec::with_capacity(offers.len());
        for offer in &offers {
            rules.push(self.rule(offer, conversation)?);
        }
        let mut rules = rules.into_iter();
        offers.retain(|_| rules.next() != Some(ToolRule::Never));
        Ok(Offered { offers: Arc::new(offers), mode: values.tools })
    }

    /// Returns what a person decided about a tool, for this conversation or for all.
    fn rule(&self, offer: &Offer, conversation: Option<i64>) -> Result<ToolRule> {
        let decided = self.store().approval(offer.server(), &offer.digest, conversation)?;
        Ok(match decided.as_deref() {
            Some("always") => ToolRule::Always,
            Some("never") => ToolRule::Never,
            _ => ToolRule::Ask,
        })
    }

    /// Decides about a call that waits.
    pub fn decide_call(&self, call: i64, decision: CallDecision) {
        self.tools.decide(call, decision);
    }

    /// Sets what happens to calls of a tool in all conversations.
    pub fn set_tool_rule(&self, server: Option<&str>, digest: &str, rule: ToolRule) -> Result<()> {
        let decision = match rule {
            ToolRule::Ask => None,
            ToolRule::Always => Some("always"),
            ToolRule::Never => Some("never"),
        };
        Ok(self.store().set_approval(server, digest, None, decision)?)
    }

    /// Lists the tools for the page.
    fn offered_tools(&self, offers: &[Offer]) -> Result<Vec<OfferedTool>> {
        let tool = |offer: &Offer| {
            Ok(OfferedTool {
                server: offer.server().map(str::to_owned),
                name: offer.tool().to_owned(),
                description: offer.description.clone(),
                digest: offer.digest.clone(),
                rule: self.rule(offer, None)?,
            })
        };
        offers.iter().map(tool).collect()
    }
}
