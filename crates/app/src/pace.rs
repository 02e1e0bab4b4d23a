//! Telling the page no more often than it paints. What comes in quick succession is told together, on a thread
//! of its own: turning rounds into messages costs the engine nothing, and a message costs the webview far more
//! than what is in it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// From one message to the next at least, as the page says: it knows how often it paints.
pub struct Pace(AtomicU64);

impl Pace {
    /// Until the page has said anything.
    const USUAL: Duration = Duration::from_millis(30);
    /// Half a frame of a display that shows sixty a second.
    const SHORTEST: Duration = Duration::from_millis(8);
    /// However seldom it paints: what is under way is waited for, too.
    const LONGEST: Duration = Duration::from_secs(1);

    pub fn set(&self, interval: Duration) {
        let interval = interval.clamp(Self::SHORTEST, Self::LONGEST);
        self.0.store(interval.as_millis() as u64, Ordering::Relaxed);
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self(AtomicU64::new(Self::USUAL.as_millis() as u64))
    }
}

/// Takes single events and hands them on in batches, in order: the first at once, none later than the pace.
pub struct Pacer<T> {
    queue: Arc<Queue<T>>,
    thread: JoinHandle<()>,
}

/// Takes an event.
pub type Teller<T> = Box<dyn Fn(T) + Send + Sync>;

/// Where events wait for the next message.
struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
}

struct Waiting<T> {
    events: Vec<T>,
    /// Nothing follows.
    over: bool,
}

impl<T: Send + 'static> Pacer<T> {
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(pace: &Arc<Pace>, tell: impl Fn(Vec<T>) + Send + 'static) -> std::io::Result<Self> {
        let waiting = Mutex::new(Waiting { events: Vec::new(), over: false });
        let queue = Arc::new(Queue { waiting, changed: Condvar::new() });
        let (taken, pace) = (Arc::clone(&queue), Arc::clone(pace));
        let thread =
            thread::Builder::new().name("pacer".to_owned()).spawn(move || taken.forward(&pace, &tell))?;
        Ok(Self { queue, thread })
    }

    /// What takes an event; after [`Self::finish`] nobody hears it.
    pub fn teller(&self) -> Teller<T> {
        let queue = Arc::clone(&self.queue);
        Box::new(move |event| queue.put(event))
    }

    /// Waits until all that was taken is handed on.
    pub fn finish(self) {
        lock(&self.queue.waiting).over = true;
        self.queue.changed.notify_one();
        if self.thread.join().is_err() {
            tracing::error!("the page was not told everything");
        }
    }
}

impl<T> Queue<T> {
    /// Wakes the thread for the first event of a message alone: at thousands a second the others would cost
    /// the engine more than they are worth.
    fn put(&self, event: T) {
        let mut waiting = lock(&self.waiting);
        waiting.events.push(event);
        if waiting.events.len() == 1 {
            self.changed.notify_one();
        }
    }

    fn forward(&self, pace: &Pace, tell: &dyn Fn(Vec<T>)) {
        let mut due = Instant::now();
        while let Some(batch) = self.batch(due) {
            tell(batch);
            due = Instant::now() + pace.interval();
        }
    }

    /// What there is when a message is due, or nothing more comes; `None` when that is nothing.
    fn batch(&self, due: Instant) -> Option<Vec<T>> {
        let waiting = lock(&self.waiting);
        let waiting = self.changed.wait_while(waiting, |waiting| waiting.events.is_empty() && !waiting.over);
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let rest = due.saturating_duration_since(Instant::now());
        let rested = self.changed.wait_timeout_while(waiting, rest, |waiting| !waiting.over);
        let (mut waiting, _) = rested.unwrap_or_else(PoisonError::into_inner);
        let batch = std::mem::take(&mut waiting.events);
        (!batch.is_empty()).then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Batches = Arc<Mutex<Vec<Vec<u32>>>>;

    fn collected(interval: Duration) -> (Pacer<u32>, Batches) {
        let pace = Pace::default();
        pace.set(interval);
        started(pace)
    }

    fn started(pace: Pace) -> (Pacer<u32>, Batches) {
        let batches = Batches::default();
        let sink = Arc::clone(&batches);
        let tell = move |batch| sink.lock().unwrap().push(batch);
        (Pacer::start(&Arc::new(pace), tell).unwrap(), batches)
    }

    #[test]
    fn a_quick_succession_is_told_in_few_messages_in_order_and_whole() {
        for interval in [Pace::SHORTEST, Pace::USUAL] {
            let (pacer, batches) = collected(interval);
            let tell = pacer.teller();
            let begin = Instant::now();
            (0..10_000).for_each(&tell);
            pacer.finish();
            let most = begin.elapsed().as_millis() / interval.as_millis() + 2;
            let batches = batches.lock().unwrap();
            assert!((batches.len() as u128) <= most, "{} messages, {most} at most", batches.len());
            assert_eq!(batches.concat(), (0..10_000).collect::<Vec<_>>());
            tell(1);
        }
    }

    #[test]
    fn what_comes_slowly_is_told_at_once() {
        let (pacer, batches) = collected(Pace::SHORTEST);
        for event in 0..3 {
            pacer.teller()(event);
            thread::sleep(3 * Pace::SHORTEST);
            assert_eq!(batches.lock().unwrap().concat().len() as u32, event + 1);
        }
        pacer.finish();
    }

    #[test]
    fn the_end_is_told_without_waiting_for_a_page_that_paints_seldom() {
        // The test would take a year.
        let (pacer, batches) = started(Pace(AtomicU64::new(365 * 24 * 3_600_000)));
        (0..3).for_each(pacer.teller());
        pacer.finish();
        assert_eq!(batches.lock().unwrap().concat(), [0, 1, 2]);
    }

    #[test]
    fn a_page_cannot_ask_for_a_pace_that_helps_nobody() {
        let pace = Pace::default();
        for (asked, given) in [(Duration::ZERO, Pace::SHORTEST), (Duration::MAX, Pace::LONGEST)] {
            pace.set(asked);
            assert_eq!(pace.interval(), given);
        }
    }
}
