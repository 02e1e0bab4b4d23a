//! Threads that inspect untrusted files. One that panics or hangs fails alone; the others continue.
//! Files are read in child processes, which end first; a process that hangs in the system, as on a
//! network disk, cannot be ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use foretoken_engine::inspection::CHILDREN;
use foretoken_model::ProblemKind;

use crate::ipc::Problem;
use crate::lock::lock;

/// Time without any result after which running inspections are abandoned.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Inspections; see the module. Clones share their memory of abandoned ones that are still running.
#[derive(Clone)]
pub struct Inspections {
    patience: Duration,
    under_way: Arc<Mutex<Vec<PathBuf>>>,
}

impl Default for Inspections {
    fn default() -> Self {
        Self { patience: TIMEOUT, under_way: Arc::default() }
    }
}

/// Inspections to run, taken by several threads.
struct Queue<F> {
    paths: Vec<PathBuf>,
    next: AtomicUsize,
    look: F,
    /// Paths of earlier inspections that are still running.
    stuck: Vec<PathBuf>,
    under_way: Arc<Mutex<Vec<PathBuf>>>,
}

impl Inspections {
    /// Inspects each path on threads of its own; `look` gets the path's index. Returns the results
    /// in order: the problem of one that panicked, or that was abandoned because it hung. A path is
    /// not inspected again while it hangs.
    pub fn each<T: Send + 'static>(
        &self,
        paths: Vec<PathBuf>,
        look: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> Vec<Result<T, Problem>> {
        let mut found: Vec<Option<Result<T, Problem>>> = paths.iter().map(|_| None).collect();
        let (stuck, under_way) = (lock(&self.under_way).clone(), Arc::clone(&self.under_way));
        let queue = Arc::new(Queue { paths, next: AtomicUsize::new(0), look, stuck, under_way });
        let (sender, receive) = mpsc::channel();
        let mut started = queue.start(&sender);
        while found.iter().any(Option::is_none) {
            if let (Ok(()), Ok((at, outcome))) = (&started, receive.recv_timeout(self.patience)) {
                found[at] = Some(outcome);
                continue;
            }
            // The remaining threads are stuck; new ones run the rest.
            let begun = queue.next.load(Ordering::Relaxed);
            let given_up = if started.is_err() { found.len() } else { begun.min(found.len()) };
            for outcome in &mut found[..given_up] {
                outcome.get_or_insert_with(|| Err(endless()));
            }
            started = queue.start(&sender);
        }
        found.into_iter().flatten().collect()
    }

    /// Inspects one path.
    ///
    /// # Errors
    /// Returns the problem of a failed inspection.
    pub fn one<T: Send + 'static>(
        &self,
        path: &Path,
        look: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<T, Problem> {
        self.each(vec![path.to_owned()], move |_| look()).pop().unwrap_or_else(|| Err(endless()))
    }
}

impl<T: Send + 'static, F: Fn(usize) -> T + Send + Sync + 'static> Queue<F> {
    /// Starts threads that run inspections until there are none, or the receiver is dropped.
    fn start(self: &Arc<Self>, sender: &Sender<(usize, Result<T, Problem>)>) -> io::Result<()> {
        for _ in 0..CHILDREN.min(self.paths.len()) {
            let (queue, sender) = (Arc::clone(self), sender.clone());
            thread::Builder::new().name("look".to_owned()).spawn(move || {
                loop {
                    let at = queue.next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = queue.paths.get(at) else { return };
                    if sender.send((at, queue.look_at(at, path))).is_err() {
                        return;
                    }
                }
            })?;
        }
        Ok(())
    }

    fn look_at(&self, at: usize, path: &Path) -> Result<T, Problem> {
        if self.stuck.iter().any(|stuck| stuck == path) {
            return Err(endless());
        }
        lock(&self.under_way).push(path.to_owned());
        let seen = catch_unwind(AssertUnwindSafe(|| (self.look)(at)));
        let mut under_way = lock(&self.under_way);
        if let Some(mine) = under_way.iter().position(|other| other == path) {
            under_way.swap_remove(mine);
        }
        seen.map_err(|_| panicked())
    }
}

fn panicked() -> Problem {
    Problem {
        kind: ProblemKind::CannotBeRead,
        reason: "it could not be read: Foretoken failed while reading it. The log has the reason. Download \
                 it again, or choose another model."
            .to_owned(),
    }
}

fn endless() -> Problem {
    Problem {
        kind: ProblemKind::DoesNotAnswer,
        reason: "it could not be read: reading it took too long, as on a disk or network that does \
                 not answer. Connect that again and restart Foretoken, or choose another model."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time limit of tests: enough for trivial inspections.
    fn inspections() -> Inspections {
        Inspections { patience: Duration::from_secs(3), ..Inspections::default() }
    }

    fn paths(count: usize) -> Vec<PathBuf> {
        (0..count).map(|number| PathBuf::from(format!("model-{number}"))).collect()
    }

    fn shorts(found: &[Result<usize, Problem>]) -> Vec<Result<usize, &str>> {
        let short = |found: &Result<usize, Problem>| match found {
            Ok(number) => Ok(*number),
            Err(Problem { kind, .. }) => Err(match kind {
                ProblemKind::CannotBeRead => "panicked",
                ProblemKind::DoesNotAnswer => "endless",
                _ => "another",
            }),
        };
        found.iter().map(short).collect()
    }

    #[test]
    fn a_panicking_inspection_fails_alone() {
        let found = inspections().each(paths(20), |at| {
            assert!(at != 3 && at != 19, "a made-up failure");
            at
        });
        let expected = |at| if at == 3 || at == 19 { Err("panicked") } else { Ok(at) };
        assert_eq!(shorts(&found), (0..20).map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn a_hanging_inspection_is_abandoned_and_not_started_again_before_it_ended() {
        let inspections = inspections();
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let (begin, begun) = mpsc::channel();
        let look = {
            let ended = Arc::clone(&ended);
            move |at: usize| {
                let _ = begin.send(at);
                if at < 6 {
                    // Waits until the receiver is dropped.
                    let _ = lock(&ended).recv();
                }
                at
            }
        };
        let look = Arc::new(look);
        let again = || {
            let look = Arc::clone(&look);
            inspections.each(paths(12), move |at| look(at))
        };
        // More of them than threads.
        let expected = |at| if at < 6 { Err("endless") } else { Ok(at) };
        assert_eq!(shorts(&again()), (0..12).map(expected).collect::<Vec<_>>());
        assert_eq!(begun.try_iter().count(), 12);
        assert_eq!(shorts(&again()), (0..12).map(expected).collect::<Vec<_>>());
        assert_eq!(begun.try_iter().filter(|at| *at < 6).count(), 0, "they still hang");

        drop(end);
        while !lock(&inspections.under_way).is_empty() {
            thread::yield_now();
        }
        assert_eq!(shorts(&again()), (0..12).map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn clones_do_not_inspect_again_what_hangs() {
        let first = Inspections { patience: Duration::from_millis(200), ..Inspections::default() };
        let (end, ended) = mpsc::channel::<()>();
        let ended = Mutex::new(ended);
        assert!(first.one(Path::new("model"), move || lock(&ended).recv().is_ok()).is_err());
        let (begin, begun) = mpsc::channel();
        for _ in 0..3 {
            let begin = begin.clone();
            let again = first.clone().one(Path::new("model"), move || begin.send(()).is_ok());
            assert_eq!(again.unwrap_err().kind, ProblemKind::DoesNotAnswer);
        }
        assert_eq!(begun.try_iter().count(), 0, "no other thread was started for it");
        drop(end);
    }

    #[test]
    fn one_path_may_be_inspected_twice() {
        let found = inspections().each(vec!["same".into(), "same".into()], |at| at);
        assert_eq!(shorts(&found), [Ok(0), Ok(1)]);
        assert_eq!(inspections().one(Path::new("same"), || 7), Ok(7));
    }
}
