//! Group reads: tickets wanted at the same time share one query (`groups.rs`).

use std::collections::HashMap;
use std::sync::Arc;

use stampede_model::{Event, Ticket, TicketId};
use stampede_store::{Error, Store};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::groups::{MAX_GROUP, next_group};
use crate::tasks::Tasks;

type Row = Result<Option<(Ticket, Event)>, Arc<Error>>;

struct Request {
    ticket: TicketId,
    answer: oneshot::Sender<Row>,
}

/// Hands requests to the reading task. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TicketReader {
    line: mpsc::Sender<Request>,
}

impl TicketReader {
    /// Starts the reading task.
    pub(crate) fn start(store: Store, tasks: &Tasks) -> Self {
        let (line, requests) = mpsc::channel(MAX_GROUP);
        tasks.spawn(read_groups(store, requests, tasks.stop()));
        Self { line }
    }

    /// A ticket with its event, if it exists.
    pub(crate) async fn read(&self, ticket: TicketId) -> Row {
        let (answer, answered) = oneshot::channel();
        let gone = || Arc::new(Error::Unavailable("the reading task has ended".to_owned()));
        self.line.send(Request { ticket, answer }).await.map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn read_groups(store: Store, mut line: mpsc::Receiver<Request>, stop: CancellationToken) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while next_group(&mut line, &mut group, &stop).await {
        let ids: Vec<TicketId> = group.iter().map(|request| request.ticket).collect();
        let rows = store.tickets_with_events(&ids).await.map_err(Arc::new);
        let rows = rows.map(|rows| {
            let by_id = rows.into_iter().map(|(ticket, event)| (ticket.id, (ticket, event)));
            by_id.collect::<HashMap<_, _>>()
        });
        for Request { ticket, answer } in group.drain(..) {
            // A group may ask for a ticket twice, so rows are copied; a handler that is gone needs none.
            let row = rows.as_ref().map(|rows| rows.get(&ticket).cloned()).map_err(Arc::clone);
            let _ = answer.send(row);
        }
    }
}
