//! A fixed team of threads that carries out passes. A pass is one function that all members run,
//! phase by phase; within a phase they take turns at shares of the work, so that a member that the
//! system holds up holds up nobody, and between phases they wait for each other.
//!
//! Who has nothing to do spins: what it waits for is some microseconds away, and waking a thread takes
//! longer. Between passes it soon goes to sleep; within one, where the others are about to come, it lets
//! other programs go first only when they do not, since a processor that is given away is gone for
//! milliseconds.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Spins this long for the next pass: longer than what lies between two passes of a reply.
const BETWEEN_PASSES: Duration = Duration::from_millis(3);

/// Spins this long for the other members of a pass.
const WITHIN_A_PASS: Duration = Duration::from_millis(1);

type Work = dyn Fn(&Member<'_>) + Sync;
type WorkOf<'a> = dyn Fn(&Member<'_>) + Sync + 'a;

/// Threads that wait for passes, and the caller's own.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// Held while a pass runs.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct Worker {
    handle: Option<JoinHandle<()>>,
    thread: Thread,
}

#[derive(Debug)]
struct Shared {
    /// The number of the pass and, in the low bits, how many members it has; 0 members end the team.
    call: AtomicUsize,
    work: UnsafeCell<Option<*const Work>>,
    /// Workers that have not finished the pass.
    busy: AtomicUsize,
    asleep: Vec<AtomicBool>,
    /// The next unit of work of the phase.
    next: AtomicUsize,
    waiting: AtomicUsize,
    phase: AtomicUsize,
}

// SAFETY: `work` is written while all workers wait for a call and read by those called, in between
// which stands `call`, written with release and read with acquire.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

/// Before the first pass.
const NO_CALL: usize = 1;

const MEMBER_BITS: u32 = 12;
const MOST_MEMBERS: usize = (1 << MEMBER_BITS) - 1;

/// A thread's part in a pass.
#[derive(Debug)]
pub struct Member<'a> {
    index: usize,
    size: usize,
    shared: &'a Shared,
}

impl Team {
    /// `threads` of them, the caller's included. Where the system has fewer to give, fewer it is.
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, MOST_MEMBERS);
        let shared = Arc::new(Shared {
            call: AtomicUsize::new(NO_CALL),
            work: UnsafeCell::new(None),
            busy: AtomicUsize::new(0),
            asleep: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            next: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            phase: AtomicUsize::new(0),
        });
        let start = |index| {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name(format!("foretoken-{index}"));
            let handle = builder.spawn(move || serve(&shared, index)).ok()?;
            Some(Worker { thread: handle.thread().clone(), handle: Some(handle) })
        };
        let workers = (1..threads).map_while(start).collect();
        Self { shared, workers, turn: Mutex::new(()) }
    }

    /// The one team of so many threads that all models share.
    pub fn shared(threads: usize) -> Arc<Self> {
        static TEAMS: Mutex<Vec<Arc<Team>>> = Mutex::new(Vec::new());
        let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(team) = teams.iter().find(|team| team.asked() == threads) {
            return Arc::clone(team);
        }
        let team = Arc::new(Self::new(threads));
        teams.push(Arc::clone(&team));
        team
    }

    fn asked(&self) -> usize {
        self.shared.asleep.len()
    }

    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `work` on at most `threads` members at once and returns when all are done. A panic in it
    /// ends the process, since the others would wait for ever.
    pub fn run(&self, threads: usize, work: &WorkOf<'_>) {
        let size = threads.clamp(1, self.threads());
        let first = Member { index: 0, size, shared: &self.shared };
        if size == 1 {
            return work(&first);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        // SAFETY: no worker reads it before the call below, and all have finished before this returns,
        // so that it does not matter how much longer `work` lives.
        unsafe {
            *shared.work.get() = Some(std::mem::transmute::<*const WorkOf<'_>, *const Work>(work));
        }
        shared.next.store(0, Ordering::Relaxed);
        shared.busy.store(size - 1, Ordering::Relaxed);
        let number = (shared.call.load(Ordering::Relaxed) >> MEMBER_BITS).wrapping_add(1);
        shared.call.store(number << MEMBER_BITS | size, Ordering::SeqCst);
        for (worker, asleep) in self.workers.iter().zip(&shared.asleep[1..]).take(size - 1) {
            if asleep.load(Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        guarded(work, &first);
        wait(|| shared.busy.load(Ordering::Acquire) == 0);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.call.store(0, Ordering::SeqCst);
        for worker in &mut self.workers {
            worker.thread.unpark();
            if let Some(handle) = worker.handle.take() {
                // A worker that panicked has ended the process.
                let _ = handle.join();
            }
        }
    }
}

/// A worker's life.
fn serve(shared: &Shared, index: usize) {
    // Not what is there now: a call may have come before the thread did.
    let mut seen = NO_CALL;
    loop {
        seen = next_call(shared, index, seen);
        let size = seen & MOST_MEMBERS;
        if size == 0 {
            return;
        }
        if index < size {
            // SAFETY: the call that was read says that the work is there, and `run` does not return
            // before `busy` says that all are done with it.
            if let Some(work) = unsafe { *shared.work.get() } {
                guarded(unsafe { &*work }, &Member { index, size, shared });
            }
            shared.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Waits for a call other than `seen`, at last asleep.
fn next_call(shared: &Shared, index: usize, seen: usize) -> usize {
    if spin(BETWEEN_PASSES, || shared.call.load(Ordering::Acquire) != seen) {
        return shared.call.load(Ordering::Acquire);
    }
    loop {
        shared.asleep[index].store(true, Ordering::SeqCst);
        let call = shared.call.load(Ordering::SeqCst);
        if call != seen {
            shared.asleep[index].store(false, Ordering::SeqCst);
            return call;
        }
        thread::park();
    }
}

/// Waits for what other members will do at any moment.
fn wait(done: impl Fn() -> bool) {
    if !spin(WITHIN_A_PASS, &done) {
        while !done() {
            thread::yield_now();
        }
    }
}

/// Whether it was done in time.
fn spin(time: Duration, done: impl Fn() -> bool) -> bool {
    /// Between two looks at the clock.
    const LOOKS: usize = 100;
    let mut start = None;
    loop {
        for _ in 0..LOOKS {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() > time {
            return false;
        }
    }
}

/// Ends the process when `work` panics.
fn guarded(work: &WorkOf<'_>, member: &Member<'_>) {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            tracing::error!("a thread of the CPU engine failed");
            std::process::abort();
        }
    }
    let end = End;
    work(member);
    std::mem::forget(end);
}

impl Member<'_> {
    /// Members of this pass.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Which of them this is, from 0 on.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Does its share of the units `0..total`, in runs of at most `run`, until none is left.
    pub fn share(&self, total: usize, run: usize, mut work: impl FnMut(Range<usize>)) {
        if self.size == 1 {
            return work(0..total);
        }
        loop {
            let start = self.shared.next.fetch_add(run, Ordering::Relaxed);
            if start >= total {
                return;
            }
            work(start..total.min(start + run));
        }
    }

    /// Waits until all members are here. What they wrote before can be read after.
    pub fn meet(&self) {
        if self.size == 1 {
            return;
        }
        let shared = self.shared;
        let phase = shared.phase.load(Ordering::Relaxed);
        if shared.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.size {
            shared.waiting.store(0, Ordering::Relaxed);
            shared.next.store(0, Ordering::Relaxed);
            shared.phase.store(phase.wrapping_add(1), Ordering::Release);
        } else {
            wait(|| shared.phase.load(Ordering::Acquire) != phase);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_unit_is_done_once_in_every_phase() {
        for threads in [1, 2, 3, 7] {
            let team = Team::new(threads);
            let done: Vec<Vec<AtomicU64>> =
                (0..5).map(|_| (0..100).map(|_| AtomicU64::new(0)).collect()).collect();
            for _ in 0..200 {
                team.run(threads, &|member| {
                    for phase in &done {
                        member.share(100, 3, |units| {
                            units.for_each(|unit| {
                                phase[unit].fetch_add(1, Ordering::Relaxed);
                            });
                        });
                        member.meet();
                    }
                });
            }
            assert!(done.iter().flatten().all(|count| count.load(Ordering::Relaxed) == 200), "{threads}");
        }
    }

    #[test]
    fn what_one_phase_writes_the_next_one_reads() {
        let team = Team::new(3);
        let numbers: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(1)).collect();
        let sums: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
        team.run(3, &|member| {
            member.share(64, 1, |units| units.for_each(|unit| numbers[unit].store(2, Ordering::Relaxed)));
            member.meet();
            member.share(64, 1, |units| {
                let sum = numbers.iter().map(|number| number.load(Ordering::Relaxed)).sum();
                units.for_each(|unit| sums[unit].store(sum, Ordering::Relaxed));
            });
        });
        assert!(sums.iter().all(|sum| sum.load(Ordering::Relaxed) == 128));
    }

    #[test]
    fn fewer_members_than_threads_and_more_are_fine() {
        let team = Team::new(4);
        for asked in [1, 2, 3, 4, 100, 0, 2, 4] {
            let members = AtomicU64::new(0);
            team.run(asked, &|member| {
                assert_eq!(member.size(), asked.clamp(1, 4));
                members.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(members.load(Ordering::Relaxed), asked.clamp(1, 4) as u64);
        }
    }

    #[test]
    fn callers_at_once_take_turns() {
        let team = Team::new(3);
        let running = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        team.run(3, &|member| {
                            if member.index() == 0 {
                                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                            }
                            member.meet();
                            if member.index() == 0 {
                                running.fetch_sub(1, Ordering::SeqCst);
                            }
                        });
                    }
                });
            }
        });
    }

    #[test]
    fn an_idle_team_sleeps_and_wakes_up_again() {
        let team = Team::new(2);
        team.run(2, &|member| member.meet());
        let asleep = || team.shared.asleep[1].load(Ordering::SeqCst);
        let start = Instant::now();
        while !asleep() && start.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(asleep(), "still awake");
        let members = AtomicUsize::new(0);
        team.run(2, &|member| {
            members.fetch_add(1, Ordering::SeqCst);
            member.meet();
        });
        assert_eq!(members.load(Ordering::SeqCst), 2);
    }
}
