//! Who waits, and who is next: VIPs first, then in the order of arrival.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Most orders of one user that wait.
const MOST_OF_ONE: usize = 3;

/// Where an order comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A message in a private chat.
    Message,
    /// An inline query, which has this id.
    Inline(String),
}

/// What a user wants.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) user: i64,
    pub(crate) is_vip: bool,
    pub(crate) text: String,
    pub(crate) source: Source,
    pub(crate) notice: tokio::sync::Mutex<Notice>,
}

impl Order {
    pub(crate) fn new(user: i64, is_vip: bool, text: String, source: Source) -> Self {
        Self { user, is_vip, text, source, notice: tokio::sync::Mutex::default() }
    }
}

/// The message that tells a user the place of the order.
#[derive(Debug, Default)]
pub(crate) struct Notice {
    /// The id of the message; `None`: nothing was sent yet.
    pub(crate) message: Option<i64>,
    /// The place that it tells.
    pub(crate) place: usize,
    /// When it was told last.
    pub(crate) told_at: Option<Instant>,
    /// The order is answered: the place is told no more.
    pub(crate) is_closed: bool,
}

/// Why an order may not wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too many orders wait.
    Full,
    /// Too many orders of this user wait.
    TooManyOfYours,
}

/// Orders that wait.
pub(crate) struct Queue {
    limit: usize,
    /// By (is no VIP, number of arrival).
    waiting: Mutex<BTreeMap<(bool, u64), Arc<Order>>>,
    arrivals: AtomicU64,
    /// Milliseconds of an order, averaged.
    usual_ms: AtomicU64,
    is_closed: AtomicBool,
    changed: Notify,
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            waiting: Mutex::default(),
            arrivals: AtomicU64::new(0),
            usual_ms: AtomicU64::new(1_000),
            is_closed: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<(bool, u64), Arc<Order>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an order in its place. An inline query replaces the user's last one: only the newest has an effect.
    pub(crate) fn put(&self, order: Order) -> Result<(), Refused> {
        let mut waiting = self.waiting();
        if order.source != Source::Message {
            let replaced =
                |known: &Order| known.user == order.user && known.source != Source::Message;
            waiting.retain(|_, known| !replaced(known));
        }
        if waiting.len() >= self.limit {
            return Err(Refused::Full);
        }
        if waiting.values().filter(|known| known.user == order.user).count() >= MOST_OF_ONE {
            return Err(Refused::TooManyOfYours);
        }
        let number = self.arrivals.fetch_add(1, Ordering::Relaxed);
        waiting.insert((!order.is_vip, number), Arc::new(order));
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// The next order, as soon as there is one; `None`: the queue is closed and empty.
    pub(crate) async fn next(&self) -> Option<Arc<Order>> {
        loop {
            let changed = self.changed.notified();
            if let Some((_, order)) = self.waiting().pop_first() {
                return Some(order);
            }
            if self.is_closed.load(Ordering::Acquire) {
                // Wakes the next desk, which finds the same.
                self.changed.notify_one();
                return None;
            }
            changed.await;
        }
    }

    /// Lets the desks end when nothing waits any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// The orders that wait, the next one first.
    pub(crate) fn line(&self) -> Vec<Arc<Order>> {
        self.waiting().values().cloned().collect()
    }

    /// Notes how long an order took.
    pub(crate) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 8);
        let average = |usual: u64| Some((usual * 7 + time) / 8);
        // The closure never refuses.
        let _ = self.usual_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, average);
    }

    /// How long the order at this place, counted from 1, is going to wait.
    pub(crate) fn wait_of(&self, place: usize, desks: usize) -> Duration {
        let rounds = place.div_ceil(desks.max(1)) as u64;
        Duration::from_millis(self.usual_ms.load(Ordering::Relaxed).saturating_mul(rounds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(user: i64, is_vip: bool, source: Source) -> Order {
        Order::new(user, is_vip, format!("text of {user}"), source)
    }

    fn users(queue: &Queue) -> Vec<i64> {
        queue.line().iter().map(|order| order.user).collect()
    }

    #[tokio::test]
    async fn vips_come_first_and_others_in_the_order_of_arrival() {
        let queue = Queue::new(10);
        for (user, is_vip) in [(1, false), (2, false), (3, true), (4, false), (5, true)] {
            assert_eq!(queue.put(order(user, is_vip, Source::Message)), Ok(()));
        }
        assert_eq!(users(&queue), [3, 5, 1, 2, 4]);
        queue.close();
        let mut served = Vec::new();
        while let Some(order) = queue.next().await {
            served.push(order.user);
        }
        assert_eq!(served, [3, 5, 1, 2, 4]);
    }

    #[test]
    fn one_user_cannot_fill_the_queue_and_nobody_can_overfill_it() {
        let queue = Queue::new(4);
        for _ in 0..MOST_OF_ONE {
            assert_eq!(queue.put(order(1, false, Source::Message)), Ok(()));
        }
        assert_eq!(queue.put(order(1, false, Source::Message)), Err(Refused::TooManyOfYours));
        assert_eq!(queue.put(order(2, false, Source::Message)), Ok(()));
        assert_eq!(queue.put(order(3, true, Source::Message)), Err(Refused::Full));
    }

    #[test]
    fn the_newest_inline_query_of_a_user_replaces_the_last_one() {
        let queue = Queue::new(10);
        for id in ["a", "b", "c", "d", "e"] {
            assert_eq!(queue.put(order(1, false, Source::Inline(id.to_owned()))), Ok(()));
        }
        assert_eq!(queue.put(order(1, false, Source::Message)), Ok(()));
        let sources: Vec<Source> = queue.line().iter().map(|order| order.source.clone()).collect();
        assert_eq!(sources, [Source::Inline("e".to_owned()), Source::Message]);
    }

    #[test]
    fn the_wait_grows_with_the_place_and_shrinks_with_desks() {
        let queue = Queue::new(10);
        assert_eq!(queue.wait_of(8, 4), Duration::from_secs(2));
        assert_eq!(queue.wait_of(9, 4), Duration::from_secs(3));
        (0..100).for_each(|_| queue.took(Duration::from_millis(80)));
        assert!(queue.wait_of(1, 1) < Duration::from_millis(100));
    }
}
