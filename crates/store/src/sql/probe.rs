//! The probe: does the database answer, and does it accept writes?
//!
//! A database on a full disk answers every question and accepts no order. So the probe writes and commits
//! something that changes nothing ([`Dialect::touch`](super::dialect::Dialect::touch)). It never waits for
//! another writer: whoever holds the lock of SQLite's one writer proves that the database can be written.

use std::time::Duration;

use tokio::time::timeout;

use super::Sql;
use super::connect::silent;
use super::dialect::Dialect;
use super::error::{self, is_contention};
use super::transaction::{Ended, end};
use crate::{Durability, Error, Result};

/// SQLite's patience with another writer; the sessions of the pool have ten seconds.
const AT_ONCE: &str = "PRAGMA busy_timeout = 0";

const REFUSED: &str = "the database refuses this program; the log or `stampede doctor` says why";

/// What the probe found.
enum Found {
    /// The database accepted a write.
    Accepts,
    /// Another writer is at work.
    Busy,
}

impl Sql {
    /// Succeeds if the database answers and accepts writes.
    pub(super) async fn probe(&self, limit: Duration) -> Result<()> {
        let found = timeout(limit, self.touch()).await.unwrap_or_else(|_| Err(silent(limit)));
        match found {
            Ok(Found::Accepts) => Ok(()),
            // The other writer may be about to fail: the last outcome in this process decides.
            Ok(Found::Busy) => match self.last_write.fresh_failure() {
                Some(reason) => Err(Error::Unavailable(reason)),
                None => Ok(()),
            },
            Err(error) => Err(match error::driver(error) {
                Error::Unavailable(reason) => Error::Unavailable(reason),
                // Its text may name the user.
                _ => Error::Unavailable(REFUSED.to_owned()),
            }),
        }
    }

    async fn touch(&self) -> sqlx::Result<Found> {
        let _turn = match &self.writer_turn {
            None => None,
            Some(turn) => match turn.try_lock() {
                Ok(turn) => Some(turn),
                Err(_) => return Ok(Found::Busy),
            },
        };
        let mut connection = self.connection().await?;
        if self.dialect == Dialect::Sqlite {
            sqlx::raw_sql(AT_ONCE).execute(&mut *connection).await?;
        }
        let mut transaction = match connection.begin(self.dialect, Durability::Relaxed).await {
            Ok(transaction) => transaction,
            Err(error) if is_contention(&error) => return Ok(Found::Busy),
            Err(error) => return Err(error),
        };
        let written = sqlx::raw_sql(self.dialect.touch()).execute(&mut *transaction).await;
        match end(transaction, written).await {
            Ended::Surely(Ok(_)) => {}
            Ended::Surely(Err(error)) | Ended::InDoubt(error) => return Err(error),
        }
        if self.dialect == Dialect::Sqlite {
            // The connection goes back with its own patience.
            let patience = self.dialect.session_settings(self.limits);
            sqlx::raw_sql(sqlx::AssertSqlSafe(patience)).execute(&mut *connection).await?;
        }
        connection.give_back();
        Ok(Found::Accepts)
    }
}
