//! Secrets of the user, in the system keyring. Without a keyring, keys of servers are in a file
//! that only its owner can read.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyring::Entry;

use crate::json_file::JsonFile;
use crate::{Error, Folders, Result};

/// Keys of remote servers, each by name. Clones share their state.
#[derive(Clone)]
pub struct Secrets {
    /// Secrets that no keyring accepted; the others are not in this file.
    file: JsonFile,
    keyring: Arc<dyn Keyring>,
    /// Cache of stored and looked-up secrets, because a keyring may be too slow to ask at every
    /// reply.
    known: Arc<Mutex<BTreeMap<String, Option<String>>>>,
}

impl Secrets {
    pub fn new(folders: &Folders) -> Self {
        Self::with(folders, Arc::new(System))
    }

    fn with(folders: &Folders, keyring: Arc<dyn Keyring>) -> Self {
        Self { file: JsonFile::new(folders.root().join("keys.json")), keyring, known: Arc::default() }
    }

    /// Stores a secret, or removes it with `None`.
    ///
    /// # Errors
    /// `Error::Disk` if neither the keyring nor the file can be written; `Error::SecretStays` if a
    /// keyring may still have the removed secret.
    pub fn keep(&self, name: &str, secret: Option<&str>) -> Result<()> {
        let mut known = self.known();
        known.remove(name);
        let kept = self.keyring.keep(name, secret);
        // A secret in the keyring, or a removed one, is in no file.
        self.keep_in_file(name, secret.filter(|_| kept.is_err()))?;
        match kept {
            Err(error) if secret.is_none() && keyring_exists(&error) => {
                return Err(Error::SecretStays { name: name.to_owned(), reason: error.to_string() });
            }
            Err(error) => tracing::info!("no keyring for a key: {error}"),
            Ok(()) => (),
        }
        known.insert(name.to_owned(), secret.map(str::to_owned));
        Ok(())
    }

    /// Returns a secret. The file wins: it was written when the keyring could not be reached, so it
    /// is newer.
    pub fn find(&self, name: &str) -> Option<String> {
        let mut known = self.known();
        if let Some(found) = known.get(name) {
            return found.clone();
        }
        let found = match self.in_file().map(|mut secrets| secrets.remove(name)) {
            Ok(Some(secret)) => Ok(Some(secret)),
            Ok(None) => self.keyring.find(name),
            Err(error) => {
                tracing::warn!("stored keys cannot be read now: {error}");
                return None;
            }
        };
        let found = match found {
            Err(error) if keyring_exists(&error) => {
                tracing::warn!("the keyring does not respond: {error}");
                return None;
            }
            found => found.ok().flatten(),
        };
        known.insert(name.to_owned(), found.clone());
        found
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_file(&self) -> io::Result<BTreeMap<String, String>> {
        self.file.try_read()
    }

    fn keep_in_file(&self, name: &str, secret: Option<&str>) -> Result<()> {
        let unchanged = |secrets: BTreeMap<String, String>| secrets.get(name).map(String::as_str) == secret;
        if self.in_file().is_ok_and(unchanged) {
            return Ok(());
        }
        self.file.change(|secrets: &mut BTreeMap<String, String>| match secret {
            Some(secret) => drop(secrets.insert(name.to_owned(), secret.to_owned())),
            None => drop(secrets.remove(name)),
        })
    }
}

/// Returns whether a keyring exists, even if the operation failed.
fn keyring_exists(error: &keyring::Error) -> bool {
    !matches!(error, keyring::Error::NoDefaultStore)
}

/// Operations of a keyring.
trait Keyring: Send + Sync {
    /// See [`keep`].
    fn keep(&self, name: &str, secret: Option<&str>) -> keyring::Result<()>;

    /// See [`find`].
    fn find(&self, name: &str) -> keyring::Result<Option<String>>;
}

/// The system keyring.
struct System;

impl Keyring for System {
    fn keep(&self, name: &str, secret: Option<&str>) -> keyring::Result<()> {
        keep(name, secret)
    }

    fn find(&self, name: &str) -> keyring::Result<Option<String>> {
        find(name)
    }
}

/// Stores a secret in the keyring, or removes it with `None`.
///
/// # Errors
/// Errors of the keyring, for example that there is none.
pub(crate) fn keep(name: &str, secret: Option<&str>) -> keyring::Result<()> {
    on_a_thread(|| match secret {
        Some(secret) => entry(name)?.set_password(secret),
        None => match entry(name)?.delete_credential() {
            Err(keyring::Error::NoEntry) => Ok(()),
            other => other,
        },
    })
}

/// Returns the keyring's secret of this name.
///
/// # Errors
/// Same as [`keep`].
pub(crate) fn find(name: &str) -> keyring::Result<Option<String>> {
    on_a_thread(|| match entry(name)?.get_password() {
        Err(keyring::Error::NoEntry) => Ok(None),
        found => found.map(Some),
    })
}

fn entry(name: &str) -> keyring::Result<Entry> {
    Entry::new("dev.foretoken", name)
}

/// Runs a keyring call on a thread of its own: it blocks, which is not allowed on a thread that
/// runs futures.
fn on_a_thread<T: Send>(task: impl FnOnce() -> keyring::Result<T> + Send) -> keyring::Result<T> {
    let ended = std::thread::scope(|scope| scope.spawn(task).join());
    ended.unwrap_or_else(|_| Err(keyring::Error::BadStoreFormat("the keyring's thread panicked".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keyring that can be locked and unlocked.
    #[derive(Default)]
    struct Fake(Mutex<State>);

    #[derive(Default)]
    struct State {
        secrets: BTreeMap<String, String>,
        locked: bool,
        asked: usize,
    }

    impl Fake {
        fn lock(&self, locked: bool) {
            self.0.lock().unwrap().locked = locked;
        }

        fn has(&self, name: &str) -> Option<String> {
            self.0.lock().unwrap().secrets.get(name).cloned()
        }

        fn open(&self) -> keyring::Result<MutexGuard<'_, State>> {
            let mut state = self.0.lock().unwrap();
            state.asked += 1;
            if state.locked { Err(keyring::Error::NoStorageAccess("locked".into())) } else { Ok(state) }
        }
    }

    impl Keyring for Fake {
        fn keep(&self, name: &str, secret: Option<&str>) -> keyring::Result<()> {
            let mut state = self.open()?;
            match secret {
                Some(secret) => drop(state.secrets.insert(name.to_owned(), secret.to_owned())),
                None => drop(state.secrets.remove(name)),
            }
            Ok(())
        }

        fn find(&self, name: &str) -> keyring::Result<Option<String>> {
            Ok(self.open()?.secrets.get(name).cloned())
        }
    }

    /// A system without a keyring.
    struct NoKeyring;

    impl Keyring for NoKeyring {
        fn keep(&self, _name: &str, _secret: Option<&str>) -> keyring::Result<()> {
            Err(keyring::Error::NoDefaultStore)
        }

        fn find(&self, _name: &str) -> keyring::Result<Option<String>> {
            Err(keyring::Error::NoDefaultStore)
        }
    }

    #[test]
    fn without_a_keyring_a_secret_is_in_a_private_file_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::with(&Folders::at(folder.path()), Arc::new(NoKeyring));
        secrets.keep("a", None).unwrap();
        let file = folder.path().join("keys.json");
        assert!(!file.exists(), "nothing to keep");
        secrets.keep("a", Some("one")).unwrap();
        secrets.keep("b", Some("two")).unwrap();
        assert_eq!(secrets.find("a").as_deref(), Some("one"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        secrets.keep("a", None).unwrap();
        assert_eq!(secrets.in_file().unwrap(), [("b".to_owned(), "two".to_owned())].into());
        let later = Secrets::with(&Folders::at(folder.path()), Arc::new(NoKeyring));
        assert_eq!((later.find("a"), later.find("b").as_deref()), (None, Some("two")));
    }

    #[test]
    fn a_secret_refused_by_a_locked_keyring_is_not_overruled_by_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let (folders, keyring) = (Folders::at(folder.path()), Arc::new(Fake::default()));
        let secrets = Secrets::with(&folders, keyring.clone());
        secrets.keep("a", Some("old")).unwrap();
        keyring.lock(true);
        secrets.keep("a", Some("new")).unwrap();
        keyring.lock(false);
        let later = Secrets::with(&folders, keyring.clone());
        assert_eq!(later.find("a").as_deref(), Some("new"));
        later.keep("a", Some("newest")).unwrap();
        assert!(later.in_file().unwrap().is_empty(), "the secret is in the keyring");
        assert_eq!(Secrets::with(&folders, keyring).find("a").as_deref(), Some("newest"));
    }

    #[test]
    fn a_secret_that_a_locked_keyring_still_has_is_not_reported_as_removed() {
        let folder = tempfile::tempdir().unwrap();
        let keyring = Arc::new(Fake::default());
        let secrets = Secrets::with(&Folders::at(folder.path()), keyring.clone());
        secrets.keep("a", Some("one")).unwrap();
        keyring.lock(true);
        let error = secrets.keep("a", None).unwrap_err();
        assert!(matches!(&error, Error::SecretStays { name, .. } if name == "a"), "{error}");
        keyring.lock(false);
        secrets.keep("a", None).unwrap();
        assert_eq!((keyring.has("a"), secrets.find("a")), (None, None));
    }

    #[test]
    fn a_keyring_is_asked_once_and_again_only_if_it_failed() {
        let folder = tempfile::tempdir().unwrap();
        let keyring = Arc::new(Fake::default());
        keyring.keep("a", Some("one")).unwrap();
        let secrets = Secrets::with(&Folders::at(folder.path()), keyring.clone());
        let asked = || std::mem::take(&mut keyring.0.lock().unwrap().asked);
        asked();
        keyring.lock(true);
        assert_eq!((secrets.find("a"), asked()), (None, 1));
        keyring.lock(false);
        assert_eq!((secrets.find("a").as_deref(), asked()), (Some("one"), 1));
        assert_eq!((secrets.clone().find("a").as_deref(), asked()), (Some("one"), 0));
        assert_eq!((secrets.find("b"), asked()), (None, 1));
        assert_eq!((secrets.find("b"), asked()), (None, 0), "absence is cached too");
        secrets.keep("a", Some("two")).unwrap();
        assert_eq!(secrets.clone().find("a").as_deref(), Some("two"));
    }
}
