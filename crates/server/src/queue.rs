//! One reply at a time, in the order they were asked for, and how many may wait.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::refusal::Refusal;

/// Requests that may wait while one is replied to.
pub const WAITING: usize = 64;

/// See the module.
#[derive(Clone)]
pub struct Queue {
    /// Of the reply under way and of those that wait.
    places: Arc<Semaphore>,
    turn: Arc<Semaphore>,
}

/// The right to be replied to; whoever drops it lets the next one have it.
#[derive(Debug)]
pub struct Turn {
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Queue {
    pub fn new(waiting: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(1 + waiting)), turn: Arc::new(Semaphore::new(1)) }
    }

    /// Waits for a turn. Whoever stops waiting gives up the place.
    ///
    /// # Errors
    /// When no place is left.
    pub async fn turn(&self) -> Result<Turn, Refusal> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Refusal::queue_full())?;
        // Nobody closes it.
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| Refusal::queue_full())?;
        Ok(Turn { _turn: turn, _place: place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_has_the_turn_some_wait_in_order_and_the_rest_are_refused() {
        let queue = Queue::new(2);
        let first = queue.turn().await.unwrap();
        let waiting = || {
            let queue = queue.clone();
            tokio::spawn(async move { queue.turn().await })
        };
        let (second, third) = (waiting(), waiting());
        tokio::task::yield_now().await;
        assert_eq!(queue.turn().await.unwrap_err(), Refusal::queue_full());
        // One who gives up makes room for another.
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
