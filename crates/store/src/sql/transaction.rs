//! Write transactions, retried when they only lost against another one.
//!
//! Two group commits that touch the same rows could deadlock. They do not, because every transaction
//! takes locks in the same order: an event, then tickets by id, then (in triggers) the event's check-in counter
//! and batches by id. If
//! it happens all the same, the database rolls one of the two back, and that one is retried here.
//!
//! A connection goes back to the pool only when its transaction has surely ended. SQLite ends a transaction
//! by itself when a write fails (disk full, IO error). The driver does not notice: it counts the connection
//! as inside a transaction, and every later `BEGIN` on it is refused. Such a connection is closed.
//!
//! [`in_transaction!`] is a macro because the future of an async closure that borrows cannot be shown to be
//! `Send` yet, and these futures run on every thread of the runtime.

use std::time::Duration;

use sqlx::{Any, Transaction};
use tokio::sync::MutexGuard;
use tokio::time::sleep;

use super::Sql;
use super::error::{is_contention, is_of_connection};

/// How often a transaction is tried in all.
const TRIES: u32 = 5;

/// Runs the block in a transaction that is committed if the block succeeds and rolled back if it fails.
///
/// The durability of the commit is part of the call. The block may run several times, so it must not have
/// effects outside the database. The time in brackets is the limit of all tries together.
macro_rules! in_transaction {
    ($sql:expr, $durability:expr, async |$db:ident| $work:block) => {
        $crate::sql::transaction::in_transaction!(
            $sql, $durability, [$sql.limits.write], async |$db| $work
        )
    };
    ($sql:expr, $durability:expr, [$limit:expr], async |$db:ident| $work:block) => {{
        let work = async {
            let mut tries = $crate::sql::transaction::Tries::default();
            loop {
                let result = $crate::sql::transaction::attempt(async {
                    // Dropped in the reverse order: rolled back before the next writer gets its turn.
                    let _turn = $sql.turn_to_write().await;
                    let mut connection = $sql.connection().await?;
                    let mut transaction = connection.begin($sql.dialect, $durability).await?;
                    let $db: &mut sqlx::AnyConnection = &mut transaction;
                    let result = $crate::sql::transaction::attempt(async { $work }).await;
                    match $crate::sql::transaction::end(transaction, result).await {
                        $crate::sql::transaction::Ended::Surely(result) => {
                            connection.give_back();
                            result
                        }
                        // Dropping the connection closes it.
                        $crate::sql::transaction::Ended::InDoubt(error) => Err(error),
                    }
                });
                match result.await {
                    Err(error) if tries.are_left_after(&error).await => {}
                    result => break result,
                }
            }
        };
        let began = std::time::Instant::now();
        let result = $crate::sql::pooled_connection::within($limit, work).await;
        $sql.seconds.write.observe(began.elapsed());
        $sql.last_write.note(&result);
        if result.is_ok() {
            // Remembered if nobody waits yet.
            $sql.writes.notify_one();
        }
        result
    }};
}
pub(super) use in_transaction;

/// Tells the compiler what a block of [`in_transaction!`] returns.
pub(super) fn attempt<T, F: Future<Output = sqlx::Result<T>>>(work: F) -> F {
    work
}

/// The tries of one transaction.
#[derive(Default)]
pub(super) struct Tries(u32);

impl Tries {
    /// Returns whether to try again, after a pause.
    pub(super) async fn are_left_after(&mut self, error: &sqlx::Error) -> bool {
        self.0 += 1;
        if self.0 >= TRIES || !is_contention(error) {
            return false;
        }
        tracing::debug!(%error, tries = self.0, "a transaction lost against another one");
        sleep(Duration::from_millis(10) * self.0 * self.0).await;
        true
    }
}

/// The end of a transaction.
pub(super) enum Ended<T> {
    /// The transaction was committed or rolled back; its connection can be used again.
    Surely(sqlx::Result<T>),
    /// The commit or the rollback failed, or the connection itself is at fault. The connection may be inside a
    /// transaction, or the driver may think so: it must be closed.
    InDoubt(sqlx::Error),
}

/// Commits a transaction that succeeded and rolls back one that failed.
pub(super) async fn end<T>(transaction: Transaction<'_, Any>, result: sqlx::Result<T>) -> Ended<T> {
    match result {
        Ok(value) => match transaction.commit().await {
            Ok(()) => Ended::Surely(Ok(value)),
            Err(error) => Ended::InDoubt(error),
        },
        Err(error) if is_of_connection(&error) => Ended::InDoubt(error),
        // The first error is the one to report.
        Err(error) => match transaction.rollback().await {
            Ok(()) => Ended::Surely(Err(error)),
            Err(_) => Ended::InDoubt(error),
        },
    }
}

impl Sql {
    /// Waits for this process's turn to write, if the database has one writer at a time.
    pub(super) async fn turn_to_write(&self) -> Option<MutexGuard<'_, ()>> {
        match &self.writer_turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }
}
