//! Completed jobs go to Redis together: those that end while a call is on its way share the next one.
//! Alone, a job does not wait for others.
//!
//! What Redis was last told it may forget when it is killed. So the completions of the last seconds are
//! remembered here, and told again to a Redis that was restarted. (Retries and failures are not: a job
//! that Redis has running again runs again.)

mod recent;

use std::io;
use std::sync::Arc;

use futures::stream::{self, FuturesUnordered};
use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::recent::{REMEMBERED, Recent};
use super::{Handler, Shared};
use crate::scripts::{self, End, Finished, TakenBack};
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
    brought: mpsc::UnboundedReceiver<Waiting>,
    /// Taken from there, and not of the kind that went before.
    waiting: Vec<Waiting>,
}

impl Finisher {
    pub(super) fn new() -> (Self, Completed) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { waiting: sender }, Completed { brought: receiver, waiting: Vec::new() })
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
    /// Those that can go together with the one that has waited longest, `most` of them.
    async fn next(&mut self, most: usize) -> Option<Vec<Waiting>> {
        if self.waiting.is_empty() {
            self.waiting.push(self.brought.recv().await?);
        }
        // Those that an answer has just woken come at the same time, if they are let: otherwise the first of them
        // would go alone.
        tokio::task::yield_now().await;
        while let Ok(next) = self.brought.try_recv() {
            self.waiting.push(next);
        }
        let mut together: Vec<Waiting> = Vec::new();
        let others = std::mem::take(&mut self.waiting).into_iter().filter_map(|next| {
            let goes = together.first().is_none_or(|first| next.end.goes_with(&first.end));
            if !goes || together.len() == most {
                return Some(next);
            }
            together.push(next);
            None
        });
        self.waiting = others.collect();
        Some(together)
    }
}

/// Writes what is completed. Ends with `ended`.
pub(super) async fn finish<H: Handler>(
    shared: Arc<Shared<H>>,
    mut completed: Completed,
    ended: CancellationToken,
) {
    let broker = shared.queue.broker();
    let mut restarts = broker.restarts();
    let mut calls = FuturesUnordered::new();
    let mut recent = Recent::default();
    let mut retelling = retell(&shared, Vec::new());
    loop {
        // Some are on their way while the others run: with all of them in one call, we and Redis would take turns.
        let share = (*shared.slots.borrow() / CALLS).clamp(1, AT_ONCE);
        tokio::select! {
            Some(written) = calls.next() => recent.remember(written),
            Some(together) = completed.next(share), if calls.len() < CALLS => {
                calls.push(write(&shared, together));
            }
            () = restarts.next() => retelling = retell(&shared, recent.again()),
            Some(()) = retelling.next() => {}
            () = tokio::time::sleep(REMEMBERED / 3), if !recent.is_empty() => {}
            () = ended.cancelled() => return,
        }
        // While it is doubtful what Redis remembers, everything is remembered here.
        if broker.doubt().is_none() {
            recent.forget();
        }
    }
}

/// Answers those who wait; returns what is written now.
async fn write<H: Handler>(shared: &Shared<H>, mut together: Vec<Waiting>) -> Vec<End> {
    // A slot that was told to go does not wait any more; its job is handed back.
    together.retain(|waiting| !waiting.answer.is_closed());
    if together.is_empty() {
        return Vec::new();
    }
    // It may have become known after the slot has asked for the next job.
    if shared.quiet.is_cancelled() || shared.queue.broker().doubt().is_some() {
        together.iter_mut().for_each(|waiting| waiting.end.leave_next());
    }
    let (mut ends, waiting): (Vec<_>, Vec<_>) =
        together.into_iter().map(|Waiting { end, answer }| (end, answer)).unzip();
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    let answers = match scripts::move_to_completed(redis, keys, &ends, now_ms()).await {
        Ok(answers) => answers,
        Err(error) => {
            // Now, for the next call may go before any slot has heard of it.
            if error.is_outage() {
                shared.failed();
            }
            waiting.iter().map(|_| Err(error.for_another())).collect()
        }
    };
    let mut is_written = answers.iter().map(|answer| matches!(answer, Ok(Finished::Moved(_))));
    ends.retain(|_| is_written.next().unwrap_or(false));
    drop(is_written);
    for (waiting, answer) in waiting.into_iter().zip(answers) {
        let _ = waiting.send(answer);
    }
    ends
}

/// Completes jobs again that Redis has forgotten to be so.
fn retell<H: Handler>(
    shared: &Shared<H>,
    ends: Vec<End>,
) -> impl Stream<Item = ()> + Unpin + use<'_, H> {
    let each = stream::iter(ends).map(|end| complete_again(shared, end));
    Box::pin(each.buffer_unordered(AT_ONCE))
}

async fn complete_again<H: Handler>(shared: &Shared<H>, end: End) {
    let job = &end.run.job_id;
    if shared.held.holds(job) {
        // It was added anew and runs here.
        return;
    }
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    let lock_ms = shared.config.lock.as_millis() as u64;
    let again = async {
        if scripts::take_back(redis, keys, lock_ms, &end.run).await? == TakenBack::Ours {
            scripts::move_to_completed(redis, keys, std::slice::from_ref(&end), now_ms()).await?;
            tracing::info!(job, "completed again: Redis had forgotten it");
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = again.await {
        tracing::debug!(job, %error, "cannot see whether Redis has forgotten it");
    }
}
