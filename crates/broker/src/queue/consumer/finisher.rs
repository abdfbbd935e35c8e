//! Completed jobs are written together: those that end during a call share the next one. A single job does not
//! wait for others.
//!
//! A Redis that is killed may forget its last writes. So the completions of the last seconds are remembered here,
//! and written again to a Redis that was restarted. (Retries and failures are not: such a job runs again.)

mod recent;

use std::io;
use std::sync::Arc;

use futures::stream::{self, FuturesUnordered};
use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::recent::{REMEMBERED, Recent};
use super::Shared;
use crate::queue::scripts::{self, FinishReply, FinishRequest, TakenBack};
use crate::{Error, now_ms};

/// Jobs in one call: enough to share its costs, few enough to be answered in two or three milliseconds.
const AT_ONCE: usize = 50;
/// Calls at the same time: while Redis executes one, the next is being sent.
const CALLS: usize = 2;

/// A job that is to be completed, and the slot that waits for the answer.
struct Waiting {
    request: FinishRequest,
    answer: oneshot::Sender<Result<FinishReply, Error>>,
}

/// Takes completions from slots.
pub(super) struct Finisher {
    waiting: mpsc::UnboundedSender<Waiting>,
}

/// Completions to be written. A slot has one job at a time, so there are never more than slots.
pub(super) struct Completed {
    brought: mpsc::UnboundedReceiver<Waiting>,
    /// Received, but not sent with the call before, because it could not go with its jobs.
    waiting: Vec<Waiting>,
}

impl Finisher {
    pub(super) fn new() -> (Self, Completed) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { waiting: sender }, Completed { brought: receiver, waiting: Vec::new() })
    }

    /// Completes a job.
    pub(super) async fn complete(&self, request: FinishRequest) -> Result<FinishReply, Error> {
        let (answer, answered) = oneshot::channel();
        // When the consumer has ended, there is no answer; this counts as a lost one.
        let lost =
            || Error::from(redis::RedisError::from(io::Error::from(io::ErrorKind::BrokenPipe)));
        self.waiting.send(Waiting { request, answer }).map_err(|_| lost())?;
        answered.await.unwrap_or_else(|_| Err(lost()))
    }
}

impl Completed {
    /// The completion that has waited longest, and up to `most` that can go with it.
    async fn next(&mut self, most: usize) -> Option<Vec<Waiting>> {
        if self.waiting.is_empty() {
            self.waiting.push(self.brought.recv().await?);
        }
        // Slots that an answer has just woken need a moment to arrive: otherwise the first of them would go alone.
        tokio::task::yield_now().await;
        while let Ok(next) = self.brought.try_recv() {
            self.waiting.push(next);
        }
        let mut together: Vec<Waiting> = Vec::new();
        let others = std::mem::take(&mut self.waiting).into_iter().filter_map(|next| {
            let goes = together.first().is_none_or(|first| next.request.goes_with(&first.request));
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

/// Writes completions until `ended`.
pub(super) async fn finish(
    shared: Arc<Shared>,
    mut completed: Completed,
    ended: CancellationToken,
) {
    let broker = shared.queue.broker();
    let mut restarts = broker.restarts();
    let mut calls = FuturesUnordered::new();
    let mut recent = Recent::default();
    let mut retelling = retell(&shared, Vec::new());
    loop {
        // Half of the slots in one call: with all of them, this process and Redis would wait for each other in turns.
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
        // While it is doubtful what Redis remembers, nothing is forgotten here.
        if broker.doubt().is_none() {
            recent.forget();
        }
    }
}

/// Writes completions and answers their slots; returns those that are written.
async fn write(shared: &Shared, mut together: Vec<Waiting>) -> Vec<FinishRequest> {
    // A slot that was stopped does not wait any more; its job is handed back.
    together.retain(|waiting| !waiting.answer.is_closed());
    if together.is_empty() {
        return Vec::new();
    }
    // This may have changed since the slot asked for the next job.
    if shared.quiet.is_cancelled() || shared.queue.broker().doubt().is_some() {
        together.iter_mut().for_each(|waiting| waiting.request.leave_next());
    }
    let (mut requests, waiting): (Vec<_>, Vec<_>) =
        together.into_iter().map(|Waiting { request, answer }| (request, answer)).unzip();
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    let answers = match scripts::move_to_completed(redis, keys, &requests, now_ms()).await {
        Ok(answers) => answers,
        Err(error) => {
            // Noted now, because the next call may be sent before any slot has its answer.
            if error.is_outage() {
                shared.failed();
            }
            waiting.iter().map(|_| Err(error.for_another())).collect()
        }
    };
    let mut is_written = answers.iter().map(|answer| matches!(answer, Ok(FinishReply::Moved(_))));
    requests.retain(|_| is_written.next().unwrap_or(false));
    drop(is_written);
    for (waiting, answer) in waiting.into_iter().zip(answers) {
        let _ = waiting.send(answer);
    }
    requests
}

/// Completes jobs again whose completion Redis has forgotten.
fn retell(
    shared: &Shared,
    requests: Vec<FinishRequest>,
) -> impl Stream<Item = ()> + Unpin + use<'_> {
    let each = stream::iter(requests).map(|request| complete_again(shared, request));
    Box::pin(each.buffer_unordered(AT_ONCE))
}

async fn complete_again(shared: &Shared, request: FinishRequest) {
    let job = &request.run.job_id;
    if shared.held.holds(job) {
        // The job was added anew and runs here.
        return;
    }
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    let lock_ms = shared.config.lock.as_millis() as u64;
    let again = async {
        if scripts::take_back(redis, keys, lock_ms, &request.run).await? == TakenBack::Ours {
            scripts::move_to_completed(redis, keys, std::slice::from_ref(&request), now_ms())
                .await?;
            tracing::info!(job, "completed a job again: Redis had forgotten it");
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = again.await {
        tracing::debug!(job, %error, "cannot see whether Redis has forgotten a completion");
    }
}
