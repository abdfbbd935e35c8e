//! Completed jobs go to Redis together: those that end while a call is on its way share the next one.
//! Alone, a job does not wait for others.

use std::io;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Handler, Shared};
use crate::scripts::{self, End, Finished};
use crate::{Error, now_ms};

/// Jobs in one call: enough to share its costs, few enough to be answered in two or three milliseconds.
const AT_ONCE: usize = 50;
/// Calls on their way: while Redis works on one, the next is being written.
const CALLS: usize = 2;

/// A job that is to be completed, and who waits for that.
struct Waiting {
    end: End,
    answer: oneshot::Sender<Result<Finished, Error>>,
}

/// Where slots bring what is to be completed.
pub(super) struct Finisher {
    waiting: mpsc::UnboundedSender<Waiting>,
}

/// What they have brought. A slot brings one job at a time, so there are never more than slots.
pub(super) struct Completed {
    waiting: mpsc::UnboundedReceiver<Waiting>,
    /// Taken from there, and of another kind than what was before it.
    held_back: Option<Waiting>,
}

impl Finisher {
    pub(super) fn new() -> (Self, Completed) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { waiting: sender }, Completed { waiting: receiver, held_back: None })
    }

    /// Completes a job.
    pub(super) async fn complete(&self, end: End) -> Result<Finished, Error> {
        let (answer, answered) = oneshot::channel();
        // Nobody answers at the very end, when the consumer goes; then it is like an answer lost.
        let lost =
            || Error::from(redis::RedisError::from(io::Error::from(io::ErrorKind::BrokenPipe)));
        self.waiting.send(Waiting { end, answer }).map_err(|_| lost())?;
        answered.await.unwrap_or_else(|_| Err(lost()))
    }
}

impl Completed {
    /// Those that can go together, as many as there are.
    async fn next(&mut self) -> Option<Vec<Waiting>> {
        let first = match self.held_back.take() {
            Some(held_back) => held_back,
            None => self.waiting.recv().await?,
        };
        let mut together = vec![first];
        while together.len() < AT_ONCE
            && let Ok(next) = self.waiting.try_recv()
        {
            if !next.end.goes_with(&together[0].end) {
                self.held_back = Some(next);
                break;
            }
            together.push(next);
        }
        Some(together)
    }
}

/// Writes what is completed. Ends with `ended`.
pub(super) async fn finish<H: Handler>(
    shared: Arc<Shared<H>>,
    mut completed: Completed,
    ended: CancellationToken,
) {
    let mut calls = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(()) = calls.next() => {}
            Some(together) = completed.next(), if calls.len() < CALLS => {
                calls.push(write(&shared, together));
            }
            () = ended.cancelled() => return,
        }
    }
}

async fn write<H: Handler>(shared: &Shared<H>, together: Vec<Waiting>) {
    let (ends, waiting): (Vec<_>, Vec<_>) =
        together.into_iter().map(|Waiting { end, answer }| (end, answer)).unzip();
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    let answers = match scripts::move_to_completed(redis, keys, &ends, now_ms()).await {
        Ok(answers) => answers,
        Err(error) => waiting.iter().map(|_| Err(error.for_another())).collect(),
    };
    for (waiting, answer) in waiting.into_iter().zip(answers) {
        // A slot that was told to go does not wait any more; its job is handed back.
        let _ = waiting.send(answer);
    }
}
