//! Connections that wait for the next request to the same origin.
//!
//! They wait for a short time only, so that a server's own limit rarely ends one while a request is on its way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::connection::Connection;

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) is_secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The connections that wait.
pub(crate) struct Pool {
    waiting: Arc<Mutex<Waiting>>,
    most_for_origin: usize,
    patience: Duration,
}

#[derive(Default)]
struct Waiting {
    by_origin: HashMap<Origin, Vec<(Instant, Connection)>>,
    is_swept: bool,
}

impl Pool {
    pub(crate) fn new(most_for_origin: usize, patience: Duration) -> Self {
        Self { waiting: Arc::default(), most_for_origin, patience }
    }

    /// A connection that waits, the one that was used last.
    pub(crate) fn take(&self, origin: &Origin) -> Option<Connection> {
        let mut waiting = self.waiting.lock();
        let connections = waiting.by_origin.get_mut(origin)?;
        while let Some((since, connection)) = connections.pop() {
            if since.elapsed() < self.patience && connection.is_open() {
                return Some(connection);
            }
        }
        None
    }

    /// Lets a connection wait, unless enough do.
    pub(crate) fn put(&self, origin: Origin, connection: Connection) {
        let mut waiting = self.waiting.lock();
        let connections = waiting.by_origin.entry(origin).or_default();
        if connections.len() < self.most_for_origin {
            connections.push((Instant::now(), connection));
        }
        if !waiting.is_swept {
            waiting.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(&self.waiting), self.patience));
        }
    }
}

/// Closes connections that have waited too long, until none waits.
async fn sweep(waiting: std::sync::Weak<Mutex<Waiting>>, patience: Duration) {
    loop {
        sleep(patience).await;
        let Some(waiting) = waiting.upgrade() else { return };
        let mut waiting = waiting.lock();
        for connections in waiting.by_origin.values_mut() {
            connections
                .retain(|(since, connection)| since.elapsed() < patience && connection.is_open());
        }
        waiting.by_origin.retain(|_, connections| !connections.is_empty());
        if waiting.by_origin.is_empty() {
            waiting.is_swept = false;
            return;
        }
    }
}
