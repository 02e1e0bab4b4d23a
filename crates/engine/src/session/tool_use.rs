//! Tools of a reply, and the calls that it may have.

use foretoken_grammar::{Calls, Grammar};
use foretoken_model::error::{Error, Result};
use foretoken_model::{CallParser, ChatTemplate, Tool};

use super::Session;
use crate::decoder::Request;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// At least one.
    pub tools: Vec<Tool>,
    pub choice: ToolChoice,
    /// `true` if the reply may have several calls.
    pub parallel: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
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
        (!tools.is_empty()).then_some(Self { tools, choice, parallel })
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
        let form = template.calls();
        let otherwise = request.constraint.as_ref().map(|constraint| &constraint.grammar);
        let with = |tools: &[Tool], otherwise: Option<&Grammar>| {
            let calls =
                Calls { form, tools, required: self.choice != ToolChoice::Auto, parallel: self.parallel };
            let constraint = Some(session.form().constrained(calls.grammar(otherwise)?));
            let constrained = Request { constraint, ..request.clone() };
            session.decoder.admit(&constrained).map(|()| constrained)
        };
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
        let (thinking, reasons) = session.reasoning(&constrained);
        Ok((constrained, CallParser::new(form, thinking, reasons).of_tools(&tools)))
    }

    /// Tools that may be called.
    fn callable(&self) -> Vec<Tool> {
        let allows = |tool: &&Tool| match &self.choice {
            ToolChoice::Auto | ToolChoice::Required => true,
            ToolChoice::Named(name) => tool.name == *name,
        };
        self.tools.iter().filter(allows).cloned().collect()
    }
}
