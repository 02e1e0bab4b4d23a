//! Sends events to the page no more often than it paints. Events in quick succession are sent
//! together by a thread of its own: converting rounds to messages costs the engine no time, and a
//! message costs the webview far more than its content.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// Least time between two messages, as set by the page, which knows how often it paints.
pub struct Pace(AtomicU64);

impl Pace {
    /// Interval before the page has set one.
    const DEFAULT: Duration = Duration::from_millis(30);
    /// Shortest interval: half a frame of a 60 Hz display.
    const SHORTEST: Duration = Duration::from_millis(8);
    /// Longest interval: the end of an event stream waits for it.
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
        Self(AtomicU64::new(Self::DEFAULT.as_millis() as u64))
    }
}

/// Forwards events in batches and in order: the first immediately, none later than the interval.
pub struct Pacer<T> {
    queue: Arc<Queue<T>>,
    thread: JoinHandle<()>,
}

/// Sends an event.
pub type EventSender<T> = Box<dyn Fn(T) + Send + Sync>;

/// Events that wait for the next message.
struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
}

struct Waiting<T> {
    events: Vec<T>,
    /// Set when no more events follow.
    over: bool,
}

impl<T: Send + 'static> Pacer<T> {
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub fn start(pace: &Arc<Pace>, send: impl Fn(Vec<T>) + Send + 'static) -> std::io::Result<Self> {
        let waiting = Mutex::new(Waiting { events: Vec::new(), over: false });
        let queue = Arc::new(Queue { waiting, changed: Condvar::new() });
        let (taken, pace) = (Arc::clone(&queue), Arc::clone(pace));
        let thread =
            thread::Builder::new().name("pacer".to_owned()).spawn(move || taken.forward(&pace, &send))?;
        Ok(Self { queue, thread })
    }

    /// Returns a sender of events; events after [`Self::finish`] are dropped.
    pub fn sender(&self) -> EventSender<T> {
        let queue = Arc::clone(&self.queue);
        Box::new(move |event| queue.put(event))
    }

    /// Waits until all events are forwarded.
    pub fn finish(self) {
        lock(&self.queue.waiting).over = true;
        self.queue.changed.notify_one();
        if self.thread.join().is_err() {
            tracing::error!("some events did not reach the page");
        }
    }
}

impl<T> Queue<T> {
    /// Wakes the thread only for the first event of a message: at thousands a second, more wake-ups
    /// would slow the engine.
    fn put(&self, event: T) {
        let mut waiting = lock(&self.waiting);
        waiting.events.push(event);
        if waiting.events.len() == 1 {
            self.changed.notify_one();
        }
    }

    fn forward(&self, pace: &Pace, send: &dyn Fn(Vec<T>)) {
        let mut due = Instant::now();
        while let Some(batch) = self.batch(due) {
            send(batch);
            due = Instant::now() + pace.interval();
        }
    }

    /// Returns the events once a message is due or no more follow; `None` if there are none.
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
        let send = move |batch| sink.lock().unwrap().push(batch);
        (Pacer::start(&Arc::new(pace), send).unwrap(), batches)
    }

    #[test]
    fn quick_events_are_sent_in_few_messages_in_order_and_completely() {
        for interval in [Pace::SHORTEST, Pace::DEFAULT] {
            let (pacer, batches) = collected(interval);
            let send = pacer.sender();
            let begin = Instant::now();
            (0..10_000).for_each(&send);
            pacer.finish();
            let most = begin.elapsed().as_millis() / interval.as_millis() + 2;
            let batches = batches.lock().unwrap();
            assert!((batches.len() as u128) <= most, "{} messages, {most} at most", batches.len());
            assert_eq!(batches.concat(), (0..10_000).collect::<Vec<_>>());
            send(1);
        }
    }

    #[test]
    fn slow_events_are_sent_immediately() {
        let (pacer, batches) = collected(Pace::SHORTEST);
        for event in 0..3 {
            pacer.sender()(event);
            thread::sleep(3 * Pace::SHORTEST);
            assert_eq!(batches.lock().unwrap().concat().len() as u32, event + 1);
        }
        pacer.finish();
    }

    #[test]
    fn the_end_is_sent_without_waiting_for_a_page_that_paints_seldom() {
        // Waiting for it would take a year.
        let (pacer, batches) = started(Pace(AtomicU64::new(365 * 24 * 3_600_000)));
        (0..3).for_each(pacer.sender());
        pacer.finish();
        assert_eq!(batches.lock().unwrap().concat(), [0, 1, 2]);
    }

    #[test]
    fn the_interval_of_a_page_is_limited() {
        let pace = Pace::default();
        for (asked, given) in [(Duration::ZERO, Pace::SHORTEST), (Duration::MAX, Pace::LONGEST)] {
            pace.set(asked);
            assert_eq!(pace.interval(), given);
        }
    }
}
