//! A fixed team of threads that carries out passes. A pass is one function that all members run,
//! phase by phase; within a phase they take turns at shares of the work, so that a member that the
//! system holds up holds up nobody, and between phases they wait for each other.
//!
//! Who has nothing to do spins: what it waits for is some microseconds away, and waking a thread takes
//! longer. Between passes it soon goes to sleep; within one, where the others are about to come, only when
//! they do not: then one of them has lost its core to another program, and the system may give it this one.
//! Such waits are measured, and [`Cores`] says by how many members the next pass is best carried out.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::cores::{Cores, Pass};

/// Spins this long for the next pass: longer than what lies between two passes of a reply.
const BETWEEN_PASSES: Duration = Duration::from_millis(3);

/// Spins this long for the other members of a pass.
const WITHIN_A_PASS: Duration = Duration::from_millis(1);

/// Then it sleeps for this long between two looks after them.
const NAP: Duration = Duration::from_micros(20);

/// A member that lets the others wait for longer is held up, if it is longer than they worked before, too:
/// several times what it takes to wake up, and less than a system's time slice.
const HELD_UP: Duration = Duration::from_micros(500);

/// A member that has waited for so long in one pass, and for half of it, sees to it that the rest is done by
/// fewer.
const TOO_LONG: Duration = Duration::from_millis(10);

type Work = dyn Fn(&Member<'_>) + Sync;
type WorkOf<'a> = dyn Fn(&Member<'_>) + Sync + 'a;

/// Threads that wait for passes, and the caller's own.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// Held while a pass runs.
    cores: Mutex<Cores>,
    /// What `cores` says, for who has not got it.
    members: AtomicUsize,
    /// When the team began.
    start: Instant,
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
    /// Nanoseconds that members of the pass have waited for others that were held up, all together.
    held: AtomicU64,
    /// Members that carry out what is left of the pass: those with the lowest numbers. Only the last one at
    /// a meeting changes it, and never to more.
    present: AtomicUsize,
    /// As many as that should be from the next meeting on.
    wanted: AtomicUsize,
    /// The next unit of work of the phase.
    next: AtomicUsize,
    waiting: AtomicUsize,
    phase: AtomicUsize,
    /// A member of the pass panicked: the others leave it.
    broken: AtomicBool,
    /// With what.
    panic: Mutex<Option<Panic>>,
}

type Panic = Box<dyn Any + Send>;

// SAFETY: `work` is written while all workers wait for a call and read by those called, in between
// which stands `call`, written with release and read with acquire.
unsafe impl Send for Shared {}
// SAFETY: the same.
unsafe impl Sync for Shared {}

/// Before the first pass.
const NO_CALL: usize = 1;

const MEMBER_BITS: u32 = 12;
const MAX_MEMBERS: usize = (1 << MEMBER_BITS) - 1;

/// A thread's part in a pass. It may have to leave the pass at a meeting; from then on `share`, `for_itself` and
/// `meet` do nothing, so that it comes to the end of the work by itself. What reads or writes what others write
/// belongs into one of the first two.
#[derive(Debug)]
pub struct Member<'a> {
    index: usize,
    size: Cell<usize>,
    left: Cell<bool>,
    shared: &'a Shared,
    start: Instant,
    /// When it began to work, as far as is known: when the pass began, or the last wait ended that was long
    /// enough to be measured.
    since: Cell<Instant>,
    /// Whether all had something to do in this phase. A wait where they had not says nothing.
    for_all: Cell<bool>,
    held: Cell<Duration>,
}

impl Team {
    /// `threads` of them, the caller's included. Where the system has fewer to give, fewer it is.
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, MAX_MEMBERS);
        let shared = Arc::new(Shared {
            call: AtomicUsize::new(NO_CALL),
            work: UnsafeCell::new(None),
            busy: AtomicUsize::new(0),
            asleep: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            held: AtomicU64::new(0),
            present: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            phase: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let start = |index| {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name(format!("foretoken-{index}"));
            let handle = builder.spawn(move || serve(&shared, index)).ok()?;
            Some(Worker { thread: handle.thread().clone(), handle: Some(handle) })
        };
        let workers: Vec<Worker> = (1..threads).map_while(start).collect();
        let threads = workers.len() + 1;
        let (cores, members) = (Mutex::new(Cores::new(threads)), AtomicUsize::new(threads));
        Self { shared, workers, cores, members, start: Instant::now() }
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

    /// Members that a pass may have: those that the system gives cores to. Changes from pass to pass.
    pub fn members(&self) -> usize {
        self.members.load(Ordering::Relaxed)
    }

    /// Runs `work` on at most `threads` members at once and returns when all are done.
    ///
    /// # Panics
    /// When `work` panics on any of them, with the first of these panics. The others leave the pass at their next
    /// meeting, and the team is ready for another.
    pub fn run(&self, threads: usize, work: &WorkOf<'_>) -> Pass {
        let size = threads.clamp(1, self.threads());
        if size == 1 {
            let start = Instant::now();
            work(&Member::new(0, 1, start, &self.shared));
            return self.learn(self.cores.try_lock().ok(), 1, start, 0.0);
        }
        let cores = self.cores.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        let shared = &*self.shared;
        // SAFETY: no worker reads it before the call below, and all have finished before this returns,
        // so that it does not matter how much longer `work` lives.
        unsafe {
            *shared.work.get() = Some(std::mem::transmute::<*const WorkOf<'_>, *const Work>(work));
        }
        shared.held.store(0, Ordering::Relaxed);
        shared.present.store(size, Ordering::Relaxed);
        shared.wanted.store(size, Ordering::Relaxed);
        shared.next.store(0, Ordering::Relaxed);
        // A pass that was broken left it anywhere.
        shared.waiting.store(0, Ordering::Relaxed);
        shared.broken.store(false, Ordering::Relaxed);
        shared.busy.store(size - 1, Ordering::Relaxed);
        let number = (shared.call.load(Ordering::Relaxed) >> MEMBER_BITS).wrapping_add(1);
        shared.call.store(number << MEMBER_BITS | size, Ordering::SeqCst);
        for (worker, asleep) in self.workers.iter().zip(&shared.asleep[1..]).take(size - 1) {
            if asleep.load(Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        let first = Member::new(0, size, start, shared);
        guarded(work, &first);
        first.wait(|| shared.busy.load(Ordering::Acquire) == 0);
        first.report();
        if let Some(panic) = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            resume_unwind(panic);
        }
        // Who is held up is waited for by all others.
        let held = Duration::from_nanos(shared.held.load(Ordering::Relaxed)) / (size - 1) as u32;
        // Had nobody left, half of what followed would have been lost as well.
        let left = shared.present.load(Ordering::Relaxed) < size;
        let held = if left { held.max(start.elapsed() / 2) } else { held };
        self.learn(Some(cores), size, start, held.as_secs_f64() * 1e3)
    }

    /// A pass is over that began at `start` and lost `held` milliseconds. Who alone carried it out while
    /// another pass runs has no `cores` to tell.
    fn learn(&self, cores: Option<MutexGuard<'_, Cores>>, size: usize, start: Instant, held: f64) -> Pass {
        let now = Instant::now();
        let ms = |start: Instant| (now - start).as_secs_f64() * 1e3;
        let pass = Pass { size, ms: ms(start), held };
        if let Some(mut cores) = cores {
            cores.learn(ms(self.start), pass);
            let members = cores.members();
            if self.members.swap(members, Ordering::Relaxed) != members {
                tracing::debug!("{members} of {} threads compute", self.threads());
            }
        }
        pass
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.call.store(0, Ordering::SeqCst);
        for worker in &mut self.workers {
            worker.thread.unpark();
            if let Some(handle) = worker.handle.take() {
                // No panic leaves `serve`.
                let _ = handle.join();
            }
        }
    }
}

/// A worker's life.
fn serve(shared: &Shared, index: usize) {
    // Not what is there now: a call may have come before the thread did.
    let mut seen = NO_CALL;
    let mut patience = BETWEEN_PASSES;
    loop {
        seen = next_call(shared, index, seen, patience);
        let size = seen & MAX_MEMBERS;
        if size == 0 {
            return;
        }
        // Who is not needed leaves the core to others.
        patience = if index < size { BETWEEN_PASSES } else { Duration::ZERO };
        if index < size {
            // SAFETY: the call that was read says that the work is there, and `run` does not return
            // before `busy` says that all are done with it.
            if let Some(work) = unsafe { *shared.work.get() } {
                let member = Member::new(index, size, Instant::now(), shared);
                // SAFETY: as above.
                guarded(unsafe { &*work }, &member);
                member.report();
            }
            shared.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Waits for a call other than `seen`, after `patience` asleep.
fn next_call(shared: &Shared, index: usize, seen: usize, patience: Duration) -> usize {
    if spin(patience, || shared.call.load(Ordering::Acquire) != seen).0 {
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

/// Waits until it is done for at most `time`. Says whether it was, and since when it waited if that was long
/// enough to look at the clock.
fn spin(time: Duration, done: impl Fn() -> bool) -> (bool, Option<Instant>) {
    /// Between two looks at the clock.
    const LOOKS: usize = 100;
    let mut start = None;
    loop {
        for _ in 0..LOOKS {
            if done() {
                return (true, start);
            }
            std::hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() > time {
            return (false, start);
        }
    }
}

/// Does a member's part of the pass; a panic in it breaks the pass for all.
fn guarded(work: &WorkOf<'_>, member: &Member<'_>) {
    // What the pass has written so far is used by nobody: `run` panics, too.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(member))) {
        let shared = member.shared;
        shared.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        shared.broken.store(true, Ordering::Release);
    }
}

impl<'a> Member<'a> {
    /// Begins to work now, at `start`.
    fn new(index: usize, size: usize, start: Instant, shared: &'a Shared) -> Self {
        Self {
            index,
            size: Cell::new(size),
            left: Cell::new(false),
            shared,
            start,
            since: Cell::new(start),
            for_all: Cell::new(true),
            held: Cell::default(),
        }
    }

    /// Members of this pass; from one meeting to the next they may become fewer.
    pub fn size(&self) -> usize {
        self.size.get()
    }

    /// Which of them this is, from 0 on.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Does its share of the units `0..total`, in runs of at most `run`, until none is left.
    pub fn share(&self, total: usize, run: usize, mut work: impl FnMut(Range<usize>)) {
        if self.left.get() {
            return;
        }
        if self.size() == 1 {
            return work(0..total);
        }
        self.for_all.set(total.div_ceil(run) >= self.size());
        loop {
            let start = self.shared.next.fetch_add(run, Ordering::Relaxed);
            if start >= total {
                return;
            }
            work(start..total.min(start + run));
        }
    }

    /// Does what each member does for itself, in memory of its own.
    pub fn for_itself(&self, work: impl FnOnce()) {
        if !self.left.get() {
            work();
        }
    }

    /// Waits until all members are here. What they wrote before can be read after.
    pub fn meet(&self) {
        let size = self.size();
        if size == 1 || self.left.get() {
            return;
        }
        let shared = self.shared;
        let phase = shared.phase.load(Ordering::Relaxed);
        if shared.waiting.fetch_add(1, Ordering::AcqRel) + 1 == size {
            shared.waiting.store(0, Ordering::Relaxed);
            shared.next.store(0, Ordering::Relaxed);
            shared.present.store(shared.wanted.load(Ordering::Relaxed), Ordering::Relaxed);
            shared.phase.store(phase.wrapping_add(1), Ordering::Release);
        } else {
            let broken = || shared.broken.load(Ordering::Relaxed);
            self.wait(|| shared.phase.load(Ordering::Acquire) != phase || broken());
            if broken() {
                return self.left.set(true);
            }
        }
        // Those who stay have not met again before this one is there; who has to leave may find that even
        // fewer are to stay by now.
        let present = shared.present.load(Ordering::Relaxed);
        self.left.set(self.index >= present);
        self.size.set(present);
    }

    /// Waits for what other members will do at any moment.
    fn wait(&self, done: impl Fn() -> bool) {
        let (mut over, start) = spin(WITHIN_A_PASS, &done);
        while !over {
            thread::sleep(NAP);
            over = done();
        }
        if let Some(start) = start {
            let worked = start.saturating_duration_since(self.since.replace(Instant::now()));
            let waited = self.since.get() - start;
            if self.for_all.get() && waited > HELD_UP.max(worked) {
                self.held.set(self.held.get() + waited);
                self.complain();
            }
        }
    }

    fn complain(&self) {
        let held = self.held.get();
        if held > TOO_LONG.max((self.since.get() - self.start) / 2) {
            self.shared.wanted.fetch_min((self.size() / 2).max(1), Ordering::Relaxed);
        }
    }

    /// Adds what it has waited to what the others have.
    fn report(&self) {
        self.shared.held.fetch_add(self.held.get().as_nanos() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
