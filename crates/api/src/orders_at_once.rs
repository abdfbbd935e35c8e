//! Large orders wait for each other. A body of 60 bytes asks for 100,000 tickets, which take a hundred megabytes until they
//! are stored and enqueued; the database writes them one order after the other anyway. Small orders do not wait.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// An order up to this many tickets is small.
const SMALL: usize = 1_000;
/// The largest orders that are placed at the same time.
const LARGEST_AT_ONCE: usize = 2;

/// Places for large orders. Clones share them.
#[derive(Clone)]
pub struct OrdersAtOnce {
    tickets: Arc<Semaphore>,
    most: usize,
}

/// The place of an order; free again when the value is dropped.
pub(crate) struct Place(
    #[expect(dead_code, reason = "dropped with the place")] Option<OwnedSemaphorePermit>,
);

impl OrdersAtOnce {
    /// Places for orders of at most so many tickets.
    pub fn new(most_tickets: usize) -> Self {
        let most = most_tickets.max(SMALL);
        Self { tickets: Arc::new(Semaphore::new(most * LARGEST_AT_ONCE)), most }
    }

    /// Waits until so many tickets may be placed, in the order of the requests.
    pub(crate) async fn wait(&self, tickets: usize) -> Place {
        if tickets <= SMALL {
            return Place(None);
        }
        // An order of more than the largest is refused for its quantity.
        let tickets = u32::try_from(tickets.min(self.most)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        Place(self.tickets.clone().acquire_many_owned(tickets).await.ok())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn large_orders_wait_for_each_other_and_small_ones_do_not() {
        let orders = OrdersAtOnce::new(100_000);
        let first = orders.wait(100_000).await;
        let second = orders.wait(usize::MAX).await;
        assert!(orders.wait(50_000).now_or_never().is_none());
        assert!(orders.wait(SMALL).now_or_never().is_some());
        drop(first);
        assert!(orders.wait(50_000).now_or_never().is_some());
        drop(second);
    }
}
