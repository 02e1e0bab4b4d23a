//! Prompts and resources of servers, which a person picks for a question.

use foretoken_tools::ServerState;

use crate::app::App;
use crate::error::Result;
use crate::ipc::{Attached, AttachmentKind, CommandError, ErrorCode, FilledArgument, ServerContents};

impl App {
    /// Returns the prompts and resources of running servers. `start` starts the servers that are
    /// switched on; until none is starting, more may follow.
    ///
    /// # Errors
    /// Returns `BadSetting` if `mcp.json` cannot be read.
    pub fn server_contents(&self, start: bool) -> Result<ServerContents> {
        if start {
            self.start_servers()?;
        }
        let Some(toolbox) = self.tools.toolbox.get() else { return Ok(ServerContents::default()) };
        let servers = toolbox.servers();
        let problems = servers.iter().filter_map(|server| match &server.state {
            ServerState::Failed(error) => Some(format!("{}: {error}", server.name)),
            _ => None,
        });
        Ok(ServerContents {
            prompts: toolbox.prompts(),
            resources: toolbox.resources(),
            is_starting: servers.iter().any(|server| server.state == ServerState::Starting),
            problems: problems.collect(),
        })
    }

    /// Fetches the text of a prompt with these arguments. A later call cancels an earlier one.
    ///
    /// # Errors
    /// Returns `Cancelled`, or `BadAttachment` with what prevented a text.
    pub fn fetch_prompt(&self, server: &str, name: &str, arguments: Vec<FilledArgument>) -> Result<String> {
        let cancel = self.tools.fetching.begin();
        let values = FilledArgument::by_name(arguments);
        let toolbox = self.tools.toolbox()?;
        toolbox.prompt(server, name, &values, &|| cancel.is_cancelled()).map_err(failed)
    }

    /// Fetches a resource as an attachment; `arguments` are the values of a template's variables. A
    /// later call cancels an earlier one.
    ///
    /// # Errors
    /// Returns `Cancelled`, or `BadAttachment` with what prevented a text.
    pub fn fetch_resource(
        &self,
        server: &str,
        uri: &str,
        arguments: Vec<FilledArgument>,
    ) -> Result<Attached> {
        let cancel = self.tools.fetching.begin();
        let values = FilledArgument::by_name(arguments);
        let read = |bytes: &[u8]| self.documents.read_any(bytes).map_err(|unread| unread.reason().to_owned());
        let toolbox = self.tools.toolbox()?;
        let fetched = toolbox.resource(server, uri, &values, &read, &|| cancel.is_cancelled());
        let resource = fetched.map_err(failed)?;
        Ok(Attached { name: resource.name, kind: AttachmentKind::Text, text: resource.text })
    }

    /// Cancels the fetching of a prompt or resource.
    pub fn stop_fetching(&self) {
        self.tools.fetching.end();
    }
}

fn failed(error: foretoken_tools::Error) -> CommandError {
    let code = match error {
        foretoken_tools::Error::Stopped => ErrorCode::Cancelled,
        _ => ErrorCode::BadAttachment,
    };
    CommandError::new(code, error)
}
