//! Servers of tools in `mcp.json`. A server runs only with the entry that a person saw when
//! switching it on; the hash of that entry is in the settings.

use foretoken_tools::{McpFile, ServerConfig, ServerState, ServerStatus, other_files};

use crate::app::App;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, ImportableServers, ToolServer, ToolServerState, ToolsStatus};

impl App {
    /// Returns the servers and the tools for the page.
    ///
    /// # Errors
    /// Returns errors of the store.
    pub fn tools_status(&self) -> Result<ToolsStatus> {
        let running = self.tools.toolbox.get().map(|toolbox| toolbox.servers()).unwrap_or_default();
        let (servers, problem) = match McpFile::read(&self.tools.file) {
            Ok(file) => (file.servers(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let switched_on = self.settings().tool_servers;
        let shown = servers.into_iter().map(|(name, config)| {
            let status = running.iter().find(|status| status.name == name);
            shown(name.clone(), config, switched_on.get(&name), status)
        });
        let servers = shown.collect();
        let builtins = self.builtins();
        let offers = match self.tools.toolbox.get() {
            Some(toolbox) => toolbox.offers(&builtins),
            None => foretoken_tools::builtin_offers(&builtins),
        };
        let tools = self.offered_tools(&offers)?;
        Ok(ToolsStatus { servers, tools, has_search_key: self.has_search_key(), problem })
    }

    /// Switches a server on, as it is in `mcp.json` now, or off. One that is switched on starts.
    ///
    /// # Errors
    /// Returns `NotFound` without such a server, `BadSetting` if its entry cannot be used.
    pub fn switch_tool_server(&self, name: &str, on: bool) -> Result<ToolsStatus> {
        if on {
            let config = self.tool_server(name)?;
            let digest = config.digest();
            self.change_settings(|mut settings| {
                settings.tool_servers.insert(name.to_owned(), digest);
                settings
            })?;
            self.tools.toolbox()?.switch_on(name, &config);
        } else {
            self.change_settings(|mut settings| {
                settings.tool_servers.remove(name);
                settings
            })?;
            if let Some(toolbox) = self.tools.toolbox.get() {
                toolbox.switch_off(name);
            }
        }
        self.tools_status()
    }

    /// Adds the servers of a pasted document, all of them off.
    ///
    /// # Errors
    /// Returns `BadSetting` if the text is no document of servers.
    pub fn add_tool_servers(&self, text: &str) -> Result<ToolsStatus> {
        let added = McpFile::parse(text).map_err(bad)?;
        self.change_file(|file| {
            file.add(&added);
        })?;
        self.tools_status()
    }

    /// Removes a server from `mcp.json`, and ends it.
    pub fn remove_tool_server(&self, name: &str) -> Result<ToolsStatus> {
        self.switch_tool_server(name, false)?;
        self.change_file(|file| {
            file.remove(name);
        })?;
        self.tools_status()
    }

    /// Returns the servers of other programs on this computer that are not here yet.
    pub fn importable_tool_servers(&self) -> Result<Vec<ImportableServers>> {
        let own = McpFile::read(&self.tools.file).map_err(bad)?;
        let found = other_files().into_iter().filter_map(|(program, path)| {
            let names = own.clone().add(&McpFile::read(&path).ok()?);
            (!names.is_empty()).then(|| ImportableServers { program: program.to_owned(), names })
        });
        Ok(found.collect())
    }

    /// Adds the servers of another program, all of them off.
    pub fn import_tool_servers(&self, program: &str) -> Result<ToolsStatus> {
        let files = other_files().into_iter().filter(|(name, _)| *name == program);
        for (_, path) in files {
            let added = McpFile::read(&path).map_err(bad)?;
            self.change_file(|file| {
                file.add(&added);
            })?;
        }
        self.tools_status()
    }

    /// Starts the servers that are switched on and whose entries have not changed since.
    pub(super) fn start_servers(&self) -> Result<()> {
        let switched_on = self.settings().tool_servers;
        if switched_on.is_empty() {
            return Ok(());
        }
        let file = McpFile::read(&self.tools.file).map_err(bad)?;
        let toolbox = self.tools.toolbox()?;
        for (name, config) in file.servers() {
            match config {
                Ok(config) if switched_on.get(&name) == Some(&config.digest()) => {
                    toolbox.switch_on(&name, &config);
                }
                _ => toolbox.switch_off(&name),
            }
        }
        Ok(())
    }

    fn tool_server(&self, name: &str) -> Result<ServerConfig> {
        let file = McpFile::read(&self.tools.file).map_err(bad)?;
        let found = file.servers().into_iter().find(|(other, _)| other == name);
        let missing = || CommandError::new(ErrorCode::NotFound, format!("mcp.json has no server {name}."));
        found.ok_or_else(missing)?.1.map_err(bad)
    }

    fn change_file(&self, change: impl FnOnce(&mut McpFile)) -> Result<()> {
        let mut file = McpFile::read(&self.tools.file).map_err(bad)?;
        change(&mut file);
        file.write(&self.tools.file).map_err(bad)
    }
}

fn bad(error: foretoken_tools::Error) -> CommandError {
    CommandError::new(ErrorCode::BadSetting, error)
}

fn shown(
    name: String,
    config: Result<ServerConfig, foretoken_tools::Error>,
    switched_on: Option<&String>,
    status: Option<&ServerStatus>,
) -> ToolServer {
    let log = status.map(|status| status.log.clone()).unwrap_or_default();
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            let (problem, state) = (Some(error.to_string()), ToolServerState::Failed);
            return ToolServer { name, line: String::new(), variables: Vec::new(), state, problem, log };
        }
    };
    let (state, problem) = match (switched_on, status.map(|status| &status.state)) {
        (None, _) => (ToolServerState::Off, None),
        (Some(digest), _) if *digest != config.digest() => (ToolServerState::Changed, None),
        (Some(_), None) => (ToolServerState::Waiting, None),
        (Some(_), Some(ServerState::Starting)) => (ToolServerState::Starting, None),
        (Some(_), Some(ServerState::Ready)) => (ToolServerState::Ready, None),
        (Some(_), Some(ServerState::Failed(error))) => (ToolServerState::Failed, Some(error.to_string())),
    };
    ToolServer { name, line: config.line(), variables: config.variables(), state, problem, log }
}
