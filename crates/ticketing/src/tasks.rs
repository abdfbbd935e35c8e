//! Background tasks with an owner who waits for them at the end.

use std::future::Future;

use stampede_broker::kept;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A group of tasks that ends as a whole.
#[derive(Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts a task, which works for the request of the caller, if there is one. Dropping the handle does not end it.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn(kept(task))
    }

    /// Is cancelled when the tasks should end.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Asks all tasks to end, and waits until they have.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test]
    async fn the_end_waits_for_every_task() {
        let (tasks, ended) = (Tasks::default(), Arc::new(AtomicBool::new(false)));
        let (stop, done) = (tasks.stop(), ended.clone());
        drop(tasks.spawn(async move {
            stop.cancelled().await;
            tokio::task::yield_now().await;
            done.store(true, Ordering::SeqCst);
        }));
        tasks.end().await;
        assert!(ended.load(Ordering::SeqCst));
    }
}
