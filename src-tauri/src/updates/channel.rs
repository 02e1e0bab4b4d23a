//! The release channel: an address and a public key in the build's configuration,
//! `plugins.updater` of `tauri.conf.json`. Only debug builds accept another one, from the
//! environment, for tests.

use reqwest::Url;
use tauri_plugin_updater::Config;

/// Variables of the channel in debug builds.
const ENDPOINT: &str = "FORETOKEN_UPDATE_ENDPOINT";
const KEY: &str = "FORETOKEN_UPDATE_KEY";

/// A release channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Address of the description of the latest release.
    pub endpoint: Url,
    /// Public key of minisign, as base64 of its file.
    pub key: String,
}

impl Channel {
    /// Returns the build's channel; `None` if it has none.
    pub fn of(config: &tauri::Config) -> Option<Self> {
        let tests = cfg!(debug_assertions).then(Self::from_environment).flatten();
        tests.or_else(|| {
            let plugin = config.plugins.0.get("updater")?.clone();
            let Config { endpoints, pubkey, .. } = serde_json::from_value(plugin).ok()?;
            Self::from_parts(endpoints.into_iter().next()?.as_str(), pubkey).filter(Self::is_secure)
        })
    }

    fn from_environment() -> Option<Self> {
        Self::from_parts(&std::env::var(ENDPOINT).ok()?, std::env::var(KEY).ok()?)
    }

    fn from_parts(endpoint: &str, key: String) -> Option<Self> {
        let endpoint = Url::parse(endpoint).ok()?;
        (!key.is_empty()).then_some(Self { endpoint, key })
    }

    fn is_secure(&self) -> bool {
        self.endpoint.scheme() == "https"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Channel of a build with `updater` as its configuration.
    fn channel(updater: Value) -> Option<Channel> {
        let config = json!({ "identifier": "test", "plugins": { "updater": updater } });
        Channel::of(&serde_json::from_value(config).unwrap())
    }

    #[test]
    fn this_build_has_no_channel() {
        let config: Value = serde_json::from_str(include_str!("../../tauri.conf.json")).unwrap();
        assert_eq!(channel(config["plugins"]["updater"].clone()), None);
    }

    #[test]
    fn a_channel_has_an_address_with_https_and_a_key() {
        let address = "https://example.org/latest.json";
        let found = channel(json!({ "endpoints": [address], "pubkey": "key" })).unwrap();
        assert_eq!((found.endpoint.as_str(), found.key.as_str()), (address, "key"));
        assert_eq!(channel(json!({ "endpoints": [address], "pubkey": "" })), None);
        assert_eq!(channel(json!({ "endpoints": ["http://example.org"], "pubkey": "key" })), None);
        assert_eq!(channel(json!({ "endpoints": [], "pubkey": "key" })), None);
    }
}
