//! Looks into files that strangers made. One that panics, or does not come to an end, fails by itself: the others
//! go on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use crate::ipc::Problem;
use crate::lock::lock;

/// How long nothing is heard of any look before those that are under way are given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at the same time. Each may hold a model's vocabulary.
const LANES: usize = 4;

/// See the module. Remembers what it gave up and what still has not come to an end.
pub struct Looks {
    patience: Duration,
    under_way: Arc<Mutex<Vec<PathBuf>>>,
}

impl Default for Looks {
    fn default() -> Self {
        Self { patience: PATIENCE, under_way: Arc::default() }
    }
}

/// Looks that threads take, one after the other.
struct Queue<F> {
    paths: Vec<PathBuf>,
    next: AtomicUsize,
    look: F,
    /// Those of earlier queues that still have not come to an end.
    stuck: Vec<PathBuf>,
    under_way: Arc<Mutex<Vec<PathBuf>>>,
}

impl Looks {
    /// Looks at each of these paths, on threads of their own; `look` gets its number. What came of it, in their
    /// order: the problem of one that panicked, or that is given up since it does not come to an end. Such a one is
    /// not looked at again before it has.
    pub fn each<T: Send + 'static>(
        &self,
        paths: Vec<PathBuf>,
        look: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> Vec<Result<T, Problem>> {
        let mut found: Vec<Option<Result<T, Problem>>> = paths.iter().map(|_| None).collect();
        let (stuck, under_way) = (lock(&self.under_way).clone(), Arc::clone(&self.under_way));
        let queue = Arc::new(Queue { paths, next: AtomicUsize::new(0), look, stuck, under_way });
        let (tell, hear) = mpsc::channel();
        let mut started = queue.start(&tell);
        while found.iter().any(Option::is_none) {
            if let (Ok(()), Ok((at, outcome))) = (&started, hear.recv_timeout(self.patience)) {
                found[at] = Some(outcome);
                continue;
            }
            // The threads that are left have all they can do; others take what is left of the queue.
            let begun = queue.next.load(Ordering::Relaxed);
            let given_up = if started.is_err() { found.len() } else { begun.min(found.len()) };
            for outcome in &mut found[..given_up] {
                outcome.get_or_insert_with(|| Err(endless()));
            }
            started = queue.start(&tell);
        }
        found.into_iter().flatten().collect()
    }

    /// The same for one.
    ///
    /// # Errors
    /// The problem of a look that fails.
    pub fn one<T: Send + 'static>(
        &self,
        path: &Path,
        look: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<T, Problem> {
        self.each(vec![path.to_owned()], move |_| look()).pop().unwrap_or_else(|| Err(endless()))
    }
}

impl<T: Send + 'static, F: Fn(usize) -> T + Send + Sync + 'static> Queue<F> {
    /// Starts threads that take looks until there are none, or nobody listens.
    fn start(self: &Arc<Self>, tell: &Sender<(usize, Result<T, Problem>)>) -> io::Result<()> {
        for _ in 0..LANES.min(self.paths.len()) {
            let (queue, tell) = (Arc::clone(self), tell.clone());
            thread::Builder::new().name("look".to_owned()).spawn(move || {
                loop {
                    let at = queue.next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = queue.paths.get(at) else { return };
                    if tell.send((at, queue.look_at(at, path))).is_err() {
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
        short: "cannot be read".to_owned(),
        reason:
            "it could not be read: the program failed while reading it, and the log has the reason. Download \
                 it again, or choose another model."
                .to_owned(),
    }
}

fn endless() -> Problem {
    Problem {
        short: "does not answer".to_owned(),
        reason: "it could not be read: reading it does not come to an end, as on a disk or in a network that does \
                 not answer. Connect that again and restart Foretoken, or choose another model."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough for looks that do nothing; few seconds, as a test waits for all of them.
    fn looks() -> Looks {
        Looks { patience: Duration::from_secs(3), ..Looks::default() }
    }

    fn paths(count: usize) -> Vec<PathBuf> {
        (0..count).map(|number| PathBuf::from(format!("model-{number}"))).collect()
    }

    fn shorts(found: &[Result<usize, Problem>]) -> Vec<Result<usize, &str>> {
        let short = |found: &Result<usize, Problem>| match found {
            Ok(number) => Ok(*number),
            Err(Problem { short, .. }) => Err(match short.as_str() {
                "cannot be read" => "panicked",
                "does not answer" => "endless",
                _ => "another",
            }),
        };
        found.iter().map(short).collect()
    }

    #[test]
    fn a_look_that_panics_is_the_problem_of_one() {
        let found = looks().each(paths(20), |at| {
            assert!(at != 3 && at != 19, "a made-up failure");
            at
        });
        let expected = |at| if at == 3 || at == 19 { Err("panicked") } else { Ok(at) };
        assert_eq!(shorts(&found), (0..20).map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn looks_without_end_are_given_up_and_not_begun_again_before_they_ended() {
        let looks = looks();
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let (begin, begun) = mpsc::channel();
        let look = {
            let ended = Arc::clone(&ended);
            move |at: usize| {
                let _ = begin.send(at);
                if at < 6 {
                    // Waits until the other side is gone.
                    let _ = lock(&ended).recv();
                }
                at
            }
        };
        let look = Arc::new(look);
        let again = || {
            let look = Arc::clone(&look);
            looks.each(paths(12), move |at| look(at))
        };
        // More of them than threads.
        let expected = |at| if at < 6 { Err("endless") } else { Ok(at) };
        assert_eq!(shorts(&again()), (0..12).map(expected).collect::<Vec<_>>());
        assert_eq!(begun.try_iter().count(), 12);
        assert_eq!(shorts(&again()), (0..12).map(expected).collect::<Vec<_>>());
        assert_eq!(begun.try_iter().filter(|at| *at < 6).count(), 0, "they still hang");

        drop(end);
        while !lock(&looks.under_way).is_empty() {
            thread::yield_now();
        }
        assert_eq!(shorts(&again()), (0..12).map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn one_path_may_be_looked_at_twice() {
        let found = looks().each(vec!["same".into(), "same".into()], |at| at);
        assert_eq!(shorts(&found), [Ok(0), Ok(1)]);
        assert_eq!(looks().one(Path::new("same"), || 7), Ok(7));
    }
}
