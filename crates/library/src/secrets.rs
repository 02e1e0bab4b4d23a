//! Secrets of the person's: in the system's keyring; where there is none, those of servers in a file that its owner
//! alone may read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyring::Entry;

use crate::kept::Kept;
use crate::{Error, Folders, Result};

/// The keys of servers elsewhere, each by a name of its own. All clones know the same.
#[derive(Clone)]
pub struct Secrets {
    /// What no keyring took; what it took is not in here.
    file: Kept,
    keyring: Arc<dyn Keyring>,
    /// What was found or kept before: a keyring may take its time, and nobody shall wait for it at every reply.
    known: Arc<Mutex<BTreeMap<String, Option<String>>>>,
}

impl Secrets {
    pub fn new(folders: &Folders) -> Self {
        Self::with(folders, Arc::new(System))
    }

    fn with(folders: &Folders, keyring: Arc<dyn Keyring>) -> Self {
        Self { file: Kept::new(folders.root().join("keys.json")), keyring, known: Arc::default() }
    }

    /// Keeps a secret, or with `None` forgets the one that was kept.
    ///
    /// # Errors
    /// `Error::Disk` where no keyring takes it, and the file cannot be written either; `Error::SecretStays` where a
    /// keyring may still have what was to be forgotten.
    pub fn keep(&self, name: &str, secret: Option<&str>) -> Result<()> {
        let mut known = self.known();
        known.remove(name);
        let kept = self.keyring.keep(name, secret);
        // What is in the keyring, or nowhere, is in no file either.
        self.keep_in_file(name, secret.filter(|_| kept.is_err()))?;
        match kept {
            Err(error) if secret.is_none() && is_there(&error) => {
                return Err(Error::SecretStays { name: name.to_owned(), reason: error.to_string() });
            }
            Err(error) => tracing::info!("no keyring for a key: {error}"),
            Ok(()) => (),
        }
        known.insert(name.to_owned(), secret.map(str::to_owned));
        Ok(())
    }

    /// What the file has is newer than what a keyring may have, which could not be reached then.
    pub fn find(&self, name: &str) -> Option<String> {
        let mut known = self.known();
        if let Some(found) = known.get(name) {
            return found.clone();
        }
        let found = match self.in_file().remove(name) {
            Some(secret) => Ok(Some(secret)),
            None => self.keyring.find(name),
        };
        let found = match found {
            Err(error) if is_there(&error) => {
                tracing::warn!("the keyring does not answer: {error}");
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

/// Whether there is a keyring, which could not do what it was asked.
fn is_there(error: &keyring::Error) -> bool {
    !matches!(error, keyring::Error::NoDefaultStore)
}

/// A keyring, by what is asked of it.
trait Keyring: Send + Sync {
    /// See [`keep`].
    fn keep(&self, name: &str, secret: Option<&str>) -> keyring::Result<()>;

    /// See [`find`].
    fn find(&self, name: &str) -> keyring::Result<Option<String>>;
}

/// The system's.
struct System;

impl Keyring for System {
    fn keep(&self, name: &str, secret: Option<&str>) -> keyring::Result<()> {
        keep(name, secret)
    }

    fn find(&self, name: &str) -> keyring::Result<Option<String>> {
        find(name)
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
///
/// # Errors
/// As [`keep`].
pub(crate) fn find(name: &str) -> keyring::Result<Option<String>> {
    on_a_thread(|| match entry(name)?.get_password() {
        Err(keyring::Error::NoEntry) => Ok(None),
        found => found.map(Some),
    })
}

fn entry(name: &str) -> keyring::Result<Entry> {
    Entry::new("dev.foretoken", name)
}

/// The keyring waits for the system, which is not allowed on a thread that runs futures.
fn on_a_thread<T: Send>(task: impl FnOnce() -> keyring::Result<T> + Send) -> keyring::Result<T> {
    let ended = std::thread::scope(|scope| scope.spawn(task).join());
    ended.unwrap_or_else(|_| Err(keyring::Error::BadStoreFormat("it failed".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keyring that a person locks and unlocks.
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

    /// No keyring at all.
    struct Nowhere;

    impl Keyring for Nowhere {
        fn keep(&self, _name: &str, _secret: Option<&str>) -> keyring::Result<()> {
            Err(keyring::Error::NoDefaultStore)
        }

        fn find(&self, _name: &str) -> keyring::Result<Option<String>> {
            Err(keyring::Error::NoDefaultStore)
        }
    }

    #[test]
    fn what_no_keyring_keeps_is_in_a_file_for_its_owner_alone_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::with(&Folders::at(folder.path()), Arc::new(Nowhere));
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
        assert_eq!(secrets.in_file(), [("b".to_owned(), "two".to_owned())].into());
        let later = Secrets::with(&Folders::at(folder.path()), Arc::new(Nowhere));
        assert_eq!((later.find("a"), later.find("b").as_deref()), (None, Some("two")));
    }

    #[test]
    fn a_secret_that_a_locked_keyring_did_not_take_is_not_overruled_by_its_old_one() {
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
        assert!(later.in_file().is_empty(), "the keyring has it");
        assert_eq!(Secrets::with(&folders, keyring).find("a").as_deref(), Some("newest"));
    }

    #[test]
    fn a_secret_that_a_locked_keyring_still_has_is_not_said_to_be_forgotten() {
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
    fn a_keyring_is_asked_once_and_again_where_it_did_not_answer() {
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
        assert_eq!((secrets.find("b"), asked()), (None, 0), "that there is none is known, too");
        secrets.keep("a", Some("two")).unwrap();
        assert_eq!(secrets.clone().find("a").as_deref(), Some("two"));
    }
}
