//! Telling the page no more often than it can show. What comes in quick succession is told together, on a
//! thread of its own: turning rounds into messages costs the engine nothing, and a message costs the webview
//! far more than what is in it.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// At least so long from one message to the next: half a frame of a display that shows sixty a second.
const PACE: Duration = Duration::from_millis(8);

/// Takes single events and hands them on in batches, in order: the first at once, none later than [`PACE`].
pub struct Pacer<T> {
    events: Sender<Told<T>>,
    thread: JoinHandle<()>,
}

/// Takes an event.
pub type Teller<T> = Box<dyn Fn(T) + Send + Sync>;

enum Told<T> {
    Event(T),
    /// Nothing follows.
    End,
}

impl<T: Send + 'static> Pacer<T> {
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(tell: impl Fn(Vec<T>) + Send + 'static) -> std::io::Result<Self> {
        let (events, told) = mpsc::channel();
        let thread = thread::Builder::new().name("pacer".to_owned()).spawn(move || forward(&told, &tell))?;
        Ok(Self { events, thread })
    }

    /// What takes an event; after [`Self::finish`] nobody hears it.
    pub fn teller(&self) -> Teller<T> {
        let events = self.events.clone();
        Box::new(move |event| {
            let _ = events.send(Told::Event(event));
        })
    }

    /// Waits until all that was taken is handed on.
    pub fn finish(self) {
        let _ = self.events.send(Told::End);
        if self.thread.join().is_err() {
            tracing::error!("the page was not told everything");
        }
    }
}

fn forward<T>(told: &Receiver<Told<T>>, tell: &dyn Fn(Vec<T>)) {
    let mut due = Instant::now();
    while let Ok(Told::Event(first)) = told.recv() {
        let mut batch = vec![first];
        let over = loop {
            match told.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Told::Event(event)) => batch.push(event),
                Err(RecvTimeoutError::Timeout) => break false,
                Ok(Told::End) | Err(RecvTimeoutError::Disconnected) => break true,
            }
        };
        tell(batch);
        if over {
            return;
        }
        due = Instant::now() + PACE;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    type Batches = Arc<Mutex<Vec<Vec<u32>>>>;

    fn collected() -> (Pacer<u32>, Batches) {
        let batches = Batches::default();
        let sink = Arc::clone(&batches);
        (Pacer::start(move |batch| sink.lock().unwrap().push(batch)).unwrap(), batches)
    }

    #[test]
    fn a_quick_succession_is_told_in_few_messages_in_order_and_whole() {
        let (pacer, batches) = collected();
        let tell = pacer.teller();
        let begin = Instant::now();
        (0..10_000).for_each(&tell);
        pacer.finish();
        let most = begin.elapsed().as_millis() / PACE.as_millis() + 2;
        let batches = batches.lock().unwrap();
        assert!((batches.len() as u128) <= most, "{} messages, {most} at most", batches.len());
        assert_eq!(batches.concat(), (0..10_000).collect::<Vec<_>>());
        tell(1);
    }

    #[test]
    fn what_comes_slowly_is_told_at_once() {
        let (pacer, batches) = collected();
        for event in 0..3 {
            pacer.teller()(event);
            thread::sleep(3 * PACE);
            assert_eq!(batches.lock().unwrap().concat().len() as u32, event + 1);
        }
        pacer.finish();
    }
}
