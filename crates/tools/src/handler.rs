//! Client's side of what a server may send unasked: progress and changes of its lists. Requests
//! that would let a server use the model, see folders or ask the person are refused.

#![allow(deprecated, reason = "older servers ask for what the protocol no longer has")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, Implementation,
    ListRootsRequestMethod, ListRootsResult, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

use crate::log::{Log, printable};

/// Progress of a call, as its server reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    pub done: f64,
    /// `None` if the server does not know it.
    pub total: Option<f64>,
    /// Words of the server; empty without any.
    pub message: String,
}

impl From<ProgressNotificationParam> for Progress {
    fn from(params: ProgressNotificationParam) -> Self {
        let ProgressNotificationParam { progress, total, message, .. } = params;
        Self { done: progress, total, message: printable(&message.unwrap_or_default()) }
    }
}

/// Progress of the calls that run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<ProgressToken, Option<Progress>>>>);

impl Calls {
    pub(crate) fn begin(&self, call: ProgressToken) {
        self.with(|calls| calls.insert(call, None));
    }

    pub(crate) fn end(&self, call: &ProgressToken) {
        self.with(|calls| calls.remove(call));
    }

    /// Returns progress that was not returned yet.
    pub(crate) fn take(&self, call: &ProgressToken) -> Option<Progress> {
        self.with(|calls| calls.get_mut(call).and_then(Option::take))
    }

    fn report(&self, call: &ProgressToken, progress: Progress) {
        self.with(|calls| {
            if let Some(last) = calls.get_mut(call) {
                *last = Some(progress);
            }
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<ProgressToken, Option<Progress>>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handler {
    pub(crate) log: Log,
    pub(crate) calls: Calls,
    /// Notified when a list of the server has changed.
    pub(crate) changed: Arc<Notify>,
}

impl Handler {
    fn change(&self, list: &str) {
        self.log.add(&format!("The server's {list} have changed."));
        self.changed.notify_one();
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let program = Implementation::new("Foretoken", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), program)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.log.add("The server asked for a reply of the model, which was refused.");
        Err(ErrorData::method_not_found::<CreateMessageRequestMethod>())
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.log.add("The server asked for folders, which was refused.");
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.log.add("The server asked a question, which was declined.");
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let call = params.progress_token.clone();
        self.calls.report(&call, params.into());
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.change("tools");
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.change("prompts");
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.change("resources");
    }
}
