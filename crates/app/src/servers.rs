//! Servers elsewhere that a person added: what they and their models are called, which of them is the target, and the
//! way to it. Adding them is another file's.

use foretoken_library::Secrets;
use foretoken_remote::{Address, Client, Timeouts};

use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, ModelEntry, ModelKind, RemoteModel, RemoteServer, Settings};

/// What the id of a target elsewhere begins with: `remote:SERVER/MODEL`.
const PREFIX: &str = "remote:";

/// A target that is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen<'a> {
    pub(crate) server: &'a RemoteServer,
    pub(crate) model: &'a str,
}

/// Whether the id of a target says that it is elsewhere.
pub(crate) fn is_remote(target: &str) -> bool {
    target.starts_with(PREFIX)
}

/// The target that is elsewhere.
///
/// # Errors
/// `Remote` where its server is not among those that were added.
pub(crate) fn chosen(settings: &Settings) -> Result<Chosen<'_>> {
    let target = settings.target.strip_prefix(PREFIX).unwrap_or_default();
    let (name, model) = target.split_once('/').unwrap_or((target, ""));
    let server = settings.remote_servers.iter().find(|server| server.name == name);
    server.map(|server| Chosen { server, model }).ok_or_else(|| gone(name))
}

/// Tokens that the chosen model's context holds.
///
/// # Errors
/// As [`chosen`], and where the server does not say.
pub(crate) fn context(settings: &Settings) -> Result<usize> {
    let Chosen { server, model } = chosen(settings)?;
    let known = server.models.iter().find(|known| known.id == model && known.context > 0);
    known.map(|known| known.context as usize).ok_or_else(|| {
        let message =
            "The server does not say how much its model can read at once. Begin a new conversation.";
        CommandError::new(ErrorCode::Remote, message)
    })
}

/// The chosen target as the lists show it; `None` where it is on this computer, or its server is gone.
pub(crate) fn entry(settings: &Settings) -> Option<ModelEntry> {
    let Chosen { server, model } = chosen(settings).ok().filter(|_| is_remote(&settings.target))?;
    let known = server.models.iter().find(|known| known.id == model);
    let unlisted = RemoteModel { id: model.to_owned(), context: 0 };
    Some(listed(server, known.unwrap_or(&unlisted)))
}

/// Every model of every server, as the lists show them.
pub(crate) fn entries(settings: &Settings) -> impl Iterator<Item = ModelEntry> {
    let servers = settings.remote_servers.iter();
    servers.flat_map(|server| server.models.iter().map(move |model| listed(server, model)))
}

fn listed(server: &RemoteServer, model: &RemoteModel) -> ModelEntry {
    ModelEntry {
        id: format!("{PREFIX}{}/{}", server.name, model.id),
        label: label(server, &model.id),
        detail: format!("on the server {}", host(server)),
        kind: ModelKind::Remote,
        name: model.id.clone(),
        size_bytes: 0,
        memory_bytes: 0,
        fits: true,
        parameters: 0,
        context: model.context,
        recommended: None,
        licence: None,
        read_bytes: 0,
        speed: None,
        problem: None,
    }
}

/// What a model elsewhere is called: "Qwen/Qwen3-8B · gpu".
pub(crate) fn label(server: &RemoteServer, model: &str) -> String {
    format!("{model} · {}", server.name)
}

/// What computes where the target is elsewhere: "gpu, 192.168.1.5:8000".
pub(crate) fn device(settings: &Settings) -> String {
    chosen(settings)
        .map_or_else(|_| String::new(), |chosen| format!("{}, {}", chosen.server.name, host(chosen.server)))
}

fn host(server: &RemoteServer) -> String {
    Address::read(&server.address).map_or_else(|_| server.address.clone(), |address| address.host())
}

/// The way to a server, with its key.
pub(crate) fn client(server: &RemoteServer, secrets: &Secrets) -> Result<Client> {
    let address = Address::read(&server.address)?;
    let key = secrets.find(&secret_name(&address));
    Ok(Client::new(address, key.as_deref(), Timeouts::default())?)
}

/// A key belongs to an address, so that it goes nowhere else when that is changed.
pub(crate) fn secret_name(address: &Address) -> String {
    format!("remote {address}")
}

pub(crate) fn gone(name: &str) -> CommandError {
    let message = format!(
        "The server '{name}' is not there any more: add it in Settings > Remote, or choose another model."
    );
    CommandError::new(ErrorCode::Remote, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_elsewhere_is_known_by_its_server_and_what_that_calls_it() {
        let models = vec![RemoteModel { id: "Qwen/Qwen3-8B".to_owned(), context: 4096 }];
        let server =
            RemoteServer { name: "gpu".to_owned(), address: "http://10.0.0.7:8000/v1".to_owned(), models };
        let settings = |target: &str| Settings {
            target: target.to_owned(),
            remote_servers: vec![server.clone()],
            ..Settings::default()
        };
        let all: Vec<_> = entries(&settings("")).collect();
        assert_eq!((all.len(), all[0].id.as_str()), (1, "remote:gpu/Qwen/Qwen3-8B"));
        assert_eq!(all[0].detail, "on the server 10.0.0.7:8000");
        let chosen = settings(&all[0].id);
        assert_eq!(entry(&chosen).as_ref(), Some(&all[0]));
        assert_eq!(context(&chosen).unwrap(), 4096);
        assert_eq!(device(&chosen), "gpu, 10.0.0.7:8000");
        let unlisted = entry(&settings("remote:gpu/other")).unwrap();
        assert_eq!((unlisted.name.as_str(), unlisted.context), ("other", 0));
        for here in ["smollm2", "/a/remote:gpu/x", "remote:gone/m", "remote:"] {
            assert_eq!(entry(&settings(here)), None, "{here}");
        }
    }
}
