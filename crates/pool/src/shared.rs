//! The state that callers and threads share.
//!
//! Every thread is either free (it waits for a task), busy (it runs one), or warming up. A task is accepted if no more tasks
//! wait than there are free threads and places in the queue: a task waits in the queue for a moment even if a thread is free.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::queue::{Place, Priority, Queue, Waiting};
use crate::task::{Closure, Task};
use crate::ticket::{Ticket, Withdraw};
use crate::timing::Durations;
use crate::{NoAnswer, Refused, Stats};

/// The shortest and the longest time after which a refused caller is asked to try again.
const SOONEST: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(30);

type Waiter = oneshot::Sender<Result<(), NoAnswer>>;

/// A task of a pool whose threads have a state of type `S`.
pub(crate) type AnyTask<S> = Box<dyn Task<S>>;

/// What callers and threads share.
pub(crate) struct Shared<S> {
    /// How many threads there are.
    threads: usize,
    /// How many tasks may wait while no thread is free.
    places: usize,
    inner: Mutex<Inner<S>>,
    /// A task waits, or the pool is closed.
    work: Condvar,
    /// The last thread has ended.
    ended: Condvar,
}

struct Inner<S> {
    queue: Queue<AnyTask<S>>,
    free: usize,
    busy: usize,
    alive: usize,
    /// Threads whose first warm-up has not ended.
    cold: usize,
    /// Why the last warm-up failed; `None` if it succeeded.
    unready: Option<String>,
    /// Callers that wait until all threads are warm.
    waiters: Vec<Waiter>,
    is_closed: bool,
    completed: u64,
    failed: u64,
    refused: u64,
    wait: Durations,
    run: Durations,
}

impl<S: 'static> Shared<S> {
    pub(crate) fn new(threads: usize, places: usize, step: Duration) -> Self {
        let inner = Inner {
            queue: Queue::new(step),
            free: 0,
            busy: 0,
            alive: threads,
            cold: threads,
            unready: None,
            waiters: Vec::new(),
            is_closed: false,
            completed: 0,
            failed: 0,
            refused: 0,
            wait: Durations::default(),
            run: Durations::default(),
        };
        let (work, ended) = (Condvar::new(), Condvar::new());
        Self { threads, places, inner: Mutex::new(inner), work, ended }
    }

    /// Accepts all tasks or none.
    pub(crate) fn submit<T, F>(
        self: &Arc<Self>,
        priority: Priority,
        tasks: Vec<F>,
    ) -> Result<Vec<Ticket<T>>, Refused>
    where
        T: Send + 'static,
        F: FnOnce(&mut S) -> T + Send + 'static,
    {
        let count = tasks.len();
        let mut inner = self.inner.lock();
        if let Err(refused) = self.admit(&inner, count) {
            if matches!(refused, Refused::Full { .. }) {
                inner.refused += count as u64;
            }
            return Err(refused);
        }
        let (now, mut tickets) = (Instant::now(), Vec::with_capacity(count));
        for work in tasks {
            let (answer, receiver) = oneshot::channel();
            let place = inner.queue.push(priority, Box::new(Closure { work, answer }), now);
            tickets.push(Ticket::new(receiver, self.clone(), place));
        }
        drop(inner);
        match count {
            1 => drop(self.work.notify_one()),
            _ => drop(self.work.notify_all()),
        }
        Ok(tickets)
    }

    fn admit(&self, inner: &Inner<S>, count: usize) -> Result<(), Refused> {
        if inner.is_closed {
            return Err(Refused::Closed);
        }
        let most = self.places + self.threads;
        if count > most {
            return Err(Refused::TooMany { most });
        }
        let queued = inner.queue.len();
        if queued + count > self.places + inner.free {
            let retry_after = retry_after(queued + inner.busy, self.threads, inner.run.mean());
            return Err(Refused::Full { queued, retry_after });
        }
        Ok(())
    }

    /// The next task for a thread, which is free until there is one; `None` when the pool is closed.
    pub(crate) fn next(&self) -> Option<AnyTask<S>> {
        let mut inner = self.inner.lock();
        loop {
            if inner.is_closed {
                return None;
            }
            let now = Instant::now();
            if let Some(Waiting { since, task, .. }) = inner.queue.pop(now) {
                inner.wait.record(now.duration_since(since));
                inner.free -= 1;
                inner.busy += 1;
                return Some(task);
            }
            self.work.wait(&mut inner);
        }
    }

    /// Counts a task that has ended. Its thread is free at once, unless it has to warm up.
    pub(crate) fn ran(&self, took: Duration, failed: bool) {
        let mut inner = self.inner.lock();
        inner.busy -= 1;
        match failed {
            true => inner.failed += 1,
            false => {
                inner.completed += 1;
                inner.free += 1;
            }
        }
        inner.run.record(took);
    }

    /// Notes how a warm-up ended. The thread is free: a thread that failed answers its next task with the reason.
    pub(crate) fn warmed(&self, is_first: bool, failure: Option<String>) {
        let mut inner = self.inner.lock();
        inner.free += 1;
        inner.cold -= usize::from(is_first);
        if failure.is_some() || !is_first {
            inner.unready = failure;
        }
        if inner.cold == 0 {
            let result = inner.ready();
            for waiter in inner.waiters.drain(..) {
                // A caller that has gone need not be told.
                let _ = waiter.send(result.clone());
            }
        }
    }

    /// Resolves when every thread has ended its first warm-up.
    pub(crate) fn ready(&self) -> oneshot::Receiver<Result<(), NoAnswer>> {
        let (waiter, ready) = oneshot::channel();
        let mut inner = self.inner.lock();
        if inner.is_closed || inner.cold == 0 {
            let _ = waiter.send(inner.ready());
        } else {
            inner.waiters.push(waiter);
        }
        ready
    }

    /// A thread has ended.
    pub(crate) fn gone(&self, threads: usize) {
        let mut inner = self.inner.lock();
        inner.alive -= threads;
        if inner.alive == 0 {
            self.ended.notify_all();
        }
    }

    /// Accepts no more tasks, and answers those that wait.
    pub(crate) fn close(&self) {
        let (waiting, waiters) = {
            let mut inner = self.inner.lock();
            inner.is_closed = true;
            (inner.queue.drain(), std::mem::take(&mut inner.waiters))
        };
        self.work.notify_all();
        for task in waiting {
            task.refuse(NoAnswer::Closed);
        }
        for waiter in waiters {
            let _ = waiter.send(Err(NoAnswer::Closed));
        }
    }

    /// Waits for the end of all threads. Returns how many are left.
    pub(crate) fn join(&self, deadline: Instant) -> usize {
        let mut inner = self.inner.lock();
        while inner.alive > 0 && !self.ended.wait_until(&mut inner, deadline).timed_out() {}
        inner.alive
    }

    pub(crate) fn stats(&self) -> Stats {
        let inner = self.inner.lock();
        Stats {
            total_workers: self.threads,
            busy_workers: inner.busy,
            idle_workers: self.threads - inner.busy,
            queue_size: inner.queue.len(),
            tasks_completed: inner.completed,
            tasks_failed: inner.failed,
            tasks_refused: inner.refused,
            queue_limit: self.places,
            wait: inner.wait.timing(),
            run: inner.run.timing(),
        }
    }

    /// Whether a thread is free that no waiting task will take.
    pub(crate) fn is_idle(&self) -> bool {
        let inner = self.inner.lock();
        !inner.is_closed && inner.free > inner.queue.len()
    }
}

impl<S> Inner<S> {
    fn ready(&self) -> Result<(), NoAnswer> {
        if self.is_closed {
            return Err(NoAnswer::Closed);
        }
        self.unready.clone().map_or(Ok(()), |reason| Err(NoAnswer::NotReady(reason)))
    }
}

impl<S: 'static> Withdraw for Shared<S> {
    fn withdraw(&self, place: Place) {
        let task = self.inner.lock().queue.remove(place);
        // Outside the lock: whatever the task holds is dropped here.
        drop(task);
    }
}

/// When so many tasks are likely to have ended.
fn retry_after(ahead: usize, threads: usize, mean: Duration) -> Duration {
    let rounds = ahead.div_ceil(threads.max(1));
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    mean.saturating_mul(rounds).clamp(SOONEST, LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_caller_is_told_when_the_queue_is_likely_to_be_empty() {
        let ms = Duration::from_millis;
        assert_eq!(retry_after(0, 2, ms(6)), SOONEST);
        assert_eq!(retry_after(100, 2, ms(6)), SOONEST);
        assert_eq!(retry_after(101, 2, ms(100)), ms(5_100));
        assert_eq!(retry_after(100, 2, ms(4_000)), LATEST);
        assert_eq!(retry_after(usize::MAX, 0, Duration::MAX), LATEST);
    }
}
