//! Secrets of the person's: in the system's keyring; where there is none, those of servers in a file that its owner
//! alone may read.

use std::collections::BTreeMap;

use keyring::Entry;

use crate::kept::Kept;
use crate::{Folders, Result};

/// The keys of servers elsewhere, each by a name of its own.
#[derive(Debug, Clone)]
pub struct Secrets {
    file: Kept,
}

impl Secrets {
    pub fn new(folders: &Folders) -> Self {
        Self { file: Kept::new(folders.root().join("keys.json")) }
    }

    /// Keeps a secret, or with `None` forgets the one that was kept.
    ///
    /// # Errors
    /// `Error::Disk` where there is no keyring, and the file cannot be written either.
    pub fn keep(&self, name: &str, secret: Option<&str>) -> Result<()> {
        let kept = keep(name, secret).inspect_err(|error| tracing::info!("no keyring for a key: {error}"));
        // What is in the keyring, or nowhere, is in no file either.
        self.keep_in_file(name, secret.filter(|_| kept.is_err()))
    }

    pub fn find(&self, name: &str) -> Option<String> {
        find(name).or_else(|| self.in_file().remove(name))
    }

    fn in_file(&self) -> BTreeMap<String, String> {
        self.file.read()
    }

    fn keep_in_file(&self, name: &str, secret: Option<&str>) -> Result<()> {
        if self.in_file().get(name).map(String::as_str) == secret {
            return Ok(());
        }
        self.file.change(|secrets: &mut BTreeMap<String, String>| match secret {
            Some(secret) => drop(secrets.insert(name.to_owned(), secret.to_owned())),
            None => drop(secrets.remove(name)),
        })
    }
}

/// Keeps a secret in the keyring, or with `None` removes it from there.
///
/// # Errors
/// Those of the keyring; there may be none.
pub(crate) fn keep(name: &str, secret: Option<&str>) -> keyring::Result<()> {
    on_a_thread(|| match secret {
        Some(secret) => entry(name)?.set_password(secret),
        None => match entry(name)?.delete_credential() {
            Err(keyring::Error::NoEntry) => Ok(()),
            other => other,
        },
    })
}

/// What the keyring has under this name.
pub(crate) fn find(name: &str) -> Option<String> {
    on_a_thread(|| entry(name)?.get_password())
        .inspect_err(|error| tracing::debug!("nothing in the keyring: {error}"))
        .ok()
}

fn entry(name: &str) -> keyring::Result<Entry> {
    Entry::new("dev.foretoken", name)
}

/// The keyring waits for the system, which is not allowed on a thread that runs futures.
fn on_a_thread<T: Send>(task: impl FnOnce() -> keyring::Result<T> + Send) -> keyring::Result<T> {
    let ended = std::thread::scope(|scope| scope.spawn(task).join());
    ended.unwrap_or(Err(keyring::Error::NoDefaultStore))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_keyring_keeps_is_in_a_file_for_its_owner_alone_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::new(&Folders::at(folder.path()));
        secrets.keep_in_file("a", None).unwrap();
        let file = folder.path().join("keys.json");
        assert!(!file.exists(), "nothing to keep");
        secrets.keep_in_file("a", Some("one")).unwrap();
        secrets.keep_in_file("b", Some("two")).unwrap();
        assert_eq!(secrets.in_file().remove("a").as_deref(), Some("one"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        secrets.keep_in_file("a", None).unwrap();
        assert_eq!(secrets.in_file(), [("b".to_owned(), "two".to_owned())].into());
    }
}
