//! Models of the hub: the catalogue, recommendations, repositories, downloads and their watchers,
//! the access token, and deleting downloads.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use foretoken_library as library;
use foretoken_library::{Downloads, Folders, Hub};

use crate::app::App;
use crate::cancel::Latest;
use crate::error::Result;
use crate::ipc::{
    CatalogueFamily, Download, DownloadState, FoundRepository, Recommendation, Repository, TokenSource, Use,
};
use crate::lock::lock;
use crate::observable::Observable;

/// The hub and its downloads.
pub(crate) struct FromHub {
    hub: Hub,
    downloads: Downloads,
    status: Arc<Observable<Vec<Download>>>,
    /// Running request for a repository.
    asking: Latest,
    searching: Latest,
}

impl FromHub {
    /// Opens the hub; `on_arrival` is called when a download is done.
    ///
    /// `address` is that of [`Settings::hub_address`](crate::ipc::Settings).
    pub(crate) fn open(
        folders: &Folders,
        address: &str,
        on_arrival: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        let hub = Hub::new(folders)?;
        if let Err(error) = hub.set_endpoint(address) {
            tracing::warn!("the setting of the hub is ignored: {error}");
        }
        Self::of(hub, folders, on_arrival)
    }

    fn of(hub: Hub, folders: &Folders, on_arrival: impl Fn() + Send + Sync + 'static) -> Result<Self> {
        let status = Arc::new(Observable::new(Vec::new()));
        let shown = Arc::clone(&status);
        let arrived = Mutex::new(HashSet::new());
        let on_change = move |downloads: &[library::Download]| {
            let done = downloads.iter().filter(|download| download.state == library::DownloadState::Done);
            let done: HashSet<String> = done.map(|download| download.id.clone()).collect();
            let mut arrived = lock(&arrived);
            if !done.is_subset(&arrived) {
                on_arrival();
            }
            *arrived = done;
            shown.update(|shown| *shown = views(downloads));
        };
        let downloads = Downloads::open(folders, hub.clone(), on_change)?;
        status.update(|shown| *shown = views(&downloads.list()));
        Ok(Self { hub, downloads, status, asking: Latest::default(), searching: Latest::default() })
    }

    fn find_repository(&self, name: &str) -> Result<library::Repository> {
        let cancel = self.asking.begin();
        Ok(self.hub.repository_unless(name.trim(), &|| cancel.is_cancelled())?)
    }

    fn search(&self, words: &str) -> Result<Vec<library::FoundRepository>> {
        let cancel = self.searching.begin();
        Ok(self.hub.search_unless(words.trim(), &|| cancel.is_cancelled())?)
    }

    fn cancel_requests(&self) {
        self.asking.end();
        self.searching.end();
    }
}

impl App {
    /// Returns the known pairs, and whether they would fit.
    pub fn catalogue(&self) -> Vec<CatalogueFamily> {
        self.computer().catalogue()
    }

    /// Returns recommended pairs for this computer, at most three.
    pub fn recommendations(&self) -> Vec<Recommendation> {
        self.computer().recommendations()
    }

    /// Returns the names of models being downloaded.
    pub(crate) fn downloading(&self) -> HashSet<String> {
        let Ok(hub) = &self.hub else { return HashSet::new() };
        let downloads = hub.downloads.list().into_iter();
        downloads.filter(|one| one.state != library::DownloadState::Done).map(|one| one.id).collect()
    }

    /// Returns the contents of the repository `name`. Sends a request to the hub, which ends the
    /// previous one.
    pub fn find_repository(&self, name: &str) -> Result<Repository> {
        let repository = self.hub()?.find_repository(name)?;
        Ok(self.computer().repository(&repository))
    }

    /// Returns repositories with GGUF files whose names contain `words`, the most downloaded first.
    /// Sends a request to the hub, which ends the previous search.
    pub fn search_hub(&self, words: &str) -> Result<Vec<FoundRepository>> {
        let found = self.hub()?.search(words)?;
        let computer = self.computer();
        Ok(found.into_iter().map(|found| computer.found(found)).collect())
    }

    /// Ends the running requests of [`Self::find_repository`] and [`Self::search_hub`], which then
    /// return `Cancelled`.
    pub fn cancel_hub_requests(&self) -> Result<()> {
        self.hub()?.cancel_requests();
        Ok(())
    }

    /// Watches the downloads for the page, see [`Observable::watch_from_page`].
    pub fn watch_downloads(&self, watcher: impl Fn(&Vec<Download>) -> bool + Send + 'static) -> Result<()> {
        self.hub()?.status.watch_from_page(watcher);
        Ok(())
    }

    /// Starts or resumes a download; `None` for the file means a safetensors folder. Sends a
    /// request to the hub.
    pub fn start_download(&self, repository: &str, file: Option<&str>) -> Result<Download> {
        Ok((&self.hub()?.downloads.start(repository, file)?).into())
    }

    pub fn pause_download(&self, id: &str) -> Result<()> {
        Ok(self.hub()?.downloads.pause(id)?)
    }

    pub fn resume_download(&self, id: &str) -> Result<()> {
        Ok(self.hub()?.downloads.resume(id)?)
    }

    pub fn cancel_download(&self, id: &str) -> Result<()> {
        Ok(self.hub()?.downloads.cancel(id)?)
    }

    pub fn dismiss_download(&self, id: &str) -> Result<()> {
        Ok(self.hub()?.downloads.dismiss(id)?)
    }

    /// Deletes an installed model from disk. A loaded one keeps working until another is chosen; at
    /// the next start a bundled model replaces it.
    pub fn delete_model(&self, id: &str) -> Result<()> {
        self.library.remove(id)?;
        self.engine.lister()();
        Ok(())
    }

    /// Uses another hub for later requests, see [`Settings::hub_address`](crate::ipc::Settings).
    pub(crate) fn use_hub(&self, address: &str) -> Result<()> {
        Ok(self.hub()?.hub.set_endpoint(address)?)
    }

    pub fn hub_token(&self) -> Result<TokenSource> {
        Ok(self.hub()?.hub.token_source().into())
    }

    /// Stores a token, or removes it with `None`. Returns the origin of the token in use.
    pub fn set_hub_token(&self, token: Option<&str>) -> Result<TokenSource> {
        self.hub()?.hub.set_token(token.map(str::trim))?;
        self.hub_token()
    }

    fn hub(&self) -> Result<&FromHub> {
        self.hub.as_ref().map_err(Clone::clone)
    }
}

fn views(downloads: &[library::Download]) -> Vec<Download> {
    downloads.iter().map(Download::from).collect()
}

impl From<library::Use> for Use {
    fn from(wanted: library::Use) -> Self {
        match wanted {
            library::Use::Code => Self::Code,
            library::Use::Reasoning => Self::Reasoning,
            library::Use::Languages => Self::Languages,
            library::Use::Pictures => Self::Pictures,
        }
    }
}

impl From<&library::Download> for Download {
    fn from(download: &library::Download) -> Self {
        use library::DownloadState as From;
        let (state, reason) = match &download.state {
            From::Queued => (DownloadState::Queued, None),
            From::Running => (DownloadState::Running, None),
            From::Waiting => (DownloadState::Waiting, None),
            From::Verifying => (DownloadState::Verifying, None),
            From::Paused { reason } => (DownloadState::Paused, reason.clone()),
            From::Done => (DownloadState::Done, None),
            From::Failed { reason } => (DownloadState::Failed, Some(reason.clone())),
        };
        Self {
            id: download.id.clone(),
            repository: download.repository.clone(),
            file: download.file.clone(),
            done_bytes: download.done_bytes,
            total_bytes: download.total_bytes,
            bytes_per_second: download.bytes_per_second,
            state,
            reason,
        }
    }
}

impl From<library::TokenSource> for TokenSource {
    fn from(source: library::TokenSource) -> Self {
        match source {
            library::TokenSource::None => Self::None,
            library::TokenSource::Environment => Self::Environment,
            library::TokenSource::Keyring => Self::Keyring,
            library::TokenSource::File => Self::File,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::ipc::ErrorCode;

    #[test]
    fn a_search_and_a_question_for_a_repository_can_be_cancelled() {
        // A hub that accepts connections and never answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", silent.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::at(folder.path());
        folders.create().unwrap();
        let hub = Hub::at(&endpoint, folder.path().join("cache"), None);
        let hub = FromHub::of(hub, &folders, || ()).unwrap();
        let begun = Instant::now();
        let (found, searched) = thread::scope(|scope| {
            let found = scope.spawn(|| hub.find_repository("owner/name").unwrap_err());
            let searched = scope.spawn(|| hub.search("name").unwrap_err());
            let _connections = (silent.accept().unwrap(), silent.accept().unwrap());
            thread::sleep(Duration::from_millis(100));
            hub.cancel_requests();
            (found.join().unwrap(), searched.join().unwrap())
        });
        assert_eq!((found.code, searched.code), (ErrorCode::Cancelled, ErrorCode::Cancelled));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
