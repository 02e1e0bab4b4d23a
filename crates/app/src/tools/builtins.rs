//! Built-in tools: which are offered, and what they need of the application.

use chrono::{DateTime, Local};
use foretoken_store as store;
use foretoken_tools::{
    AttachedFile, Builtin, BuiltinContext, Error, FoundMessage, SearchEngine, SearchService, builtin_offers,
};

use crate::app::App;
use crate::error::Result;
use crate::ipc::{CommandError, ToolMode, ToolRule, ToolsStatus};
use crate::models::servers::is_remote;

impl App {
    /// Returns the built-in tools that are switched on and can be used.
    pub(super) fn builtins(&self) -> Vec<Builtin> {
        let mut builtins = self.settings().builtin_tools;
        builtins.retain(|builtin| *builtin != Builtin::WebSearch || self.search_engine().is_some());
        builtins
    }

    /// Returns whether replies in a conversation can read attachments with a tool.
    pub(crate) fn reads_attachments(&self, conversation: Option<i64>) -> Result<bool> {
        let settings = self.settings();
        if !settings.builtin_tools.contains(&Builtin::ReadAttachment) || is_remote(&settings.target) {
            return Ok(false);
        }
        if self.setup_of(conversation)?.values.tools == ToolMode::Off {
            return Ok(false);
        }
        for offer in builtin_offers(&[Builtin::ReadAttachment]) {
            if self.rule(&offer, conversation)? == ToolRule::Never {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps the key of a search service, or removes it.
    ///
    /// # Errors
    /// Returns errors of the keyring.
    pub fn set_search_key(&self, service: SearchService, key: Option<&str>) -> Result<ToolsStatus> {
        let key = key.map(str::trim).filter(|key| !key.is_empty());
        self.secrets.keep(&secret_name(service), key)?;
        self.tools_status()
    }

    /// Returns whether the chosen search service has a key.
    pub(super) fn has_search_key(&self) -> bool {
        let service = self.settings().search_service.filter(|service| service.wants_key());
        service.is_some_and(|service| self.secrets.find(&secret_name(service)).is_some())
    }

    fn search_engine(&self) -> Option<SearchEngine> {
        let settings = self.settings();
        let service = settings.search_service?;
        if service.wants_key() {
            let key = Some(self.secrets.find(&secret_name(service))?);
            return Some(SearchEngine { service, address: String::new(), key });
        }
        let address = settings.searxng_address.trim().to_owned();
        (!address.is_empty()).then_some(SearchEngine { service, address, key: None })
    }
}

/// Name of a service's key in the keyring.
fn secret_name(service: SearchService) -> String {
    let name = match service {
        SearchService::Searxng => "searxng",
        SearchService::Brave => "brave",
        SearchService::Tavily => "tavily",
    };
    format!("search {name}")
}

/// A conversation whose reply calls built-in tools.
pub(super) struct Calling<'a> {
    pub(super) app: &'a App,
    pub(super) conversation: i64,
}

impl BuiltinContext for Calling<'_> {
    fn find_messages(&self, words: &str, most: u32) -> Result<Vec<FoundMessage>, Error> {
        let store = self.app.store();
        let hits = store.search_elsewhere(words, most, self.conversation).map_err(failed)?;
        let found = |hit: store::Hit| {
            let message = store.message(hit.message).map_err(failed)?;
            Ok(FoundMessage {
                conversation: hit.conversation.title,
                date: date(message.created_at),
                is_reply: message.role == store::Role::Assistant,
                excerpt: hit.excerpt,
            })
        };
        hits.into_iter().map(found).collect()
    }

    fn attached(&self) -> Result<Vec<AttachedFile>, Error> {
        let messages = self.app.store().messages(self.conversation).map_err(failed)?;
        let files = messages.into_iter().flat_map(|message| message.attachments);
        let files = files.filter(|file| file.kind != store::AttachmentKind::Picture);
        Ok(files.map(|file| AttachedFile { id: file.id, name: file.name }).collect())
    }

    fn attached_text(&self, id: i64) -> Result<String, Error> {
        Ok(self.app.store().attachment(id).map_err(failed)?.text)
    }

    fn search_engine(&self) -> Option<SearchEngine> {
        self.app.search_engine()
    }
}

fn failed(error: store::Error) -> Error {
    Error::Builtin(CommandError::from(error).message)
}

/// Returns the local date of a time in milliseconds since 1970.
fn date(milliseconds: i64) -> String {
    let time = DateTime::from_timestamp_millis(milliseconds).unwrap_or_default();
    time.with_timezone(&Local).format("%Y-%m-%d").to_string()
}
