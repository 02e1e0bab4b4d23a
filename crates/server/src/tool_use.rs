//! Tools of a reply, and the calls that it may have.

use foretoken_engine::decoder::Request;
use foretoken_engine::session::Session;
use foretoken_grammar::{Calls, Grammar};
use foretoken_model::error::{Error, Result as EngineResult};
use foretoken_model::{ChatTemplate, Tool};

use crate::refusal::Refusal;

/// Most tools of a request; agents with several servers of tools send some hundreds.
const MOST: usize = 1024;

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
    /// Returns the tools of a request; `None` if the model gets none.
    ///
    /// # Errors
    /// Refuses invalid and repeated names, too many tools, and a choice that is no tool.
    pub fn of(tools: Vec<Tool>, choice: Option<ToolChoice>, parallel: bool) -> Result<Option<Self>, Refusal> {
        if tools.len() > MOST {
            return Err(Refusal::bad_field("tools", &format!("at most {MOST} tools")));
        }
        for (at, tool) in tools.iter().enumerate() {
            if !Tool::is_name(&tool.name) {
                return Err(Refusal::bad_name("tools"));
            }
            if tools[..at].iter().any(|other| other.name == tool.name) {
                return Err(Refusal::bad_field("tools", "tools of different names"));
            }
            if !tool.parameters.is_object() {
                return Err(Refusal::bad_field("tools", "parameters that are a JSON schema"));
            }
        }
        let known = |name: &String| tools.iter().any(|tool| tool.name == *name);
        match choice {
            None => Ok(None),
            Some(ToolChoice::Named(name)) if !known(&name) => {
                Err(Refusal::bad_field("tool_choice", "the name of one of the tools"))
            }
            Some(ToolChoice::Required) if tools.is_empty() => {
                Err(Refusal::bad_field("tools", "at least one tool"))
            }
            Some(_) if tools.is_empty() => Ok(None),
            Some(choice) => Ok(Some(Self { tools, choice, parallel })),
        }
    }

    /// Constrains a reply to text, or what `request` constrains it to, and valid calls. Where a
    /// tool's schema cannot be compiled, its arguments are any object.
    ///
    /// # Errors
    /// Those of [`Decoder::admit`](foretoken_engine::decoder::Decoder::admit).
    pub(crate) fn constrained(
        &self,
        session: &Session,
        template: &ChatTemplate,
        request: Request,
    ) -> EngineResult<Request> {
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
        match with(&tools, otherwise) {
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
        }
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
