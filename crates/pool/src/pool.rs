//! [`Pool`]: a bounded pool of threads.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::shared::Shared;
use crate::ticket::{Batch, Ticket};
use crate::{NoAnswer, Priority, Refused, Stats, threads};

/// How large a pool is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The name of its threads, at most 15 bytes.
    pub name: &'static str,
    /// Threads; at least one is started.
    pub threads: usize,
    /// Tasks that may wait while all threads are busy. 0: a task is accepted only if a thread is free.
    pub queue: usize,
    /// A task that has waited so long rises by one priority. Zero: tasks do not rise.
    pub ageing: Duration,
    /// Stack of a thread, in bytes.
    pub stack: usize,
}

impl Default for Config {
    /// A thread for each core, 100 tasks that wait, a step every two seconds.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { name: "pool", threads, queue: 100, ageing: Duration::from_secs(2), stack: 2 << 20 }
    }
}

/// How many threads still ran a task when a shutdown's deadline came. They end with their tasks, or with the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Left(pub usize);

/// A bounded pool of threads, each with a state of type `S`. Cheap to clone; all clones are the same. When the last is dropped,
/// the pool is closed.
pub struct Pool<S: 'static> {
    owner: Arc<Owner<S>>,
}

/// Closes the pool when it is dropped. Threads do not hold it.
struct Owner<S: 'static> {
    shared: Arc<Shared<S>>,
}

impl<S: 'static> Drop for Owner<S> {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl<S: 'static> Clone for Pool<S> {
    fn clone(&self) -> Self {
        Self { owner: self.owner.clone() }
    }
}

impl<S: 'static> std::fmt::Debug for Pool<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.stats()).finish()
    }
}

impl<S: 'static> Pool<S> {
    /// Starts the threads. Each makes its state with `init` before it takes a task, and makes a new state after a task that
    /// panicked.
    pub fn start(
        config: &Config,
        init: impl Fn() -> S + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let threads = config.threads.max(1);
        let shared = Arc::new(Shared::new(threads, config.queue, config.ageing));
        let pool = Self { owner: Arc::new(Owner { shared: shared.clone() }) };
        let init: threads::Init<S> = Arc::new(init);
        for started in 0..threads {
            let (shared, init) = (shared.clone(), init.clone());
            let thread = std::thread::Builder::new()
                .name(config.name.to_owned())
                .stack_size(config.stack)
                .spawn(move || threads::serve(&shared, &init));
            if let Err(error) = thread {
                pool.owner.shared.gone(threads - started);
                return Err(error);
            }
        }
        Ok(pool)
    }

    /// Waits until every thread has made its state. The error names a panic of `init`.
    pub async fn ready(&self) -> Result<(), NoAnswer> {
        self.owner.shared.ready().await.unwrap_or(Err(NoAnswer::Closed))
    }

    /// Accepts a task, or refuses it at once.
    pub fn submit<T, F>(&self, priority: Priority, task: F) -> Result<Ticket<T>, Refused>
    where
        T: Send + 'static,
        F: FnOnce(&mut S) -> T + Send + 'static,
    {
        let mut tickets = self.owner.shared.submit(priority, vec![task])?;
        tickets.pop().ok_or(Refused::Closed)
    }

    /// Accepts all tasks if there is room for all, or else none.
    pub fn submit_batch<T, F>(&self, priority: Priority, tasks: Vec<F>) -> Result<Batch<T>, Refused>
    where
        T: Send + 'static,
        F: FnOnce(&mut S) -> T + Send + 'static,
    {
        Ok(Batch { tickets: self.owner.shared.submit(priority, tasks)? })
    }

    /// Whether a thread is free that no waiting task will take.
    pub fn is_idle(&self) -> bool {
        self.owner.shared.is_idle()
    }

    /// Counts and durations at this moment.
    pub fn stats(&self) -> Stats {
        self.owner.shared.stats()
    }

    /// Accepts no more tasks. Those that wait are answered with [`NoAnswer::Closed`]; those that run go on. Idempotent.
    pub fn close(&self) {
        self.owner.shared.close();
    }

    /// Closes the pool and waits until its threads have ended, at most for so long. Blocks; idempotent.
    pub fn shutdown(&self, patience: Duration) -> Left {
        self.close();
        Left(self.owner.shared.join(Instant::now() + patience))
    }
}
