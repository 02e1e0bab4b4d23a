//! States of an update and their transitions. Each step has a number; the result of a step that was
//! cancelled is ignored.

use std::sync::Arc;

use foretoken_app::ipc::{UpdatePhase, UpdateProblem, UpdateStatus, UpdateSupport};

use super::release::Release;

/// Least number of bytes between two changes of the progress.
const PROGRESS_STEP: u64 = 256 << 10;

/// Number of a step.
pub type Run = u32;

/// A package whose signature was verified.
type Package = Arc<[u8]>;

pub struct State {
    status: UpdateStatus,
    run: Run,
    release: Option<Release>,
    package: Option<Package>,
}

impl State {
    pub fn new(support: UpdateSupport) -> Self {
        let status = UpdateStatus {
            support,
            phase: UpdatePhase::Unchecked,
            found: None,
            done_bytes: 0,
            total_bytes: None,
            problem: None,
        };
        Self { status, run: 0, release: None, package: None }
    }

    pub fn status(&self) -> &UpdateStatus {
        &self.status
    }

    /// Begins a check; `None` while a step is under way, and once an update is ready.
    pub fn begin_check(&mut self) -> Option<Run> {
        use UpdatePhase::{Failed, Found, Unchecked, UpToDate};
        let begins = self.status.support != UpdateSupport::None
            && matches!(self.status.phase, Unchecked | UpToDate | Found | Failed);
        begins.then(|| self.begin(UpdatePhase::Checking))
    }

    pub fn end_check(&mut self, run: Run, found: Result<Option<Release>, UpdateProblem>) {
        if run != self.run {
            return;
        }
        let (phase, release, problem) = match found {
            Ok(Some(release)) => (UpdatePhase::Found, Some(release), None),
            Ok(None) => (UpdatePhase::UpToDate, None, None),
            Err(problem) => (UpdatePhase::Failed, None, Some(problem)),
        };
        self.status.phase = phase;
        self.status.problem = problem;
        self.status.found = release.as_ref().map(|release| release.shown().clone());
        self.release = release;
    }

    /// Begins the download of the newer version. After a failure a check comes first, since its
    /// package may have been replaced.
    pub fn begin_download(&mut self) -> Option<(Run, Release)> {
        let begins = self.status.support == UpdateSupport::Install && self.status.phase == UpdatePhase::Found;
        let release = self.release.clone().filter(|_| begins)?;
        self.package = None;
        Some((self.begin(UpdatePhase::Downloading), release))
    }

    /// Records progress of a download.
    pub fn receive(&mut self, run: Run, done: u64, total: Option<u64>) {
        let shown = self.status.done_bytes;
        let is_worth_showing = shown == 0 || done >= shown + PROGRESS_STEP || Some(done) == total;
        if run == self.run && is_worth_showing {
            self.status.done_bytes = done;
            self.status.total_bytes = total;
        }
    }

    /// Ends a download with its verified package.
    pub fn end_download(&mut self, run: Run, package: Result<Vec<u8>, UpdateProblem>) {
        if run != self.run {
            return;
        }
        match package {
            Ok(package) => {
                self.package = Some(package.into());
                self.status.phase = UpdatePhase::Ready;
            }
            Err(problem) => self.fail(problem),
        }
    }

    /// Cancels a running check or download; returns whether there was one.
    pub fn cancel(&mut self) -> bool {
        let before = match self.status.phase {
            UpdatePhase::Checking if self.release.is_none() => UpdatePhase::Unchecked,
            UpdatePhase::Checking | UpdatePhase::Downloading => UpdatePhase::Found,
            _ => return false,
        };
        self.begin(before);
        true
    }

    /// Begins the installation of the verified package, if there is one.
    pub fn begin_installation(&mut self) -> Option<(Release, Package)> {
        let is_ready = self.status.phase == UpdatePhase::Ready;
        let installed = self.release.clone().zip(self.package.clone()).filter(|_| is_ready)?;
        self.status.phase = UpdatePhase::Installing;
        Some(installed)
    }

    pub fn fail_installation(&mut self, problem: UpdateProblem) {
        self.package = None;
        self.fail(problem);
    }

    fn fail(&mut self, problem: UpdateProblem) {
        self.status.phase = UpdatePhase::Failed;
        self.status.problem = Some(problem);
    }

    /// Enters a phase in which earlier steps count for nothing.
    fn begin(&mut self, phase: UpdatePhase) -> Run {
        self.run += 1;
        self.status.phase = phase;
        self.status.problem = None;
        self.status.done_bytes = 0;
        self.status.total_bytes = None;
        self.run
    }
}

#[cfg(test)]
mod tests {
    use semver::Version;

    use super::*;

    fn release() -> Release {
        let description = br#"{"version":"2.0.0","notes":"New","url":"https://a.org","signature":"s"}"#;
        Release::newer(description, &Version::new(1, 0, 0)).unwrap().unwrap()
    }

    /// State after a check has found a release.
    fn found(support: UpdateSupport) -> State {
        let mut state = State::new(support);
        let run = state.begin_check().unwrap();
        state.end_check(run, Ok(Some(release())));
        state
    }

    fn phase(state: &State) -> UpdatePhase {
        state.status().phase
    }

    #[test]
    fn an_update_is_found_downloaded_and_installed() {
        let mut state = found(UpdateSupport::Install);
        assert_eq!(phase(&state), UpdatePhase::Found);
        assert_eq!(state.status().found.as_ref().unwrap().version, "2.0.0");
        let (run, downloaded) = state.begin_download().unwrap();
        assert_eq!((phase(&state), downloaded), (UpdatePhase::Downloading, release()));
        assert!(state.begin_check().is_none() && state.begin_download().is_none(), "one step at a time");
        assert!(state.begin_installation().is_none(), "nothing is verified");
        state.end_download(run, Ok(vec![1, 2]));
        assert_eq!(phase(&state), UpdatePhase::Ready);
        assert!(state.begin_check().is_none(), "a check would forget the package");
        let (_, package) = state.begin_installation().unwrap();
        assert_eq!((&*package, phase(&state)), (&[1, 2][..], UpdatePhase::Installing));
        assert!(state.begin_installation().is_none(), "once");
        state.fail_installation(UpdateProblem::NotInstalled);
        assert_eq!(state.status().problem, Some(UpdateProblem::NotInstalled));
        assert!(state.begin_installation().is_none() && state.begin_download().is_none());
        assert!(state.begin_check().is_some(), "it is found again");
    }

    #[test]
    fn a_failed_step_can_be_repeated() {
        let mut state = State::new(UpdateSupport::Install);
        let run = state.begin_check().unwrap();
        state.end_check(run, Err(UpdateProblem::Unreachable));
        assert_eq!(
            (phase(&state), state.status().problem),
            (UpdatePhase::Failed, Some(UpdateProblem::Unreachable))
        );
        assert!(state.begin_download().is_none(), "there is nothing to download");
        let run = state.begin_check().unwrap();
        assert_eq!(state.status().problem, None);
        state.end_check(run, Ok(None));
        assert_eq!(phase(&state), UpdatePhase::UpToDate);

        let mut state = found(UpdateSupport::Install);
        let (run, _) = state.begin_download().unwrap();
        state.end_download(run, Err(UpdateProblem::BadSignature));
        assert_eq!(state.status().problem, Some(UpdateProblem::BadSignature));
        assert!(state.begin_installation().is_none(), "nothing is verified");
        assert!(state.begin_download().is_none() && state.begin_check().is_some());
    }

    #[test]
    fn a_cancelled_step_changes_nothing_afterwards() {
        let mut state = State::new(UpdateSupport::Install);
        assert!(!state.cancel());
        let run = state.begin_check().unwrap();
        assert!(state.cancel());
        state.end_check(run, Ok(Some(release())));
        assert_eq!((phase(&state), &state.status().found), (UpdatePhase::Unchecked, &None));

        let mut state = found(UpdateSupport::Install);
        let (run, _) = state.begin_download().unwrap();
        state.receive(run, 10, Some(20));
        assert!(state.cancel());
        assert_eq!((phase(&state), state.status().done_bytes), (UpdatePhase::Found, 0));
        state.receive(run, 20, Some(20));
        state.end_download(run, Ok(vec![1]));
        assert_eq!((phase(&state), state.status().done_bytes), (UpdatePhase::Found, 0));
        state.begin_check().unwrap();
        assert!(state.cancel());
        assert_eq!(phase(&state), UpdatePhase::Found, "what was found before stays");
    }

    #[test]
    fn progress_is_shown_in_steps_and_at_the_end() {
        let mut state = found(UpdateSupport::Install);
        let (run, _) = state.begin_download().unwrap();
        let total = Some(2 * PROGRESS_STEP + 10);
        let mut shown = |done| {
            state.receive(run, done, total);
            (state.status().done_bytes, state.status().total_bytes)
        };
        assert_eq!(shown(5), (5, total));
        assert_eq!(shown(6), (5, total));
        assert_eq!(shown(5 + PROGRESS_STEP), (5 + PROGRESS_STEP, total));
        assert_eq!(shown(2 * PROGRESS_STEP + 10), (2 * PROGRESS_STEP + 10, total));
    }

    #[test]
    fn a_copy_does_only_what_it_supports() {
        assert!(State::new(UpdateSupport::None).begin_check().is_none());
        let mut state = found(UpdateSupport::Find);
        assert_eq!(phase(&state), UpdatePhase::Found);
        assert!(state.begin_download().is_none());
    }
}
