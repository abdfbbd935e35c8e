//! Group reading: tickets wanted at the same time share one query, as completions share a transaction.
//!
//! There is no timer. While one query runs, the wishes that come meanwhile line up, and the next query
//! takes them all.

use std::collections::HashMap;
use std::sync::Arc;

use stampede_model::{Event, Ticket, TicketId};
use stampede_store::{Error, Store};
use tokio::sync::{mpsc, oneshot};

/// Most tickets in one query.
const MAX_GROUP: usize = 256;

type Loaded = Result<Option<(Ticket, Event)>, Arc<Error>>;

struct Wish {
    ticket: TicketId,
    answer: oneshot::Sender<Loaded>,
}

/// Hands wishes to the reading task. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Loads {
    line: mpsc::Sender<Wish>,
}

impl Loads {
    /// Starts the reading task; it ends when the last clone of the handle is dropped.
    pub(crate) fn start(store: Store) -> Self {
        let (line, wishes) = mpsc::channel(MAX_GROUP);
        tokio::spawn(read_groups(store, wishes));
        Self { line }
    }

    /// A ticket with its event, if it exists.
    pub(crate) async fn load(&self, ticket: TicketId) -> Loaded {
        let (answer, answered) = oneshot::channel();
        let gone = || Arc::new(Error::Unavailable("the reading task has ended".to_owned()));
        self.line.send(Wish { ticket, answer }).await.map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn read_groups(store: Store, mut line: mpsc::Receiver<Wish>) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while line.recv_many(&mut group, MAX_GROUP).await > 0 {
        let ids: Vec<TicketId> = group.iter().map(|wish| wish.ticket).collect();
        let rows = store.tickets_with_events(&ids).await.map_err(Arc::new);
        let rows = rows.map(|rows| {
            let by_id = rows.into_iter().map(|(ticket, event)| (ticket.id, (ticket, event)));
            by_id.collect::<HashMap<_, _>>()
        });
        for Wish { ticket, answer } in group.drain(..) {
            // A wish may stand in the group twice, so rows are copied; a handler that is gone needs none.
            let row = rows.as_ref().map(|rows| rows.get(&ticket).cloned()).map_err(Arc::clone);
            let _ = answer.send(row);
        }
    }
}
