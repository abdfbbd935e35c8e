//! Writing: one transaction, tried again when it only lost against another one.
//!
//! Two group commits that touch the same rows could wait for each other in a circle. They do not,
//! because everybody takes locks in the same order: an event, then tickets by id, then (in the
//! trigger) batches by id. Should it happen all the same, the database ends one of the two and
//! nothing of it has happened; that one is tried again here.
//!
//! [`in_transaction!`] is a macro because the future of an async closure that borrows cannot be shown to be
//! `Send` yet, and these futures run on every thread of the runtime.

use std::time::Duration;

use sqlx::{Any, Transaction};
use tokio::sync::MutexGuard;
use tokio::time::sleep;

use crate::Store;
use crate::error::is_contention;

/// How often a transaction is tried in all.
const TRIES: u32 = 5;

/// Runs the block in a transaction that is committed when it succeeds and undone when it does not.
/// It may run several times, so it must not have effects outside the database; the time in brackets
/// is for all of them.
macro_rules! in_transaction {
    ($store:expr, async |$db:ident| $work:block) => {
        $crate::transaction::in_transaction!($store, [$store.limits.write], async |$db| $work)
    };
    ($store:expr, [$limit:expr], async |$db:ident| $work:block) => {{
        let work = async {
            let mut tries = $crate::transaction::Tries::default();
            loop {
                let result = $crate::transaction::attempt(async {
                    // Dropped in the reverse order: undone before the next writer gets its turn.
                    let _turn = $store.turn_to_write().await;
                    let mut lease = $store.lease().await?;
                    let mut transaction = lease.begin($store.dialect).await?;
                    let $db: &mut sqlx::AnyConnection = &mut transaction;
                    let result = $crate::transaction::attempt(async { $work }).await;
                    let result = $crate::transaction::end(transaction, result).await;
                    lease.give_back();
                    result
                });
                match result.await {
                    Err(error) if tries.are_left_after(&error).await => {}
                    result => break result,
                }
            }
        };
        $crate::lease::within($limit, work).await
    }};
}
pub(crate) use in_transaction;

/// Tells the compiler what a block of [`in_transaction!`] returns.
pub(crate) fn attempt<T, F: Future<Output = sqlx::Result<T>>>(work: F) -> F {
    work
}

/// Counts the tries of one transaction.
#[derive(Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Whether it is worth another try, which by then may begin.
    pub(crate) async fn are_left_after(&mut self, error: &sqlx::Error) -> bool {
        self.0 += 1;
        if self.0 >= TRIES || !is_contention(error) {
            return false;
        }
        tracing::debug!(%error, tries = self.0, "a transaction lost against another one");
        sleep(Duration::from_millis(10) * self.0 * self.0).await;
        true
    }
}

/// Commits what succeeded, undoes what did not.
pub(crate) async fn end<T>(
    transaction: Transaction<'_, Any>,
    result: sqlx::Result<T>,
) -> sqlx::Result<T> {
    match result {
        Ok(value) => transaction.commit().await.map(|()| value),
        Err(error) => {
            // The error that counts is the first one; a lost connection rolls back by itself.
            transaction.rollback().await.ok();
            Err(error)
        }
    }
}

impl Store {
    /// Waits for this process's turn to write, where there is only one writer at a time.
    pub(crate) async fn turn_to_write(&self) -> Option<MutexGuard<'_, ()>> {
        match &self.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }
}
