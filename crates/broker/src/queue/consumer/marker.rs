//! Waiting for work without polling: BullMQ's marker.
//!
//! A producer that adds a job sets the marker; one of the idle consumers pops it and takes the job. If a consumer
//! popped the marker and did not take the job, the job would wait although another consumer is idle. So a blocking
//! pop is never abandoned: it goes on in a task of its own, and a marker that comes too late for this consumer is set
//! again for others.

use std::time::Duration;

use redis::cmd;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{FIRST_PAUSE, IDLE, LONGEST_PAUSE};
use crate::link::Link;
use crate::{Error, Queue};

/// The blocking wait for a marker, on a connection of its own.
pub(super) struct Marker {
    queue: Queue,
    /// The name of the connection, as `getWorkers` and Bull Board show it.
    client_name: String,
    connection: Option<Link>,
    waiting: Option<AbortOnDropHandle<Option<(Link, Woken)>>>,
}

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// A marker was popped: there is work.
    ByMarker,
    /// The time is over, or the connection broke.
    ByItself,
}

impl Marker {
    pub(super) fn new(queue: Queue, worker: &str) -> Self {
        let client_name = queue.client_name(&format!(":w:{worker}"));
        Self { queue, client_name, connection: None, waiting: None }
    }

    /// Opens the connection, if that takes only a moment.
    pub(super) async fn open(&mut self) {
        let connection = self.queue.broker().blocking_connection(IDLE, &self.client_name);
        if let Ok(Ok(connection)) = timeout(LONGEST_PAUSE, connection).await {
            self.connection = Some(connection);
        }
    }

    /// Returns when there may be work, after `idle` at the latest.
    pub(super) async fn wait(&mut self, idle: Duration) -> Woken {
        let task = self.waiting.get_or_insert_with(|| {
            let pop = pop(self.queue.clone(), self.client_name.clone(), self.connection.take());
            AbortOnDropHandle::new(tokio::spawn(pop))
        });
        tokio::select! {
            popped = task => {
                self.waiting = None;
                let Some((connection, woken)) = popped.ok().flatten() else { return Woken::ByItself };
                self.connection = Some(connection);
                woken
            }
            () = sleep(idle) => Woken::ByItself,
        }
    }

    /// Whether a blocking pop goes on.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Sets a marker again, for another consumer.
    pub(super) async fn pass_on(&self) {
        // Without it, idle consumers look by themselves after a while; nothing is worth waiting here.
        if !matches!(timeout(FIRST_PAUSE, self.queue.set_marker()).await, Ok(Ok(()))) {
            tracing::debug!("could not pass on a marker");
        }
    }

    /// Ends the waiting.
    pub(super) async fn close(mut self) {
        if let Some(task) = self.waiting.take() {
            // Closing the connection takes this client out of Redis' line of blocked clients.
            task.abort();
            let _ = task.await;
            self.pass_on().await;
        }
    }
}

/// Pops a marker or times out; gives the connection back unless it broke.
async fn pop(queue: Queue, client_name: String, connection: Option<Link>) -> Option<(Link, Woken)> {
    match try_pop(&queue, &client_name, connection).await {
        Ok(popped) => Some(popped),
        Err(error) => {
            if !error.is_outage() {
                queue.broker().once_a_minute("marker", || {
                    tracing::warn!(%error, "cannot wait for the marker; looks for jobs every {IDLE:?}");
                });
            }
            queue.broker().suspect();
            // The fetch that follows reports the outage; the pause keeps this from spinning.
            sleep(FIRST_PAUSE).await;
            None
        }
    }
}

async fn try_pop(
    queue: &Queue,
    client_name: &str,
    connection: Option<Link>,
) -> Result<(Link, Woken), Error> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => queue.broker().blocking_connection(IDLE, client_name).await?,
    };
    let popped: redis::Value = cmd("BZPOPMIN")
        .arg(queue.keys().part("marker"))
        .arg(IDLE.as_secs_f64())
        .query_async(&mut connection)
        .await?;
    let woken = if popped == redis::Value::Nil { Woken::ByItself } else { Woken::ByMarker };
    Ok((connection, woken))
}
