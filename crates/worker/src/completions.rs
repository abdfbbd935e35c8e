//! Group commit: tickets finished at the same time share one transaction.
//!
//! There is no timer. While one transaction runs, the tickets that end meanwhile line up, and the
//! next transaction takes them all: a quiet worker commits at once, a busy one in large groups.

use std::sync::Arc;

use stampede_model::BatchId;
use stampede_store::{Completion, Error, GroupCommit, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::announcer::Announcer;

/// Most tickets in one transaction.
const MAX_GROUP: usize = 256;

/// A ticket whose PDF is in the files.
pub(crate) struct Finished {
    /// What to record.
    pub(crate) completion: Completion,
    /// Its batch.
    pub(crate) batch_id: BatchId,
    /// Where the PDF is, for those who are told.
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
    /// Starts the committing task; it ends when the last clone of the handle is dropped.
    pub(crate) fn start(store: Store, announcer: Announcer) -> (Self, JoinHandle<()>) {
        let (line, waiting) = mpsc::channel(MAX_GROUP);
        (Self { line }, tokio::spawn(commit_groups(store, announcer, waiting)))
    }

    /// Returns when the ticket is recorded as completed, or why it could not be.
    pub(crate) async fn commit(&self, finished: Finished) -> Result<Recorded, Arc<Error>> {
        let (done, answer) = oneshot::channel();
        let gone = || Arc::new(Error::Unavailable("the committing task has ended".to_owned()));
        self.line.send(Waiting { finished, done }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn commit_groups(store: Store, announcer: Announcer, mut line: mpsc::Receiver<Waiting>) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while line.recv_many(&mut group, MAX_GROUP).await > 0 {
        let (finished, waiting): (Vec<Finished>, Vec<_>) =
            group.drain(..).map(|Waiting { finished, done }| (finished, done)).unzip();
        let completions: Vec<Completion> =
            finished.iter().map(|finished| finished.completion.clone()).collect();
        let result = store.complete_tickets(&completions).await.map_err(Arc::new);
        for (finished, done) in finished.iter().zip(waiting) {
            let recorded = |outcome: &GroupCommit| {
                let found = outcome.changed.binary_search(&finished.completion.ticket_id);
                found.map_or(Recorded::Not, |_| Recorded::Now)
            };
            // Whoever does not wait any more has lost the job's lock; the record stands all the same.
            let _ = done.send(result.as_ref().map(recorded).map_err(Arc::clone));
        }
        if let Ok(outcome) = &result {
            announcer.tickets_completed(outcome, &finished).await;
        }
    }
}
