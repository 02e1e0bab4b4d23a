//! Adding servers elsewhere, asking them for their models, and removing them.

use foretoken_remote::{Address, Client, Patience};

use crate::app::App;
use crate::error::{Result, bad_setting};
use crate::ipc::{RemoteModel, RemoteServer, Settings};
use crate::servers::{chosen, client, gone, is_remote, secret_name};

/// Letters of a server's name at most.
const MAX_NAME: usize = 60;

impl App {
    /// Adds a server, or changes the one of this name. Without a `key` the one that its address had stays. Asks
    /// nobody.
    ///
    /// # Errors
    /// `BadSetting` for a name or an address that cannot be.
    pub fn add_server(&self, name: &str, address: &str, key: Option<&str>) -> Result<Settings> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_NAME || name.contains('/') {
            return Err(bad_setting(
                "server name",
                "1 to 60 letters without a slash",
                format_args!("'{name}'"),
            ));
        }
        let address = Address::read(address)?;
        if let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) {
            Client::new(address.clone(), Some(key), Patience::default())?;
            self.secrets.keep(&secret_name(&address), Some(key))?;
        }
        let server = RemoteServer { name: name.to_owned(), address: address.to_string(), models: Vec::new() };
        self.change_settings(|mut settings| {
            match settings.remote_servers.iter_mut().find(|known| known.name == server.name) {
                Some(known) => *known = server,
                None => settings.remote_servers.push(server),
            }
            settings
        })
    }

    /// Asks a server for its models and keeps the list of them.
    ///
    /// # Errors
    /// `Remote` with what is wrong, in a sentence.
    pub fn test_server(&self, name: &str) -> Result<Settings> {
        let settings = self.settings();
        let server =
            settings.remote_servers.iter().find(|server| server.name == name).ok_or_else(|| gone(name))?;
        let found = client(server, &self.secrets)?.models(&|| false)?.unwrap_or_default();
        let models: Vec<_> = found
            .into_iter()
            .map(|model| RemoteModel { id: model.id, context: model.context.unwrap_or(0) })
            .collect();
        self.change_settings(|mut settings| {
            let same = |known: &&mut RemoteServer| known.name == name && known.address == server.address;
            if let Some(known) = settings.remote_servers.iter_mut().find(same) {
                known.models = models;
            }
            settings
        })
    }

    /// Takes a server off the list and forgets its key. Where a model of it was the target, the default is.
    ///
    /// # Errors
    /// Those of the settings.
    pub fn remove_server(&self, name: &str) -> Result<Settings> {
        let before = self.settings();
        let (gone, left): (Vec<_>, Vec<_>) =
            before.remote_servers.into_iter().partition(|server| server.name == name);
        for server in gone.iter().filter(|gone| left.iter().all(|left| left.address != gone.address)) {
            self.secrets.keep(&secret_name(&Address::read(&server.address)?), None)?;
        }
        self.change_settings(|mut settings| {
            settings.remote_servers.retain(|server| server.name != name);
            if is_remote(&settings.target) && chosen(&settings).is_err() {
                settings.target = self.library.default_target().to_owned();
            }
            settings
        })
    }
}
