//! Recording, undoing and reading scans in SQL.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::feed::Change;
use stampede_model::{Admission, EventId, ScanId, ScanKind, TicketId, Timestamp};

use super::super::outbox::Told;
use super::super::transaction::in_transaction;
use super::group::Group;
use super::write::scan_data;
use super::{rows, set_counters};
use crate::Durability::Synced;
use crate::sql::Sql;
use crate::sql::rows::number;
use crate::{NewScan, Recorded, Result, Scan, ScanFilter, Scans, Undo};

#[async_trait]
impl Scans for Sql {
    async fn record_scans(&self, scans: &[NewScan], now: Timestamp) -> Result<Vec<Recorded>> {
        if scans.is_empty() {
            return Ok(Vec::new());
        }
        in_transaction!(self, Synced, async |db| {
            let mut group = Group::read(self, db, scans).await?;
            let answers = group.decide_all(scans, now);
            group.write(self, db, scans, now).await?;
            Ok(answers)
        })
    }

    async fn undo_scan(&self, id: ScanId, note: Option<&str>, now: Timestamp) -> Result<Undo> {
        let Some(found) = self.scan(id).await? else { return Ok(Undo::NotFound) };
        in_transaction!(self, Synced, async |db| {
            let mut counters = self.hold_counters(db, [found.event_id]).await?;
            let Some(seq) = counters.remove(&found.event_id) else { return Ok(Undo::NotFound) };
            let Some(scan) = fetch_scan(db, id).await? else { return Ok(Undo::NotFound) };
            if scan.undone_at.is_some() {
                return Ok(Undo::Done(Box::new(scan)));
            }
            if !scan.counted && !scan.conflict {
                return Ok(Undo::Refused);
            }
            // The state of a deleted ticket is gone with it; a guest without a ticket never had one.
            if let (true, Some(ticket)) = (scan.counted, &scan.ticket)
                && let Some(state) = fetch_state(db, &scan, ticket.id).await?
            {
                let Some(after) = state.undone(scan.kind) else { return Ok(Undo::ExitFollows) };
                write_state(db, &scan, ticket.id, after, seq + 1).await?;
            }
            set_counters(self, db, [(scan.event_id, seq + 1)]).await?;
            sqlx::query("UPDATE check_in_scans SET undone_at = $2, note = $3 WHERE id = $1")
                .bind(id.to_string())
                .bind(now.as_millisecond())
                .bind(note)
                .execute(&mut *db)
                .await?;
            let undone = Change::ScanUndone(scan_data(&scan));
            let batch = scan.ticket.as_ref().map(|ticket| ticket.batch_id);
            self.tell(db, [Told::within(scan.event_id, batch, undone)]).await?;
            let note = note.map(str::to_owned);
            Ok(Undo::Done(Box::new(Scan { undone_at: Some(now), note, ..scan })))
        })
    }

    async fn scan(&self, id: ScanId) -> Result<Option<Scan>> {
        let sql = format!("SELECT {} FROM check_in_scans WHERE id = $1", rows::SCAN);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::scan).await
    }

    async fn scan_of_nonce(&self, actor: &str, nonce: &str) -> Result<Option<Scan>> {
        let sql = format!(
            "SELECT {} FROM check_in_scans WHERE actor = $1 AND nonce = $2 \
             ORDER BY received_at DESC, id DESC LIMIT 1",
            rows::SCAN
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(actor).bind(nonce);
        self.fetch_optional(query, rows::scan).await
    }

    async fn scans(
        &self,
        event: EventId,
        filter: &ScanFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Scan>> {
        let mut sql =
            format!("SELECT {} FROM check_in_scans WHERE event_id = $1 AND seq < $2", rows::SCAN);
        let conditions = [
            ("result", filter.result.map(|result| result.as_str().to_owned())),
            ("gate_id", filter.gate.map(|id| id.to_string())),
            ("key_id", filter.device.map(|id| id.to_string())),
            ("ticket_id", filter.ticket.map(|id| id.to_string())),
        ];
        let mut values = Vec::new();
        for (column, value) in conditions {
            if let Some(value) = value {
                values.push(value);
                sql += &format!(" AND {column} = ${}", values.len() + 3);
            }
        }
        // Numbers, which no text can pretend to be.
        if let Some(from) = filter.from {
            sql += &format!(" AND at >= {}", from.as_millisecond());
        }
        if let Some(to) = filter.to {
            sql += &format!(" AND at < {}", to.as_millisecond());
        }
        sql += " ORDER BY seq DESC LIMIT $3";
        let before = before.and_then(|seq| i64::try_from(seq).ok()).unwrap_or(i64::MAX);
        let mut query = sqlx::query(AssertSqlSafe(sql))
            .bind(event.to_string())
            .bind(before)
            .bind(i64::from(limit));
        for value in values {
            query = query.bind(value);
        }
        self.fetch_all(query, rows::scan).await
    }

    async fn scan_conflicts(
        &self,
        event: EventId,
        limit: u32,
    ) -> Result<Vec<(Scan, Option<Scan>)>> {
        let sql = format!(
            "SELECT {} FROM check_in_scans WHERE event_id = $1 AND conflict = 1 AND result <> 'ok' \
             AND undone_at IS NULL ORDER BY seq DESC LIMIT $2",
            rows::SCAN
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(event.to_string()).bind(i64::from(limit));
        let scans = self.fetch_all(query, rows::scan).await?;
        let ids: Vec<ScanId> = scans.iter().filter_map(|scan| scan.conflicts_with).collect();
        let others = self.fetch_many("check_in_scans", rows::SCAN, &ids, rows::scan).await?;
        let others: HashMap<ScanId, Scan> =
            others.into_iter().map(|scan| (scan.id, scan)).collect();
        let pairs = scans.into_iter().map(|scan| {
            let other = scan.conflicts_with.and_then(|id| others.get(&id)).cloned();
            (scan, other)
        });
        let open = |(_, other): &(Scan, Option<Scan>)| {
            other.as_ref().is_none_or(|other| other.undone_at.is_none())
        };
        Ok(pairs.filter(open).collect())
    }
}

async fn fetch_scan(db: &mut AnyConnection, id: ScanId) -> sqlx::Result<Option<Scan>> {
    let sql = format!("SELECT {} FROM check_in_scans WHERE id = $1", rows::SCAN);
    let row = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).fetch_optional(db).await?;
    row.as_ref().map(rows::scan).transpose()
}

async fn fetch_state(
    db: &mut AnyConnection,
    scan: &Scan,
    ticket: TicketId,
) -> sqlx::Result<Option<Admission>> {
    let row = sqlx::query(
        "SELECT ticket_id AS id, entered, exited FROM check_in_admissions \
         WHERE list_id = $1 AND ticket_id = $2",
    )
    .bind(scan.list_id.to_string())
    .bind(ticket.to_string())
    .fetch_optional(db)
    .await?;
    row.map(|row| {
        Ok(Admission { entered: number(&row, "entered")?, exited: number(&row, "exited")? })
    })
    .transpose()
}

/// Writes a state without a scan; its last entry is the latest of the others.
async fn write_state(
    db: &mut AnyConnection,
    scan: &Scan,
    ticket: TicketId,
    state: Admission,
    seq: u64,
) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE check_in_admissions SET entered = $3, exited = $4, seq = $5, last_scan = \
         (SELECT id FROM check_in_scans WHERE check_in_scans.ticket_id = $2 \
         AND check_in_scans.list_id = $1 AND kind = $7 AND counted = 1 AND undone_at IS NULL \
         AND id <> $6 ORDER BY check_in_scans.seq DESC LIMIT 1) \
         WHERE list_id = $1 AND ticket_id = $2",
    )
    .bind(scan.list_id.to_string())
    .bind(ticket.to_string())
    .bind(i64::from(state.entered))
    .bind(i64::from(state.exited))
    .bind(i64::try_from(seq).unwrap_or(i64::MAX))
    .bind(scan.id.to_string())
    .bind(ScanKind::Entry.as_str())
    .execute(db)
    .await?;
    Ok(())
}
