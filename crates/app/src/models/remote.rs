//! Adding remote servers, listing their models, and removing them.

use foretoken_remote::{Address, Client, Timeouts};

use super::servers::{chosen, client, gone, is_remote, secret_name};
use crate::app::App;
use crate::error::{Result, bad_setting};
use crate::ipc::{RemoteModel, RemoteServer, Settings};

/// Longest name of a server in characters.
const MAX_NAME: usize = 60;

impl App {
    /// Adds a server, or changes the one of this name. Without a `key` the key of its address
    /// stays; keys of addresses no longer in use are removed. Sends no request.
    ///
    /// # Errors
    /// Returns `BadSetting` for an invalid name or address; errors of
    /// [`Secrets::keep`](foretoken_library::Secrets::keep), after which the server is added
    /// nevertheless.
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
        let key = key.map(str::trim).filter(|key| !key.is_empty());
        Client::new(address.clone(), key, Timeouts::default())?;
        let server = RemoteServer { name: name.to_owned(), address: address.to_string(), models: Vec::new() };
        let before = self.settings().remote_servers;
        let settings = self.change_settings(|mut settings| {
            match settings.remote_servers.iter_mut().find(|known| known.name == server.name) {
                Some(known) if known.address == server.address => (),
                Some(known) => *known = server,
                None => settings.remote_servers.push(server),
            }
            settings
        })?;
        if key.is_some() {
            self.secrets.keep(&secret_name(&address), key)?;
        }
        self.forget_keys(&before, &settings)?;
        Ok(settings)
    }

    /// Removes the keys of addresses that no server has any more.
    fn forget_keys(&self, before: &[RemoteServer], settings: &Settings) -> Result<()> {
        let is_gone = |server: &&RemoteServer| {
            settings.remote_servers.iter().all(|left| left.address != server.address)
        };
        for server in before.iter().filter(is_gone) {
            self.secrets.keep(&secret_name(&Address::read(&server.address)?), None)?;
        }
        Ok(())
    }

    /// Requests a server's models and stores the list.
    ///
    /// # Errors
    /// Returns `Remote` with the problem in a sentence.
    pub fn test_server(&self, name: &str) -> Result<Settings> {
        let settings = self.settings();
        let server =
            settings.remote_servers.iter().find(|server| server.name == name).ok_or_else(|| gone(name))?;
        let found = client(server, &self.secrets)?.models(&|| false)?.unwrap_or_default();
        let models: Vec<_> = found
            .into_iter()
            .map(|model| RemoteModel { id: model.id, context: model.context.unwrap_or(0), sees: model.sees })
            .collect();
        self.change_settings(|mut settings| {
            let same = |known: &&mut RemoteServer| known.name == name && known.address == server.address;
            if let Some(known) = settings.remote_servers.iter_mut().find(same) {
                known.models = models;
            }
            settings
        })
    }

    /// Removes a server and its key. If one of its models was the target, the default replaces it.
    ///
    /// # Errors
    /// Returns errors of the settings, and of [`Secrets::keep`](foretoken_library::Secrets::keep),
    /// after which the server is removed nevertheless.
    pub fn remove_server(&self, name: &str) -> Result<Settings> {
        let before = self.settings().remote_servers;
        let settings = self.change_settings(|mut settings| {
            settings.remote_servers.retain(|server| server.name != name);
            if is_remote(&settings.target) && chosen(&settings).is_err() {
                settings.target = self.library.default_target().to_owned();
            }
            settings
        })?;
        self.forget_keys(&before, &settings)?;
        Ok(settings)
    }
}
