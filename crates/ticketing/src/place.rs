//! Placing an order: it becomes a batch of tickets in the store, and one job for each ticket on the queue.
//!
//! The order is accepted when its transaction is committed. Jobs that do not reach the queue, because Redis
//! is away or this process dies, are added by the reconciler.

use std::sync::Arc;
use std::time::Duration;

use stampede_broker::JobSpec;
use stampede_model::{
    Batch, BatchId, Event, Holder, Idempotency, Money, Order, Ticket, TicketId, TicketStatus,
};
use stampede_store::{AuditEntry, AuditOutcome, Placed};

use crate::jobs::generate_ticket::GenerateTicket;
use crate::preflight::{Checked, Strictness, Warnings};
use crate::test_hooks;
use crate::ticketing::now;
use crate::{Error, Ticketing};

/// An order is answered when its jobs are on the queue, or after this time.
const ANSWER_AFTER: Duration = Duration::from_millis(250);

/// An order whose fields were checked.
#[derive(Debug, Clone)]
pub struct OrderRequest {
    /// The event. The order and its tickets belong to its owner, also if an administrator places the order.
    pub event: Event,
    /// One line for each ticket.
    pub lines: Vec<OrderLine>,
    /// Marks an order that the client may send twice.
    pub idempotency: Option<Idempotency>,
    /// Whether warnings refuse the order.
    pub strictness: Strictness,
}

/// One ticket of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderLine {
    /// The holder of the ticket.
    pub holder: Holder,
    /// The price of the ticket.
    pub price: Option<Money>,
}

/// What became of an order.
#[derive(Debug, Clone)]
pub enum Placement {
    /// It is accepted, now or by an earlier request with the same idempotency key.
    Accepted {
        /// Its batch.
        batch_id: BatchId,
        /// Its tickets, in the order of the request.
        tickets: Vec<TicketId>,
        /// What would not come out well.
        warnings: Warnings,
    },
    /// It is strict, and some tickets would not come out well. Nothing was written.
    RefusedByWarnings(Warnings),
    /// Another order was placed with the same idempotency key. Nothing was written.
    KeyOfAnotherOrder,
    /// The event is gone. Nothing was written.
    NoSuchEvent,
}

impl Ticketing {
    /// Places an order. A caller that stops waiting does not separate the commit from the enqueueing.
    pub async fn place(&self, request: OrderRequest) -> Result<Placement, Error> {
        self.place_noted(request, None).await
    }

    /// Places an order, and writes its entry of the audit log in the order's transaction.
    pub async fn place_noted(
        &self,
        request: OrderRequest,
        entry: Option<AuditEntry>,
    ) -> Result<Placement, Error> {
        let OrderRequest { event, lines, idempotency, strictness } = request;
        let order = Arc::new(assemble(&event, lines, idempotency));
        let warnings = match self.preflight(event, &order, strictness).await? {
            Checked::Accepted(warnings) => warnings,
            Checked::Refused(warnings) => return Ok(Placement::RefusedByWarnings(warnings)),
        };
        let (ticketing, order) = (self.clone(), Arc::unwrap_or_clone(order));
        let placing = async move { ticketing.commit_and_enqueue(order, warnings, entry).await };
        self.shared.requests.spawn(placing).await.map_err(Error::internal)?
    }

    async fn commit_and_enqueue(
        &self,
        order: Order,
        warnings: Warnings,
        entry: Option<AuditEntry>,
    ) -> Result<Placement, Error> {
        let entry = entry.map(|entry| of_order(entry, &order, order.tickets.len()));
        match self.shared.store.place_noted_order(&order, entry.as_ref()).await? {
            Placed::New(batch) => {
                let tickets: Vec<TicketId> = order.tickets.iter().map(|ticket| ticket.id).collect();
                self.enqueue_order(batch, order.tickets).await;
                Ok(Placement::Accepted { batch_id: order.batch_id, tickets, warnings })
            }
            // A second click, or a retry after a lost answer: the answer is that of the first request.
            Placed::Existing(batch) => {
                let tickets = self.shared.store.batch_ticket_ids(batch.id).await?;
                Ok(Placement::Accepted { batch_id: batch.id, tickets, warnings })
            }
            Placed::OtherRequest => Ok(Placement::KeyOfAnotherOrder),
            Placed::NoSuchEvent => Ok(Placement::NoSuchEvent),
        }
    }

    /// Enqueues the jobs of a committed order. A large order goes on while its client has the answer.
    async fn enqueue_order(&self, batch: Batch, tickets: Vec<Ticket>) {
        let ticketing = self.clone();
        let task = self.shared.requests.spawn(async move {
            test_hooks::hang_at("order-committed").await;
            if let Err(error) = ticketing.try_enqueue_order(&batch, &tickets).await {
                tracing::warn!(%error, batch = %batch.id, "order kept, but not enqueued; the reconciler will");
            }
        });
        // Not in time is not an error, and a panic has been reported already.
        let _ = tokio::time::timeout(ANSWER_AFTER, task).await;
    }

    async fn try_enqueue_order(
        &self,
        batch: &Batch,
        tickets: &[Ticket],
    ) -> Result<(), stampede_broker::Error> {
        let ids: Vec<TicketId> = tickets.iter().map(|ticket| ticket.id).collect();
        let announcer = &self.shared.announcer;
        // First, so that readers outside find the batch when they hear of its first ticket.
        announcer.mirror().put(batch, &ids).await?;
        let jobs: Vec<JobSpec> = tickets.iter().map(GenerateTicket::job).collect();
        self.shared.queue.enqueue(&jobs).await?;
        announcer.batch_created(batch).await;
        Ok(())
    }
}

/// The entry of an order that is accepted.
pub(crate) fn of_order(mut entry: AuditEntry, order: &Order, tickets: usize) -> AuditEntry {
    let batch = order.batch_id.to_string();
    let after = format!("{{\"id\":\"{batch}\",\"tickets\":{tickets}}}");
    entry.record = Some(batch);
    entry.outcome = entry.outcome.map(|outcome| AuditOutcome { after: Some(after), ..outcome });
    entry
}

fn assemble(event: &Event, lines: Vec<OrderLine>, idempotency: Option<Idempotency>) -> Order {
    let (now, owner) = (now(), event.owner.clone());
    let batch_id = BatchId::generate();
    let tickets = lines
        .into_iter()
        .zip(1..)
        .map(|(line, index)| Ticket {
            id: TicketId::generate(),
            event_id: event.id,
            batch_id,
            owner: owner.clone(),
            index,
            serial: 0,
            generation: 1,
            signing_key: None,
            holder: line.holder,
            price: line.price,
            status: TicketStatus::Pending,
            error: None,
            pdf: None,
            processed_by: None,
            processed_at: None,
            created_at: now,
            updated_at: now,
        })
        .collect();
    Order { batch_id, event_id: event.id, owner, tickets, idempotency, created_at: now }
}
