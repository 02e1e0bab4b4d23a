//! Updates of the program: a check, the download of a package, and its installation, each on
//! request. Without a release channel in the build, or while the setting is off, nothing is
//! connected to unless a person asks for a check.
//!
//! - [`channel`]: the release channel; [`support`]: abilities of this copy
//! - [`release`]: the channel's description of a release; [`fetch`]: bounded requests
//! - [`state`]: states and their transitions
//!
//! The plugin reads the configuration, verifies signatures and replaces the program. Requests are
//! ours, since the plugin's have no limit on bytes.

mod channel;
mod fetch;
mod release;
mod state;
mod support;

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use foretoken_app::App;
use foretoken_app::error::Result;
use foretoken_app::ipc::{CommandError, ErrorCode, UpdatePhase, UpdateProblem, UpdateStatus};
use foretoken_app::observable::Observable;
use semver::Version;
use tauri::async_runtime::{self, JoinHandle};
use tauri::{AppHandle, Manager};
use tauri_plugin_updater::{Update, UpdaterExt};

use self::channel::Channel;
use self::fetch::{Limits, fetch};
use self::release::Release;
use self::state::{Run, State};
use crate::closing::Closing;

/// Interval between checks.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits of a release's description, which has notes and some addresses.
const DESCRIPTION: Limits = Limits { bytes: 256 << 10, time: Duration::from_secs(30) };

/// Limits of a package, which contains a model of 98 MB.
const PACKAGE: Limits = Limits { bytes: 1 << 30, time: Duration::from_secs(2 * 60 * 60) };

#[derive(Clone)]
pub struct Updates(Arc<Inner>);

struct Inner {
    channel: Option<Channel>,
    status: Observable<UpdateStatus>,
    state: Mutex<State>,
    /// Running request.
    task: Mutex<Option<JoinHandle<()>>>,
    /// Ends the daily checks when it is dropped; `None` while they are off.
    daily: Mutex<Option<Sender<()>>>,
}

impl Updates {
    pub fn new(handle: &AppHandle) -> Self {
        let channel = Channel::of(handle.config());
        let state = State::new(support::find(channel.is_some(), handle));
        Self(Arc::new(Inner {
            channel,
            status: Observable::new(state.status().clone()),
            state: Mutex::new(state),
            task: Mutex::default(),
            daily: Mutex::default(),
        }))
    }

    /// Watches the status for the page, see [`Observable::watch_from_page`].
    pub fn watch(&self, watcher: impl Fn(&UpdateStatus) -> bool + Send + 'static) {
        self.0.status.watch_from_page(watcher);
    }

    /// Starts or ends the daily checks as the settings say.
    pub fn follow(&self, handle: &AppHandle) {
        let Some(app) = handle.try_state::<Arc<App>>() else { return };
        let wanted = self.0.channel.is_some() && app.settings().check_for_updates;
        let mut daily = lock(&self.0.daily);
        if wanted != daily.is_some() {
            *daily = wanted.then(|| self.check_daily(handle));
            if !wanted && self.0.status.get().phase == UpdatePhase::Checking {
                self.cancel();
            }
        }
    }

    fn check_daily(&self, handle: &AppHandle) -> Sender<()> {
        let (sender, ended) = mpsc::channel();
        let (updates, handle) = (self.clone(), handle.clone());
        let started = thread::Builder::new().name("updates".to_owned()).spawn(move || {
            loop {
                updates.check(&handle);
                if ended.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "nothing checks for updates");
        }
        sender
    }

    /// Checks for a newer version, unless a step is under way or an update is ready.
    pub fn check(&self, handle: &AppHandle) {
        let Some(channel) = self.0.channel.clone() else { return };
        let Some(run) = self.change(State::begin_check) else { return };
        let (updates, current) = (self.clone(), handle.package_info().version.clone());
        self.run(async move {
            let found = newer_release(&channel, &current).await;
            updates.change(|state| state.end_check(run, found));
        });
    }

    /// Downloads the package of the newer version and verifies its signature.
    pub fn download(&self, handle: &AppHandle) {
        let Some((run, release)) = self.change(State::begin_download) else { return };
        let (updates, handle) = (self.clone(), handle.clone());
        self.run(async move {
            let package = updates.fetch_package(&handle, run, &release).await;
            updates.change(|state| state.end_download(run, package));
        });
    }

    /// Cancels a running check or download.
    pub fn cancel(&self) {
        if self.change(State::cancel)
            && let Some(task) = lock(&self.0.task).take()
        {
            task.abort();
        }
    }

    /// Installs the verified package and restarts the program, after the page has saved.
    ///
    /// # Errors
    /// Returns `Busy` while a reply is written, which a restart would cut off.
    pub fn install(&self, handle: &AppHandle) -> Result<()> {
        if handle.try_state::<Arc<App>>().is_some_and(|app| app.is_busy()) {
            let message = "A reply is being written. Install the update when it is finished.";
            return Err(CommandError::new(ErrorCode::Busy, message));
        }
        let Some((release, package)) = self.change(State::begin_installation) else { return Ok(()) };
        match self.replace_program(handle, &release, &package) {
            Ok(()) => handle.state::<Closing>().restart(handle),
            Err(problem) => self.change(|state| state.fail_installation(problem)),
        }
        Ok(())
    }

    async fn fetch_package(
        &self,
        handle: &AppHandle,
        run: Run,
        release: &Release,
    ) -> Result<Vec<u8>, UpdateProblem> {
        let update = self.verified_by_plugin(handle, release)?;
        let received = |done, total| {
            self.change(|state| state.receive(run, done, total));
        };
        let package = fetch(update.download_url.clone(), PACKAGE, received).await?;
        let package = package.ok_or(UpdateProblem::NoPackage)?;
        update.verify(&package).map_err(|error| {
            tracing::warn!("the update to {} was refused: {error}", release.version());
            UpdateProblem::BadSignature
        })?;
        Ok(package)
    }

    fn replace_program(
        &self,
        handle: &AppHandle,
        release: &Release,
        package: &[u8],
    ) -> Result<(), UpdateProblem> {
        self.verified_by_plugin(handle, release)?.install(package).map_err(|error| {
            tracing::error!("the update to {} was not installed: {error}", release.version());
            UpdateProblem::NotInstalled
        })
    }

    /// Returns the release as an update of the plugin's, which verifies that the package was signed
    /// with the channel's key, for this version.
    fn verified_by_plugin(&self, handle: &AppHandle, release: &Release) -> Result<Update, UpdateProblem> {
        let Channel { endpoint, key } = self.0.channel.as_ref().ok_or(UpdateProblem::NoPackage)?;
        let builder = handle.updater_builder().pubkey(key).endpoints(vec![endpoint.clone()]);
        let updater = builder.and_then(tauri_plugin_updater::UpdaterBuilder::build);
        let update = updater.and_then(|updater| updater.restore_update(release.description()));
        let update = update.map_err(|error| {
            tracing::warn!("the update to {} is not for this system: {error}", release.version());
            UpdateProblem::NoPackage
        });
        update?.ok_or(UpdateProblem::NoPackage)
    }

    /// Runs a request in the background; [`Self::cancel`] drops it, which closes its connection.
    fn run(&self, request: impl Future<Output = ()> + Send + 'static) {
        *lock(&self.0.task) = Some(async_runtime::spawn(request));
    }

    /// Changes the state, which the watchers receive.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.0.state);
        let outcome = change(&mut state);
        self.0.status.update(|status| status.clone_from(state.status()));
        outcome
    }
}

/// Requests the channel's latest release; `None` if it is not newer than `current`.
async fn newer_release(channel: &Channel, current: &Version) -> Result<Option<Release>, UpdateProblem> {
    match fetch(channel.endpoint.clone(), DESCRIPTION, |_, _| ()).await? {
        Some(description) => Release::newer(&description, current),
        None => Ok(None),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
