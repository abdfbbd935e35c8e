//! Check-in in SQL.
//!
//! | file | holds |
//! |---|---|
//! | `setup.rs` | lists and gates |
//! | `devices.rs` | devices |
//! | `blocks.rs` | blocked tickets |
//! | `scans.rs` | recording, undoing and reading scans |
//! | `group.rs` | what a group of scans reads |
//! | `decisions.rs` | the decisions about them |
//! | `write.rs` | what a group of scans writes |
//! | `reports.rs` | snapshots and figures |
//! | `rows.rs` | reads rows |
//!
//! Every change locks its event (shared) and then the event's counter until the commit. So two changes of one
//! event never run at the same time, and what a transaction has read stays true until it writes.

mod blocks;
mod decisions;
mod devices;
mod group;
mod reports;
mod rows;
mod scans;
mod setup;
mod write;

use std::collections::HashMap;

use serde::Serialize;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::EventId;

use super::Sql;
use super::page::to_json;
use super::rows::{number, parsed};

impl Sql {
    /// Locks events (shared) and their counters until the transaction ends; returns the counters. Events that are
    /// gone are left out.
    async fn hold_counters(
        &self,
        db: &mut AnyConnection,
        events: impl IntoIterator<Item = EventId>,
    ) -> sqlx::Result<HashMap<EventId, u64>> {
        let mut events: Vec<EventId> = events.into_iter().collect();
        events.sort_unstable();
        events.dedup();
        let (ids, each) = (to_json(&events), self.dialect.each_text("$1"));
        let share = self.dialect.to_refer_to();
        // SQLite has one writer, which needs no locks.
        if !share.is_empty() {
            let sql = format!(
                "SELECT id FROM events WHERE id IN (SELECT value FROM {each}) ORDER BY id {share}"
            );
            sqlx::query(AssertSqlSafe(sql)).bind(ids.as_str()).execute(&mut *db).await?;
        }
        let sql = format!(
            "SELECT event_id AS id, seq FROM check_in_counters \
             WHERE event_id IN (SELECT value FROM {each}) ORDER BY event_id {}",
            self.dialect.to_change()
        );
        let found = sqlx::query(AssertSqlSafe(sql)).bind(ids).fetch_all(db).await?;
        found.iter().map(|row| Ok((parsed(row, "id")?, number(row, "seq")?))).collect()
    }

    /// Takes the next number of an event's counter; `None` if the event is gone. The counter stays locked until
    /// the transaction ends.
    async fn next_change(
        &self,
        db: &mut AnyConnection,
        event: EventId,
    ) -> sqlx::Result<Option<u64>> {
        let Some(seq) = self.hold_counters(db, [event]).await?.remove(&event) else {
            return Ok(None);
        };
        set_counters(self, db, [(event, seq + 1)]).await?;
        Ok(Some(seq + 1))
    }
}

#[derive(Serialize)]
struct Counter {
    event: EventId,
    seq: u64,
}

/// Writes counters that are locked.
async fn set_counters(
    sql: &Sql,
    db: &mut AnyConnection,
    counters: impl IntoIterator<Item = (EventId, u64)>,
) -> sqlx::Result<()> {
    let counters: Vec<Counter> =
        counters.into_iter().map(|(event, seq)| Counter { event, seq }).collect();
    let update = format!(
        "UPDATE check_in_counters SET seq = change.seq \
         FROM (SELECT value ->> 'event' AS event_id, CAST(value ->> 'seq' AS BIGINT) AS seq \
         FROM {}) AS change WHERE check_in_counters.event_id = change.event_id",
        sql.dialect.each_object("$1")
    );
    sqlx::query(AssertSqlSafe(update)).bind(to_json(&counters)).execute(db).await?;
    Ok(())
}
