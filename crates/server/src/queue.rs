//! Queue of requests: one reply at a time, in order, and a limited number of waiting requests.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::refusal::Refusal;

/// Most requests that may wait while a reply is written.
pub const WAITING: usize = 64;

/// Queue for the writer; see the module.
#[derive(Clone)]
pub struct Queue {
    /// Permits of the running reply and the waiting requests.
    permits: Arc<Semaphore>,
    slot: Arc<Semaphore>,
}

/// Right to write a reply; dropping it lets the next request run.
#[derive(Debug)]
pub struct Slot {
    _slot: OwnedSemaphorePermit,
    _permit: OwnedSemaphorePermit,
}

impl Queue {
    pub fn new(waiting: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(1 + waiting)), slot: Arc::new(Semaphore::new(1)) }
    }

    /// Waits for the slot. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// Returns an error if the queue is full.
    pub async fn acquire(&self) -> Result<Slot, Refusal> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| Refusal::queue_full())?;
        // The semaphore is never closed.
        let slot = Arc::clone(&self.slot).acquire_owned().await.map_err(|_| Refusal::queue_full())?;
        Ok(Slot { _slot: slot, _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_request_runs_others_wait_in_order_and_the_rest_are_refused() {
        let queue = Queue::new(2);
        let first = queue.acquire().await.unwrap();
        let waiting = || {
            let queue = queue.clone();
            tokio::spawn(async move { queue.acquire().await })
        };
        let (second, third) = (waiting(), waiting());
        tokio::task::yield_now().await;
        assert_eq!(queue.acquire().await.unwrap_err(), Refusal::queue_full());
        // A request that leaves frees its place.
        second.abort();
        let _ = second.await;
        let fourth = waiting();
        drop(first);
        let third = third.await.unwrap().unwrap();
        assert!(!fourth.is_finished());
        drop(third);
        fourth.await.unwrap().unwrap();
    }
}
