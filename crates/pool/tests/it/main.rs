//! The pool and its results, through their public faces. Tests wait for signals of tasks, never for time.

#![allow(clippy::unwrap_used)]

mod admission;
mod failures;
mod order;
mod results;
mod shutdown;
mod warm_up;

use std::sync::mpsc;
use std::time::Duration;

use stampede_pool::{Config, Pool, Priority, Ticket};

/// A pool whose tasks do not rise, ready.
async fn pool(threads: usize, queue: usize) -> Pool<()> {
    let pool = Pool::start(&config(threads, queue), || ()).unwrap();
    pool.ready().await.unwrap();
    pool
}

fn config(threads: usize, queue: usize) -> Config {
    Config { name: "test", threads, queue, ageing: Duration::ZERO, ..Config::default() }
}

/// A task that keeps a thread busy until it is told to end.
struct Held {
    release: mpsc::Sender<()>,
    ticket: Ticket<()>,
}

impl Held {
    /// Returns when the task runs.
    fn start<S>(pool: &Pool<S>) -> Self {
        let (started, running) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let task = move |_: &mut S| {
            started.send(()).unwrap();
            // It also ends when its test has gone.
            let _ = released.recv();
        };
        let ticket = pool.submit(Priority::Normal, task).unwrap();
        running.recv().unwrap();
        Self { release, ticket }
    }

    async fn end(self) {
        self.release.send(()).unwrap();
        self.ticket.await.unwrap();
    }
}
