//! Connections of the pool, each given back in order or closed.
//!
//! A connection whose work was broken off, by its time limit or by a caller who dropped the future,
//! never goes back to the pool: it is closed, and the database rolls back. Neither does a connection whose
//! read failed, or whose transaction did not surely end (`transaction.rs`). A connection that is given back
//! or taken out must answer a ping within a limit of its own.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, Connection, Transaction};
use tokio::time::timeout;

use super::{Sql, dialect::Dialect, error};
use crate::{Durability, Error, Result};

/// Waits for the work, but not longer than the limit.
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = sqlx::Result<T>>,
) -> Result<T> {
    match timeout(limit, work).await {
        Ok(result) => result.map_err(error::driver),
        Err(_) => Err(Error::no_answer(limit)),
    }
}

/// A connection of the pool; dropping it closes it, [`PooledConnection::give_back`] returns it.
pub(super) struct PooledConnection {
    connection: Option<PoolConnection<Any>>,
    ping: Duration,
}

impl PooledConnection {
    /// Begins a transaction that writes.
    pub(super) async fn begin(
        &mut self,
        dialect: Dialect,
        durability: Durability,
    ) -> sqlx::Result<Transaction<'_, Any>> {
        self.begin_with(dialect.begin(durability)).await
    }

    /// Returns a connection after a read, or closes it if the read failed.
    pub(super) fn give_back_after<T>(self, read: &sqlx::Result<T>) {
        if read.is_ok() {
            self.give_back();
        }
    }

    /// Returns a connection that is not inside a transaction.
    pub(super) fn give_back(mut self) {
        if let Some(mut connection) = self.connection.take() {
            // The pool pings the connection first. Without a limit it would count a connection that does
            // not answer as lent out for ever.
            tokio::spawn(timeout(self.ping, connection.return_to_pool()));
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        // Detached, so that the pool may replace it at once; dropping it then closes its socket.
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

/// Only [`PooledConnection::give_back`] and dropping take the connection out, and both end its use.
const IN_USE: &str = "a pooled connection is there until it is given back";

impl Deref for PooledConnection {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        self.connection.as_ref().expect(IN_USE)
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        self.connection.as_mut().expect(IN_USE)
    }
}

/// A statement with its values.
type Statement<'q> = Query<'q, Any, AnyArguments>;

impl Sql {
    /// Takes a connection out of the pool.
    pub(super) async fn connection(&self) -> sqlx::Result<PooledConnection> {
        let connection = self.pool.acquire().await?;
        Ok(PooledConnection { connection: Some(connection), ping: self.limits.ping })
    }

    /// Reads all rows.
    pub(super) async fn fetch_all<T>(
        &self,
        query: Statement<'_>,
        read: impl Fn(&AnyRow) -> sqlx::Result<T>,
    ) -> Result<Vec<T>> {
        self.fetch_all_within(self.limits.read, query, read).await
    }

    /// Reads all rows with a time limit of its own.
    pub(super) async fn fetch_all_within<T>(
        &self,
        limit: Duration,
        query: Statement<'_>,
        read: impl Fn(&AnyRow) -> sqlx::Result<T>,
    ) -> Result<Vec<T>> {
        let began = Instant::now();
        let rows = within(limit, async {
            let mut connection = self.connection().await?;
            let rows = query.fetch_all(&mut *connection).await;
            connection.give_back_after(&rows);
            rows
        });
        let rows = rows.await;
        self.seconds.read.observe(began.elapsed());
        rows?.iter().map(read).collect::<sqlx::Result<_>>().map_err(error::driver)
    }

    /// Reads one row, if there is one.
    pub(super) async fn fetch_optional<T>(
        &self,
        query: Statement<'_>,
        read: impl Fn(&AnyRow) -> sqlx::Result<T>,
    ) -> Result<Option<T>> {
        let began = Instant::now();
        let row = within(self.limits.read, async {
            let mut connection = self.connection().await?;
            let row = query.fetch_optional(&mut *connection).await;
            connection.give_back_after(&row);
            row
        });
        let row = row.await;
        self.seconds.read.observe(began.elapsed());
        row?.as_ref().map(read).transpose().map_err(error::driver)
    }
}
