//! Connections on loan, and the time within which each is given back.
//!
//! A server that has gone silent (a pulled cable, a frozen machine, a firewall that forgot the
//! connection) sends no error: whoever waits for its answer waits for ever. So everything that is
//! asked of a database has a [limit](Limits), after which the caller gets `Unavailable`.
//!
//! A connection whose work was broken off, by its limit or by a caller who hung up, never goes back
//! to the pool: it is dropped, and the database undoes what was not committed. One that is given
//! back, or taken out again, has to answer a ping within a limit of its own.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, Connection, Transaction};
use tokio::time::timeout;

use crate::dialect::Dialect;
use crate::{Error, Result, Store};

/// A write transaction may take so many times as long as a read.
const WRITE_FACTOR: u32 = 3;

/// So may an order, which writes up to 100,000 tickets.
const ORDER_FACTOR: u32 = 6;

/// A healthy connection answers a ping in this part of the time of a read.
const PING_PART: u32 = 5;

/// The server's own limit lies above ours, which can tell the caller more; it ends what goes on after
/// its client has given up.
const SERVER_MARGIN: Duration = Duration::from_secs(5);

/// How long things may take, waiting for a turn and a connection included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// A read.
    pub(crate) read: Duration,
    /// A write transaction with all of its tries.
    pub(crate) write: Duration,
    /// The transaction that writes a large order, and the read that counts all tickets.
    pub(crate) order: Duration,
    /// An answer that needs no work.
    pub(crate) ping: Duration,
}

impl Limits {
    /// All limits follow from that of a read.
    pub(crate) fn new(read: Duration) -> Self {
        Self {
            read,
            write: read * WRITE_FACTOR,
            order: read * ORDER_FACTOR,
            ping: read / PING_PART,
        }
    }

    /// What the server itself enforces on each statement.
    pub(crate) fn on_server(self) -> Duration {
        self.order + SERVER_MARGIN
    }
}

/// Waits for the work, but not longer than the limit.
pub(crate) async fn within<T, E: Into<Error>>(
    limit: Duration,
    work: impl Future<Output = std::result::Result<T, E>>,
) -> Result<T> {
    match timeout(limit, work).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(Error::no_answer(limit)),
    }
}

/// A connection of the pool; it is closed unless [`Lease::give_back`] says that it is in order.
pub(crate) struct Lease {
    connection: Option<PoolConnection<Any>>,
    ping: Duration,
}

impl Lease {
    /// Opens a transaction that is going to write.
    pub(crate) async fn begin(&mut self, dialect: Dialect) -> sqlx::Result<Transaction<'_, Any>> {
        self.begin_with(dialect.begin()).await
    }

    /// Ends the loan of a connection whose work came to its end, well or not.
    pub(crate) fn give_back(mut self) {
        if let Some(mut connection) = self.connection.take() {
            // What dropping does, with a limit: the pool pings the connection first, and would
            // count one that does not answer as lent out for ever.
            tokio::spawn(timeout(self.ping, connection.return_to_pool()));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Detached, the pool may replace it at once; dropped, its socket is closed without a word.
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

/// Only [`Lease::give_back`] and dropping take the connection out, and nothing comes after either.
const IN_USE: &str = "a lease has its connection until it ends";

impl Deref for Lease {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        self.connection.as_ref().expect(IN_USE)
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        self.connection.as_mut().expect(IN_USE)
    }
}

/// A statement with its values.
type Statement<'q> = Query<'q, Any, AnyArguments>;

impl Store {
    /// Borrows a connection.
    pub(crate) async fn lease(&self) -> sqlx::Result<Lease> {
        let connection = self.pool.acquire().await?;
        Ok(Lease { connection: Some(connection), ping: self.limits.ping })
    }

    /// Reads all rows.
    pub(crate) async fn fetch_all(&self, query: Statement<'_>) -> Result<Vec<AnyRow>> {
        self.fetch_all_within(self.limits.read, query).await
    }

    /// Reads all rows with a limit of its own.
    pub(crate) async fn fetch_all_within(
        &self,
        limit: Duration,
        query: Statement<'_>,
    ) -> Result<Vec<AnyRow>> {
        let read = async {
            let mut lease = self.lease().await?;
            let rows = query.fetch_all(&mut *lease).await;
            lease.give_back();
            rows
        };
        within(limit, read).await
    }

    /// Reads one row, if there is one.
    pub(crate) async fn fetch_optional(&self, query: Statement<'_>) -> Result<Option<AnyRow>> {
        let read = async {
            let mut lease = self.lease().await?;
            let row = query.fetch_optional(&mut *lease).await;
            lease.give_back();
            row
        };
        within(self.limits.read, read).await
    }
}
