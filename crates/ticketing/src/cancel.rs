//! Cancelling a batch, and trying its failed tickets again.
//!
//! The store decides in one step; jobs and files follow in the background, because a large batch has many. A job whose ticket
//! is void ends by itself, and a pending ticket without a job gets one from the reconciler: a process that dies in between
//! leaves nothing wrong behind.

use std::time::Duration;

use futures::{StreamExt, stream};
use stampede_broker::kept;
use stampede_model::{Batch, BatchId, Ticket, TicketId, TicketStatus};
use stampede_store::{Cancelled, MadeTickets, TicketFilter};

use crate::ticketing::now;
use crate::{Error, Ticketing};

/// A request is answered when jobs and files are done with, or after this time.
const ANSWER_AFTER: Duration = Duration::from_secs(2);
/// Tickets read from the store at a time.
const PAGE: u32 = 1_000;
/// Jobs that are taken off the queue at a time.
const AT_ONCE: usize = 32;

impl Ticketing {
    /// Makes the tickets of a batch void that were never made, or all of them. `None`: there is no such batch.
    pub async fn cancel_batch(
        &self,
        id: BatchId,
        made: MadeTickets,
    ) -> Result<Option<Cancelled>, Error> {
        let Some(cancelled) = self.shared.store.cancel_batch(id, made, now()).await? else {
            return Ok(None);
        };
        self.shared.announcer.write_now(&cancelled.batch).await;
        let ticketing = self.clone();
        self.in_background(async move { ticketing.sweep(id, made).await }).await;
        Ok(Some(cancelled))
    }

    /// Makes the failed tickets of a batch pending and gives them jobs; returns the batch and how many they are. `None`: there
    /// is no such batch.
    pub async fn retry_batch(&self, id: BatchId) -> Result<Option<(Batch, u64)>, Error> {
        let Some((batch, retried)) = self.shared.store.retry_batch(id, now()).await? else {
            return Ok(None);
        };
        self.shared.announcer.write_now(&batch).await;
        if retried > 0 {
            let ticketing = self.clone();
            self.in_background(async move { ticketing.enqueue_batch(id).await }).await;
        }
        Ok(Some((batch, retried)))
    }

    /// Goes on in the background if it takes its time.
    async fn in_background(&self, work: impl Future<Output = Result<(), String>> + Send + 'static) {
        let task = self.shared.requests.spawn(kept(async move {
            if let Err(error) = work.await {
                tracing::warn!(error, "jobs of a batch are left as they are");
            }
        }));
        let _ = tokio::time::timeout(ANSWER_AFTER, task).await;
    }

    /// Takes the jobs of void tickets off the queue; with `Void`, deletes their PDFs, too.
    async fn sweep(&self, batch: BatchId, made: MadeTickets) -> Result<(), String> {
        let mut after = None;
        let stop = self.shared.requests.stop();
        while !stop.is_cancelled() {
            let page = self.page_of(batch, TicketStatus::Void, after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            let removing = stream::iter(page).for_each_concurrent(AT_ONCE, async |ticket| {
                if made == MadeTickets::Void {
                    // A file that stays is never served: its ticket is void.
                    let _ = self.shared.files.delete(&Ticket::pdf_path(ticket.id)).await;
                }
                self.remove_job(ticket.id).await;
            });
            removing.await;
        }
        Ok(())
    }

    /// Gives all pending tickets of a batch a job that have none.
    async fn enqueue_batch(&self, batch: BatchId) -> Result<(), String> {
        let mut after = None;
        loop {
            let page = self.page_of(batch, TicketStatus::Pending, after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            self.enqueue_missing(&page).await.map_err(|error| error.to_string())?;
        }
    }

    async fn page_of(
        &self,
        batch: BatchId,
        status: TicketStatus,
        after: Option<TicketId>,
    ) -> Result<Vec<Ticket>, String> {
        let filter =
            TicketFilter { batch: Some(batch), status: Some(status), ..TicketFilter::default() };
        let page = self.shared.store.tickets(&filter, after, PAGE).await;
        page.map_err(|error| error.to_string())
    }
}
