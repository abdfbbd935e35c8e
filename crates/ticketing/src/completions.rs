//! Group commits: tickets finished at the same time share one transaction (`groups.rs`).

use std::sync::Arc;

use stampede_model::BatchId;
use stampede_store::{Completion, Error, GroupCommit, Store};
use stampede_telemetry::Metrics;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::announce::Announcer;
use crate::groups::{MAX_GROUP, next_group};
use crate::tasks::Tasks;

/// A ticket whose PDF is in the files.
pub(crate) struct Finished {
    /// The record to write.
    pub(crate) completion: Completion,
    /// The ticket's batch.
    pub(crate) batch_id: BatchId,
    /// Address of the PDF, for the announcement.
    pub(crate) pdf_path: String,
}

/// What became of a finished ticket.
pub(crate) enum Recorded {
    /// The store has it.
    Now,
    /// The store refused it: the ticket was changed, withdrawn, deleted or completed meanwhile.
    Not,
}

struct Waiting {
    finished: Finished,
    done: oneshot::Sender<Result<Recorded, Arc<Error>>>,
}

/// Hands finished tickets to the committing task. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Completions {
    line: mpsc::Sender<Waiting>,
}

impl Completions {
    /// Starts the committing task.
    pub(crate) fn start(
        store: Store,
        announcer: Announcer,
        metrics: Metrics,
        tasks: &Tasks,
    ) -> Self {
        let (line, waiting) = mpsc::channel(MAX_GROUP);
        tasks.spawn(commit_groups(store, announcer, metrics, waiting, tasks.stop()));
        Self { line }
    }

    /// Returns when the ticket is recorded as completed, or why it could not be.
    pub(crate) async fn commit(&self, finished: Finished) -> Result<Recorded, Arc<Error>> {
        let (done, answer) = oneshot::channel();
        let gone = || Arc::new(Error::Unavailable("the committing task has ended".to_owned()));
        self.line.send(Waiting { finished, done }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn commit_groups(
    store: Store,
    announcer: Announcer,
    metrics: Metrics,
    mut line: mpsc::Receiver<Waiting>,
    stop: CancellationToken,
) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while next_group(&mut line, &mut group, &stop).await {
        let (finished, waiting): (Vec<Finished>, Vec<_>) =
            group.drain(..).map(|Waiting { finished, done }| (finished, done)).unzip();
        let completions: Vec<Completion> =
            finished.iter().map(|finished| finished.completion.clone()).collect();
        let result = store.complete_tickets(&completions).await.map_err(Arc::new);
        for (finished, done) in finished.iter().zip(waiting) {
            let recorded = |commit: &GroupCommit| {
                let found = commit.changed.binary_search(&finished.completion.ticket_id);
                found.map_or(Recorded::Not, |_| Recorded::Now)
            };
            // A job that does not wait any more has lost its lock; the record stands all the same.
            let _ = done.send(result.as_ref().map(recorded).map_err(Arc::clone));
        }
        if let Ok(commit) = &result {
            metrics.tickets_completed(commit.changed.len());
            announcer.tickets_completed(commit, &finished).await;
        }
    }
}
