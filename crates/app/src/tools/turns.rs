//! The loop of a question: a reply, its calls, what a person decides about them, their results, and
//! the next part of the reply. A call holds no turn of the engine.

use std::time::Instant;

use foretoken_model::ToolCall;
use foretoken_store::{self as store, CallEnd, CallState, CallTokens, NewCall};
use foretoken_tools::Offer;
use serde_json::Map;

use super::Offered;
use super::builtins::Calling;
use crate::app::App;
use crate::cancel::Cancel;
use crate::conversations::reply::Events;
use crate::error::Result;
use crate::ipc::{Call, CallDecision, ReplyEvent, ToolRule};

/// A complete call of a reply.
pub(crate) struct MadeCall {
    pub(crate) call: ToolCall,
    /// Bytes of the reply's text before all its calls.
    pub(crate) text_start: usize,
    pub(crate) tokens: Option<CallTokens>,
}

impl Offered {
    /// Returns a call as it is stored with its reply.
    pub(crate) fn asked(&self, MadeCall { call, text_start, tokens }: &MadeCall) -> NewCall {
        let offer = self.offers.iter().find(|offer| offer.name == call.name);
        NewCall {
            text_start: *text_start as i64,
            server: offer.and_then(Offer::server).map(str::to_owned),
            tool: offer.map_or(call.name.as_str(), Offer::tool).to_owned(),
            name: call.name.clone(),
            arguments: serde_json::Value::from(call.arguments.clone()).to_string(),
            state: CallState::Asked,
            result: String::new(),
            is_error: false,
            took_ms: None,
            tokens: *tokens,
        }
    }
}

impl App {
    /// Runs the calls of a reply in order, as far as a person allows them. Returns `false` if the
    /// reply was stopped meanwhile.
    pub(crate) fn run_calls(
        &self,
        conversation: i64,
        calls: Vec<store::Call>,
        offered: &Offered,
        cancel: &Cancel,
        events: &Events,
    ) -> Result<bool> {
        for call in calls {
            let ended = match offered.offers.iter().find(|offer| offer.name == call.call.name) {
                None => failed(&foretoken_tools::Error::NoTool(call.call.name.clone())),
                Some(offer) => match self.decided(&call, offer, conversation, cancel)? {
                    None => Ended { state: CallState::Stopped, ..Ended::default() },
                    Some(false) => Ended { state: CallState::Refused, ..Ended::default() },
                    Some(true) => self.run_call(&call, offer, conversation, cancel, events)?,
                },
            };
            self.end_call(call.id, &ended, events)?;
        }
        Ok(!cancel.is_cancelled())
    }

    /// Marks calls as stopped.
    pub(crate) fn stop_calls(&self, calls: Vec<store::Call>, events: &Events) -> Result<()> {
        let stopped = Ended { state: CallState::Stopped, ..Ended::default() };
        calls.into_iter().try_for_each(|call| self.end_call(call.id, &stopped, events))
    }

    /// Returns whether a call may run, and stores what holds for later ones; `None` if the reply
    /// was stopped.
    fn decided(
        &self,
        call: &store::Call,
        offer: &Offer,
        conversation: i64,
        cancel: &Cancel,
    ) -> Result<Option<bool>> {
        match self.rule(offer, Some(conversation))? {
            _ if cancel.is_cancelled() => return Ok(None),
            ToolRule::Always => return Ok(Some(true)),
            ToolRule::Never => return Ok(Some(false)),
            ToolRule::Ask => {}
        }
        let Some(decision) = self.tools.wait_for(call.id, cancel) else { return Ok(None) };
        let kept = match decision {
            CallDecision::Once | CallDecision::Refuse => None,
            CallDecision::Conversation => Some((Some(conversation), "always")),
            CallDecision::Always => Some((None, "always")),
            CallDecision::Never => Some((None, "never")),
        };
        if let Some((conversation, decided)) = kept {
            self.store().set_approval(offer.server(), &offer.digest, conversation, Some(decided))?;
        }
        Ok(Some(!matches!(decision, CallDecision::Refuse | CallDecision::Never)))
    }

    fn run_call(
        &self,
        call: &store::Call,
        offer: &Offer,
        conversation: i64,
        cancel: &Cancel,
        events: &Events,
    ) -> Result<Ended> {
        self.end_call(call.id, &Ended { state: CallState::Running, ..Ended::default() }, events)?;
        let arguments: Map<_, _> = serde_json::from_str(&call.call.arguments)?;
        let begun = Instant::now();
        let on_progress = |progress: foretoken_tools::Progress| {
            let foretoken_tools::Progress { done, total, message } = progress;
            events(ReplyEvent::CallProgress { call: call.id, done, total, message });
        };
        let (calling, stop) = (Calling { app: self, conversation }, || cancel.is_cancelled());
        let outcome = self.tools.toolbox()?.call(&offer.source, arguments, &calling, &stop, &on_progress);
        let ended = match outcome {
            Ok(outcome) => Ended {
                state: CallState::Done,
                result: outcome.cut(self.longest_result()),
                is_error: outcome.is_error,
                ..Ended::default()
            },
            Err(foretoken_tools::Error::Stopped) => Ended { state: CallState::Stopped, ..Ended::default() },
            Err(error) => failed(&error),
        };
        Ok(Ended { took_ms: Some(begun.elapsed().as_millis() as i64), ..ended })
    }

    /// Most bytes of a result: a quarter of the context at four bytes a token. Servers may not
    /// report a context.
    fn longest_result(&self) -> usize {
        let target = self.engine.status().target.filter(|target| target.context > 0);
        target.map_or(usize::MAX, |target| target.context as usize)
    }

    /// Stores the state of a call and shows it.
    fn end_call(&self, id: i64, ended: &Ended, events: &Events) -> Result<()> {
        let Ended { state, result, is_error, took_ms } = ended;
        let end = CallEnd { state: *state, result, is_error: *is_error, took_ms: *took_ms };
        let call = self.store().set_call(id, end)?;
        events(ReplyEvent::Call { call: call.into() });
        Ok(())
    }
}

/// State of a call, as it will be stored.
struct Ended {
    state: CallState,
    result: String,
    is_error: bool,
    took_ms: Option<i64>,
}

impl Default for Ended {
    fn default() -> Self {
        Self { state: CallState::Asked, result: String::new(), is_error: false, took_ms: None }
    }
}

fn failed(error: &foretoken_tools::Error) -> Ended {
    Ended { state: CallState::Failed, result: error.to_string(), is_error: true, ..Ended::default() }
}

impl From<store::Call> for Call {
    fn from(row: store::Call) -> Self {
        let store::Call { id, message, call } = row;
        Self {
            id,
            message,
            server: call.server,
            tool: call.tool,
            arguments: call.arguments,
            state: call.state,
            result: call.result,
            is_error: call.is_error,
            took_ms: call.took_ms,
            tokens: call.tokens,
        }
    }
}
