//! Completed jobs go to Redis together: those that end while a call is on its way share the next one.
//! Alone, a job does not wait for others.
//!
//! What Redis was last told it may forget when it is killed. So the ends of the last seconds are
//! remembered here, and told again to a Redis that was restarted.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
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
/// For how long ends are remembered: Redis writes what it has heard after two seconds at the latest, and
/// every second on a disk that is not busy.
const REMEMBERED: Duration = Duration::from_secs(3);
/// How many ends are remembered.
const MOST_REMEMBERED: usize = 10_000;

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
    let mut recent = Recent::default();
    let broker = shared.queue.broker();
    let mut restarts = broker.restarts();
    loop {
        tokio::select! {
            Some(written) = calls.next() => {
                // While it is doubtful what Redis remembers, everything is remembered here.
                recent.remember(written, broker.doubt().is_none());
            }
            Some(together) = completed.next(), if calls.len() < CALLS => {
                calls.push(write(&shared, together));
            }
            () = restarts.next() => {
                for ends in recent.take() {
                    join_all(ends.into_iter().map(|end| complete_again(&shared, end))).await;
                }
            }
            () = ended.cancelled() => return,
        }
    }
}

/// Answers those who wait; returns what is written now.
async fn write<H: Handler>(shared: &Shared<H>, together: Vec<Waiting>) -> Vec<End> {
    let (mut ends, waiting): (Vec<_>, Vec<_>) =
        together.into_iter().map(|Waiting { end, answer }| (end, answer)).unzip();
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    let answers = match scripts::move_to_completed(redis, keys, &ends, now_ms()).await {
        Ok(answers) => answers,
        Err(error) => waiting.iter().map(|_| Err(error.for_another())).collect(),
    };
    let mut is_written = answers.iter().map(|answer| matches!(answer, Ok(Finished::Moved(_))));
    ends.retain(|_| is_written.next().unwrap_or(false));
    drop(is_written);
    for (waiting, answer) in waiting.into_iter().zip(answers) {
        // A slot that was told to go does not wait any more; its job is handed back.
        let _ = waiting.send(answer);
    }
    ends
}

/// Completes a job again, if Redis has forgotten that it was.
async fn complete_again<H: Handler>(shared: &Shared<H>, end: End) {
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    let lock_ms = shared.config.lock.as_millis() as u64;
    let job = end.run.job_id.clone();
    if shared.held.holds(&job) {
        // It was added anew and runs here.
        return;
    }
    let again = async {
        if scripts::take_back(redis, keys, lock_ms, &end.run).await? {
            scripts::move_to_completed(redis, keys, &[end.for_itself()], now_ms()).await?;
            tracing::info!(job, "completed again: Redis had forgotten it");
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = again.await {
        tracing::debug!(job, %error, "cannot see whether Redis has forgotten it");
    }
}

/// The ends of the last seconds.
#[derive(Default)]
struct Recent {
    ends: VecDeque<(Instant, End)>,
}

impl Recent {
    fn remember(&mut self, ends: Vec<End>, may_forget: bool) {
        let now = Instant::now();
        self.ends.extend(ends.into_iter().map(|end| (now, end)));
        let old = |(then, _): &mut (Instant, End)| now.duration_since(*then) > REMEMBERED;
        while may_forget && self.ends.pop_front_if(old).is_some() {}
        let excess = self.ends.len().saturating_sub(MOST_REMEMBERED);
        self.ends.drain(..excess);
    }

    /// All of them, in portions.
    fn take(&mut self) -> Vec<Vec<End>> {
        let mut ends = std::mem::take(&mut self.ends).into_iter().map(|(_, end)| end).peekable();
        let mut portions = Vec::new();
        while ends.peek().is_some() {
            portions.push(ends.by_ref().take(AT_ONCE).collect());
        }
        portions
    }
}
