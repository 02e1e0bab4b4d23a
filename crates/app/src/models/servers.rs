//! Remote servers in the settings: ids and labels of their models, the chosen target, and its
//! client. `remote.rs` adds and removes servers.

use foretoken_forward::device::{DeviceFact, DeviceLabel};
use foretoken_library::Secrets;
use foretoken_remote::{Address, Client, Timeouts};

use crate::error::Result;
use crate::ipc::{
    CommandError, ErrorCode, ModelDetail, ModelEntry, ModelKind, RemoteModel, RemoteServer, Settings,
};

/// Prefix of a remote target's id: `remote:SERVER/MODEL`.
const PREFIX: &str = "remote:";

/// The chosen target on a remote server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen<'a> {
    pub(crate) server: &'a RemoteServer,
    pub(crate) model: &'a str,
}

impl<'a> Chosen<'a> {
    /// Returns the model as its server listed it last; `None` if it did not.
    fn listed(self) -> Option<&'a RemoteModel> {
        self.server.models.iter().find(|known| known.id == self.model)
    }
}

/// Returns whether a target's id is one of a remote server.
pub(crate) fn is_remote(target: &str) -> bool {
    target.starts_with(PREFIX)
}

/// Returns the chosen remote target.
///
/// # Errors
/// Returns `Remote` if its server was removed.
pub(crate) fn chosen(settings: &Settings) -> Result<Chosen<'_>> {
    let target = settings.target.strip_prefix(PREFIX).unwrap_or_default();
    let (name, model) = target.split_once('/').unwrap_or((target, ""));
    let server = settings.remote_servers.iter().find(|server| server.name == name);
    server.map(|server| Chosen { server, model }).ok_or_else(|| gone(name))
}

/// Returns the context length of the chosen model in tokens.
///
/// # Errors
/// Same as [`chosen`], and an error if the server does not report it.
pub(crate) fn context(settings: &Settings) -> Result<usize> {
    let known = chosen(settings)?.listed().filter(|known| known.context > 0);
    known.map(|known| known.context as usize).ok_or_else(|| {
        let message = "The server doesn't report its model's context length. Start a new conversation.";
        CommandError::new(ErrorCode::Remote, message)
    })
}

/// Returns the chosen target's list entry; `None` if it is on this computer, or its server was
/// removed.
pub(crate) fn entry(settings: &Settings) -> Option<ModelEntry> {
    let chosen = chosen(settings).ok().filter(|_| is_remote(&settings.target))?;
    let unlisted = RemoteModel { id: chosen.model.to_owned(), context: 0, sees: None };
    Some(listed(chosen.server, chosen.listed().unwrap_or(&unlisted)))
}

/// Returns the list entries of every model of every server.
pub(crate) fn entries(settings: &Settings) -> impl Iterator<Item = ModelEntry> {
    let servers = settings.remote_servers.iter();
    servers.flat_map(|server| server.models.iter().map(move |model| listed(server, model)))
}

fn listed(server: &RemoteServer, model: &RemoteModel) -> ModelEntry {
    ModelEntry {
        id: format!("{PREFIX}{}/{}", server.name, model.id),
        label: label(server, &model.id),
        detail: Some(ModelDetail::Server { host: host(server) }),
        kind: ModelKind::Remote,
        program: None,
        name: model.id.clone(),
        size_bytes: 0,
        memory_bytes: 0,
        fits: true,
        parameters: 0,
        context: model.context,
        context_window: None,
        recommended: None,
        sees: model.sees == Some(true),
        licence: None,
        read_bytes: 0,
        speed: None,
        problem: None,
    }
}

/// Returns whether pictures are sent to the chosen remote model: unless its server reports that it
/// does not see them.
pub(crate) fn sees(settings: &Settings) -> bool {
    chosen(settings).is_ok_and(|chosen| chosen.listed().is_none_or(|known| known.sees != Some(false)))
}

/// Returns the label of a remote model: "Qwen/Qwen3-8B · gpu".
pub(crate) fn label(server: &RemoteServer, model: &str) -> String {
    format!("{model} · {}", server.name)
}

/// Returns the device label of a remote target: "gpu, 192.168.1.5:8000".
pub(crate) fn device(settings: &Settings) -> DeviceLabel {
    let label = |chosen: Chosen<'_>| {
        let facts = vec![DeviceFact::Host { address: host(chosen.server) }];
        DeviceLabel { facts, ..DeviceLabel::named(&chosen.server.name) }
    };
    chosen(settings).map(label).unwrap_or_default()
}

fn host(server: &RemoteServer) -> String {
    Address::read(&server.address).map_or_else(|_| server.address.clone(), |address| address.host())
}

/// Returns the client of a server, with its key.
pub(crate) fn client(server: &RemoteServer, secrets: &Secrets) -> Result<Client> {
    let address = Address::read(&server.address)?;
    let key = secrets.find(&secret_name(&address));
    Ok(Client::new(address, key.as_deref(), Timeouts::default())?)
}

/// Returns the keyring name of an address's key. A key belongs to an address, so it is not sent to
/// another one.
pub(crate) fn secret_name(address: &Address) -> String {
    format!("remote {address}")
}

pub(crate) fn gone(name: &str) -> CommandError {
    let message = format!(
        "The server '{name}' was removed. Add it again in Settings > Remote, or choose another model."
    );
    CommandError::new(ErrorCode::Remote, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_target_is_identified_by_its_server_and_the_servers_model_name() {
        let models = vec![RemoteModel { id: "Qwen/Qwen3-8B".to_owned(), context: 4096, sees: Some(true) }];
        let server =
            RemoteServer { name: "gpu".to_owned(), address: "http://10.0.0.7:8000/v1".to_owned(), models };
        let settings = |target: &str| Settings {
            target: target.to_owned(),
            remote_servers: vec![server.clone()],
            ..Settings::default()
        };
        let all: Vec<_> = entries(&settings("")).collect();
        assert_eq!((all.len(), all[0].id.as_str()), (1, "remote:gpu/Qwen/Qwen3-8B"));
        assert_eq!(all[0].detail, Some(ModelDetail::Server { host: "10.0.0.7:8000".to_owned() }));
        let chosen = settings(&all[0].id);
        assert_eq!(entry(&chosen).as_ref(), Some(&all[0]));
        assert_eq!(context(&chosen).unwrap(), 4096);
        assert_eq!(device(&chosen).to_string(), "gpu, 10.0.0.7:8000");
        let unlisted = entry(&settings("remote:gpu/other")).unwrap();
        assert_eq!((unlisted.name.as_str(), unlisted.context), ("other", 0));
        for here in ["smollm2", "/a/remote:gpu/x", "remote:gone/m", "remote:"] {
            assert_eq!(entry(&settings(here)), None, "{here}");
        }
    }
}
