//! Tools of a reply, and the calls that it may have.

use foretoken_grammar::{Calls, Grammar};
use foretoken_model::channels::Channels;
use foretoken_model::error::{Error, Result};
use foretoken_model::tools::Place;
use foretoken_model::{CallParser, ChatTemplate, Tool};
use serde::{Deserialize, Serialize};

use super::Session;
use crate::constraint::Constraint;
use crate::decoder::Request;

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// At least one.
    pub tools: Vec<Tool>,
    pub choice: ToolChoice,
    /// `true` if the reply may have several calls.
    pub parallel: bool,
    /// Names of those that may be called; `None` for all. The model sees the others, too, so that
    /// its prompt stays the same.
    pub allowed: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides whether it calls a tool.
    Auto,
    /// The model calls some tool.
    Required,
    /// The model calls this one.
    Named(String),
}

impl ToolUse {
    /// Tools of a reply in which a chosen call is the only one; `None` without tools.
    pub fn of(tools: Vec<Tool>, choice: ToolChoice) -> Option<Self> {
        let parallel = choice == ToolChoice::Auto;
        (!tools.is_empty()).then_some(Self { tools, choice, parallel, allowed: None })
    }

    /// Constrains a reply to text, or what `request` constrains it to, and valid calls. Where a
    /// tool's schema cannot be compiled, its arguments are any object. Returns a parser of the
    /// reply, too.
    ///
    /// # Errors
    /// Those of [`Decoder::admit`](crate::decoder::Decoder::admit).
    pub fn constrained(
        &self,
        session: &Session,
        template: &ChatTemplate,
        request: Request,
    ) -> Result<(Request, CallParser)> {
        let form = template.tools().form;
        let otherwise = request.constraint.as_ref().map(|constraint| &constraint.grammar);
        let in_channels = form.place == Place::Channel;
        let with = |tools: &[Tool], otherwise: Option<&Grammar>| {
            let (required, parallel) = (self.choice != ToolChoice::Auto, self.parallel);
            let calls = Calls { form, tools, required, parallel, tokenizer: Some(session.tokenizer()) };
            let grammar = calls.grammar(otherwise)?;
            // In channels, the grammar has the reasoning, too.
            let constraint = match in_channels {
                true => Constraint { grammar, thinking: None },
                false => session.form().constrained(grammar),
            };
            let constrained = Request { constraint: Some(constraint), ..request.clone() };
            session.decoder.admit(&constrained).map(|()| constrained)
        };
        let (thinking, reasons) = session.reasoning(&request);
        let parser = CallParser::new(form, thinking, reasons).of_tokens(session.tokenizer());
        if in_channels && Channels::is_in_message(&request.prompt, session.tokenizer()) {
            // A call would be a message of its own.
            session.decoder.admit(&request)?;
            return Ok((request, parser));
        }
        let mut tools = self.callable();
        let constrained = match with(&tools, otherwise) {
            Err(Error::Grammar { .. }) => {
                for tool in &mut tools {
                    if let Err(error) = with(std::slice::from_ref(tool), None) {
                        tracing::warn!("the arguments of a tool are any object: {error}");
                        tool.parameters = serde_json::json!({ "type": "object" });
                    }
                }
                with(&tools, otherwise)
            }
            constrained => constrained,
        }?;
        Ok((constrained, parser.of_tools(&tools)))
    }

    /// Tools that may be called.
    fn callable(&self) -> Vec<Tool> {
        let allows = |tool: &&Tool| match &self.choice {
            ToolChoice::Auto | ToolChoice::Required => {
                self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&tool.name))
            }
            ToolChoice::Named(name) => tool.name == *name,
        };
        self.tools.iter().filter(allows).cloned().collect()
    }
}
