//! A fixed team of threads that runs passes. A pass is one function that all members run, phase by
//! phase. In a phase each has a contiguous share of the work and reads one stream of weights. It
//! takes its share in small runs; when it is done, it takes runs of the others' shares, so that a
//! member delayed by the system delays no other. A barrier separates phases.
//!
//! Idle members spin: the next work is microseconds away, and waking a thread takes longer. Between
//! passes a member soon sleeps. Within a pass it sleeps only if the others are late: then one of
//! them has lost its core to another program, and the system may give it this one. Such waits are
//! measured, and [`Cores`] decides how many members run the next pass.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::cores::{Cores, PassTiming};

/// Spin time between passes, longer than the gap between two passes of a reply.
const SPIN_BETWEEN_PASSES: Duration = Duration::from_millis(3);

/// Spin time at a barrier.
const SPIN_WITHIN_PASS: Duration = Duration::from_millis(1);

/// Sleep between two checks after that.
const SLEEP: Duration = Duration::from_micros(20);

/// Delay from which a member counts as late, if it also exceeds the time that the others worked
/// before. Several times a wake-up, and less than a time slice of the system.
const MIN_DELAY: Duration = Duration::from_micros(500);

/// Time in one pass after which a waiting member reduces the team, if it is also half of the pass.
const MAX_DELAY: Duration = Duration::from_millis(10);

type Work = dyn Fn(&Member<'_>) + Sync;
type WorkOf<'a> = dyn Fn(&Member<'_>) + Sync + 'a;

/// The worker threads of a team; the calling thread is member 0.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// Locked while a pass runs.
    cores: Mutex<Cores>,
    /// Copy of `cores`' decision, readable without the lock.
    members: AtomicUsize,
    /// Time base of the measurements.
    start: Instant,
}

#[derive(Debug)]
struct Worker {
    handle: Option<JoinHandle<()>>,
    thread: Thread,
}

#[derive(Debug)]
struct Shared {
    /// PassTiming number, with the number of members in the low bits; 0 members end the team.
    call: AtomicUsize,
    work: UnsafeCell<Option<*const Work>>,
    /// Workers that have not finished the pass.
    busy: AtomicUsize,
    asleep: Vec<AtomicBool>,
    /// Nanoseconds that members of this pass waited for delayed ones, summed.
    delay: AtomicU64,
    /// Members that run the rest of the pass: those with the lowest indices. Only the last member
    /// at a barrier changes this, and only downwards.
    present: AtomicUsize,
    /// Requested number of members from the next barrier on.
    wanted: AtomicUsize,
    /// Units taken of each member's share.
    taken: Vec<Taken>,
    waiting: AtomicUsize,
    phase: AtomicUsize,
    /// A member panicked; the others leave the pass.
    broken: AtomicBool,
    /// The first panic's payload.
    panic: Mutex<Option<Panic>>,
}

/// Units that were taken of a member's share, in phases of even and of odd number: no other member
/// reads the next phase's count, so its owner resets it before a barrier. Alone in its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Taken([AtomicUsize; 2]);

type Panic = Box<dyn Any + Send>;

// SAFETY: `work` is written while all workers wait for a call and read by those called. `call`
// orders both: it is written with release and read with acquire.
unsafe impl Send for Shared {}
// SAFETY: see `Send` above.
unsafe impl Sync for Shared {}

/// Value of `call` before the first pass.
const NO_CALL: usize = 1;

const MEMBER_BITS: u32 = 12;
const MAX_MEMBERS: usize = (1 << MEMBER_BITS) - 1;

/// One thread's part in a pass. A member may have to leave the pass at a barrier. From then on
/// `share`, `on_every_member` and `barrier` do nothing, so that it runs through to the end. Code
/// that accesses shared data belongs in `share` or `on_every_member`.
#[derive(Debug)]
pub struct Member<'a> {
    index: usize,
    size: Cell<usize>,
    left: Cell<bool>,
    shared: &'a Shared,
    start: Instant,
    /// Approximate start of its current work: the beginning of the pass, or the end of the last
    /// wait that was long enough to be measured.
    since: Cell<Instant>,
    /// All members had work in this phase. Otherwise waiting is normal and not counted.
    all_busy: Cell<bool>,
    delay: Cell<Duration>,
}

impl Team {
    /// Starts a team of `threads` members including the caller, or fewer if the system has no more
    /// threads.
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, MAX_MEMBERS);
        let shared = Arc::new(Shared {
            call: AtomicUsize::new(NO_CALL),
            work: UnsafeCell::new(None),
            busy: AtomicUsize::new(0),
            asleep: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            delay: AtomicU64::new(0),
            present: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            taken: (0..threads).map(|_| Taken::default()).collect(),
            waiting: AtomicUsize::new(0),
            phase: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let start = |index| {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name(format!("foretoken-{index}"));
            let handle = builder.spawn(move || work_until_closed(&shared, index)).ok()?;
            Some(Worker { thread: handle.thread().clone(), handle: Some(handle) })
        };
        let workers: Vec<Worker> = (1..threads).map_while(start).collect();
        let threads = workers.len() + 1;
        let (cores, members) = (Mutex::new(Cores::new(threads)), AtomicUsize::new(threads));
        Self { shared, workers, cores, members, start: Instant::now() }
    }

    /// Returns the team of `threads` members that all models share.
    pub fn shared(threads: usize) -> Arc<Self> {
        static TEAMS: Mutex<Vec<Arc<Team>>> = Mutex::new(Vec::new());
        let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(team) = teams.iter().find(|team| team.requested() == threads) {
            return Arc::clone(team);
        }
        let team = Arc::new(Self::new(threads));
        teams.push(Arc::clone(&team));
        team
    }

    fn requested(&self) -> usize {
        self.shared.asleep.len()
    }

    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Returns how many members a pass may have: as many as the system has cores for. Changes from
    /// pass to pass.
    pub fn members(&self) -> usize {
        self.members.load(Ordering::Relaxed)
    }

    /// Runs `work` on at most `threads` members at once and returns when all are done.
    ///
    /// # Panics
    /// Repeats the first panic of `work` on any member. The others leave the pass at their next
    /// barrier, and the team stays usable.
    pub fn run(&self, threads: usize, work: &WorkOf<'_>) -> PassTiming {
        let size = threads.clamp(1, self.threads());
        if size == 1 {
            let start = Instant::now();
            work(&Member::new(0, 1, start, &self.shared));
            return self.record(self.cores.try_lock().ok(), 1, start, 0.0);
        }
        let cores = self.cores.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        let shared = &*self.shared;
        // SAFETY: no worker reads it before the call below, and all have finished before this
        // returns, so that the lifetime of `work` may be extended.
        unsafe {
            *shared.work.get() = Some(std::mem::transmute::<*const WorkOf<'_>, *const Work>(work));
        }
        shared.delay.store(0, Ordering::Relaxed);
        shared.present.store(size, Ordering::Relaxed);
        shared.wanted.store(size, Ordering::Relaxed);
        // The last phase of a pass, or a broken pass, leaves the counters at any value.
        for count in shared.taken.iter().flat_map(|Taken(counts)| counts) {
            count.store(0, Ordering::Relaxed);
        }
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
        run_and_catch(work, &first);
        first.wait(|| shared.busy.load(Ordering::Acquire) == 0);
        first.add_delay();
        if let Some(panic) = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            resume_unwind(panic);
        }
        // All other members wait for a delayed one.
        let delay = Duration::from_nanos(shared.delay.load(Ordering::Relaxed)) / (size - 1) as u32;
        // Without members leaving, half of the remaining time would have been lost, too.
        let left = shared.present.load(Ordering::Relaxed) < size;
        let delay = if left { delay.max(start.elapsed() / 2) } else { delay };
        self.record(Some(cores), size, start, delay.as_secs_f64() * 1e3)
    }

    /// Records a pass that began at `start` and lost `delay` milliseconds. A pass of one member
    /// beside another pass has no `cores`.
    fn record(
        &self,
        cores: Option<MutexGuard<'_, Cores>>,
        size: usize,
        start: Instant,
        delay: f64,
    ) -> PassTiming {
        let now = Instant::now();
        let ms = |start: Instant| (now - start).as_secs_f64() * 1e3;
        let pass = PassTiming { size, ms: ms(start), delay };
        if let Some(mut cores) = cores {
            cores.record(ms(self.start), pass);
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
                // Panics do not leave `work_until_closed`.
                let _ = handle.join();
            }
        }
    }
}

/// Main loop of a worker.
fn work_until_closed(shared: &Shared, index: usize) {
    // Not the current value: a call may precede the start of the thread.
    let mut seen = NO_CALL;
    let mut patience = SPIN_BETWEEN_PASSES;
    loop {
        seen = next_call(shared, index, seen, patience);
        let size = seen & MAX_MEMBERS;
        if size == 0 {
            return;
        }
        // Members that are not needed free their core at once.
        patience = if index < size { SPIN_BETWEEN_PASSES } else { Duration::ZERO };
        if index < size {
            // SAFETY: the acquired call was stored after `work`, and `run` does not return before
            // `busy` shows that all members are done.
            if let Some(work) = unsafe { *shared.work.get() } {
                let member = Member::new(index, size, Instant::now(), shared);
                // SAFETY: as above.
                run_and_catch(unsafe { &*work }, &member);
                member.add_delay();
            }
            shared.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Waits for a call other than `seen`: spinning for `patience`, then asleep.
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

/// Spins for at most `time`. Returns whether `done` returned true, and the start of the wait if it
/// was long enough to be measured.
fn spin(time: Duration, done: impl Fn() -> bool) -> (bool, Option<Instant>) {
    /// Checks between two readings of the clock.
    const CHECKS: usize = 100;
    let mut start = None;
    loop {
        for _ in 0..CHECKS {
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

/// Runs a member's part of the pass and catches its panic, which breaks the pass for all.
fn run_and_catch(work: &WorkOf<'_>, member: &Member<'_>) {
    // Partial results are not used, since `run` panics as well.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(member))) {
        let shared = member.shared;
        shared.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        shared.broken.store(true, Ordering::Release);
    }
}

impl<'a> Member<'a> {
    /// Creates a member that starts work at `start`.
    fn new(index: usize, size: usize, start: Instant, shared: &'a Shared) -> Self {
        Self {
            index,
            size: Cell::new(size),
            left: Cell::new(false),
            shared,
            start,
            since: Cell::new(start),
            all_busy: Cell::new(true),
            delay: Cell::default(),
        }
    }

    /// Members of this pass; may decrease at a barrier.
    pub fn size(&self) -> usize {
        self.size.get()
    }

    /// Index of this member, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Units of `0..total` that are `member`'s share.
    pub fn portion(&self, total: usize, member: usize) -> Range<usize> {
        total * member / self.size()..total * (member + 1) / self.size()
    }

    /// Takes units of `0..total` in runs of at most `run` and does them, those of its own share
    /// first, until none is left. At most once between two barriers.
    pub fn share(&self, total: usize, run: usize, mut work: impl FnMut(Range<usize>)) {
        if self.left.get() {
            return;
        }
        if self.size() == 1 {
            return work(0..total);
        }
        let size = self.size();
        self.all_busy.set(total.div_ceil(run) >= size);
        let parity = self.shared.phase.load(Ordering::Relaxed) % 2;
        for owner in (self.index..size).chain(0..self.index) {
            let units = self.portion(total, owner);
            let taken = &self.shared.taken[owner].0[parity];
            // Reads first, since a write takes the cache line from its owner.
            while taken.load(Ordering::Relaxed) < units.len() {
                let start = units.start + taken.fetch_add(run, Ordering::Relaxed);
                if start >= units.end {
                    break;
                }
                work(start..units.end.min(start + run));
            }
        }
    }

    /// Does work that each member does for itself, in memory of its own.
    pub fn on_every_member(&self, work: impl FnOnce()) {
        if !self.left.get() {
            work();
        }
    }

    /// Barrier: waits for all members. What they wrote before can be read after it.
    pub fn barrier(&self) {
        let size = self.size();
        if size == 1 || self.left.get() {
            return;
        }
        let shared = self.shared;
        let phase = shared.phase.load(Ordering::Relaxed);
        shared.taken[self.index].0[phase.wrapping_add(1) % 2].store(0, Ordering::Relaxed);
        if shared.waiting.fetch_add(1, Ordering::AcqRel) + 1 == size {
            shared.waiting.store(0, Ordering::Relaxed);
            shared.present.store(shared.wanted.load(Ordering::Relaxed), Ordering::Relaxed);
            shared.phase.store(phase.wrapping_add(1), Ordering::Release);
        } else {
            let broken = || shared.broken.load(Ordering::Relaxed);
            self.wait(|| shared.phase.load(Ordering::Acquire) != phase || broken());
            if broken() {
                return self.left.set(true);
            }
        }
        // Remaining members cannot reach the next barrier without this one. A leaving member may
        // read an even smaller number.
        let present = shared.present.load(Ordering::Relaxed);
        self.left.set(self.index >= present);
        self.size.set(present);
    }

    /// Waits for other members, which are expected at any moment.
    fn wait(&self, done: impl Fn() -> bool) {
        let (mut over, start) = spin(SPIN_WITHIN_PASS, &done);
        while !over {
            thread::sleep(SLEEP);
            over = done();
        }
        if let Some(start) = start {
            let worked = start.saturating_duration_since(self.since.replace(Instant::now()));
            let waited = self.since.get() - start;
            if self.all_busy.get() && waited > MIN_DELAY.max(worked) {
                self.delay.set(self.delay.get() + waited);
                self.request_fewer_members();
            }
        }
    }

    /// Requests a smaller team if this member has waited too long.
    fn request_fewer_members(&self) {
        let delay = self.delay.get();
        if delay > MAX_DELAY.max((self.since.get() - self.start) / 2) {
            self.shared.wanted.fetch_min((self.size() / 2).max(1), Ordering::Relaxed);
        }
    }

    /// Adds this member's waits to the team's sum.
    fn add_delay(&self) {
        self.shared.delay.fetch_add(self.delay.get().as_nanos() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
