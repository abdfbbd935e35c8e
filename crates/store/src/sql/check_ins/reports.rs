//! Snapshots and figures in SQL.
//!
//! A snapshot reads the event's counter first: whatever was committed up to that number is visible to the reads
//! after it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use stampede_model::{Admission, BatchId, EventId, ScanKind, ScanResult, Timestamp};

use super::rows::{flag, optional_number};
use crate::sql::Sql;
use crate::sql::rows::{number, optional_parsed, optional_time, parsed, time, value};
use crate::{
    AdmissionMark, Blocks, CheckInReports, CheckInSetup, Figures, GateFigures, Minute, Result,
    Snapshot, TicketKeys, TicketMark,
};

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;

#[async_trait]
impl CheckInReports for Sql {
    async fn check_in_snapshot(
        &self,
        event: EventId,
        since: Option<u64>,
    ) -> Result<Option<Snapshot>> {
        let query = sqlx::query(
            "SELECT events.id AS id, seq, lists_seq, last_serial FROM events \
             JOIN check_in_counters ON event_id = events.id WHERE events.id = $1",
        );
        let counters = self
            .fetch_optional(query.bind(event.to_string()), |row| {
                let counters: [u64; 2] = [number(row, "seq")?, number(row, "lists_seq")?];
                Ok((counters, number::<u32>(row, "last_serial")?))
            })
            .await?;
        let Some(([seq, lists_seq], last_serial)) = counters else { return Ok(None) };
        // A list that changed may admit other tickets; a larger number is from a database that is gone.
        let since = since.filter(|since| (lists_seq..=seq).contains(since));
        let lists = self.check_in_lists(event).await?;
        let seats = match lists.iter().all(|list| list.rules.includes_all()) {
            true => Vec::new(),
            false => self.seats(event).await?,
        };
        Ok(Some(Snapshot {
            seq,
            full: since.is_none(),
            last_serial,
            keys: self.ticket_keys(event).await?,
            gates: self.gates(event).await?,
            tickets: match since {
                Some(since) => self.changed_tickets(event, since).await?,
                None => self.special_tickets(event, last_serial).await?,
            },
            blocked: self.blocks(event).await?.into_iter().map(|block| block.serial).collect(),
            admissions: self.admissions(event, since.unwrap_or_default()).await?,
            lists,
            seats,
        }))
    }

    async fn check_in_figures(&self, event: EventId, minutes_since: Timestamp) -> Result<Figures> {
        Ok(Figures {
            sold: self
                .count(event, "SELECT COALESCE(SUM(total - voided), 0) AS n FROM batches WHERE event_id = $1")
                .await?,
            inside: self
                .count(
                    event,
                    "SELECT COALESCE(SUM(inside), 0) AS n FROM (SELECT MAX(entered - exited) AS inside \
                     FROM check_in_admissions WHERE event_id = $1 GROUP BY ticket_id) AS guests \
                     WHERE inside > 0",
                )
                .await?,
            conflicts: self.scan_conflict_count(event).await?,
            results: self.results(event).await?,
            gates: self.gate_figures(event).await?,
            minutes: self.minutes(event, minutes_since).await?,
        })
    }
}

impl Sql {
    /// Counts something of an event.
    async fn count(&self, event: EventId, sql: &'static str) -> Result<u64> {
        // The sum of numbers is a decimal number on PostgreSQL.
        let sql = format!("SELECT '' AS id, CAST(n AS BIGINT) AS n FROM ({sql}) AS counted");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(event.to_string());
        let count = self.fetch_optional(query, |row| number(row, "n")).await?;
        Ok(count.unwrap_or_default())
    }

    async fn scan_conflict_count(&self, event: EventId) -> Result<u64> {
        self.count(
            event,
            "SELECT COUNT(*) AS n FROM check_in_scans AS scan LEFT JOIN check_in_scans AS other \
             ON other.id = scan.conflicts_with WHERE scan.event_id = $1 AND scan.conflict = 1 \
             AND scan.result <> 'ok' AND scan.undone_at IS NULL \
             AND other.undone_at IS NULL",
        )
        .await
    }

    async fn results(&self, event: EventId) -> Result<Vec<(ScanKind, ScanResult, bool, u64)>> {
        let query = sqlx::query(
            "SELECT kind AS id, kind, result, counted, COUNT(*) AS n FROM check_in_scans \
             WHERE event_id = $1 AND undone_at IS NULL GROUP BY kind, result, counted \
             ORDER BY kind, result, counted",
        );
        self.fetch_all_within(self.limits.order, query.bind(event.to_string()), |row| {
            Ok((
                parsed(row, "kind")?,
                parsed(row, "result")?,
                flag(row, "counted")?,
                number(row, "n")?,
            ))
        })
        .await
    }

    async fn gate_figures(&self, event: EventId) -> Result<Vec<GateFigures>> {
        let query = sqlx::query(
            "SELECT gate_id AS id, gate_id, \
             CAST(SUM(CASE WHEN kind = 'entry' THEN counted ELSE 0 END) AS BIGINT) AS entries, \
             CAST(SUM(CASE WHEN kind = 'exit' THEN counted ELSE 0 END) AS BIGINT) AS exits, \
             CAST(SUM(1 - counted) AS BIGINT) AS refused, MAX(at) AS last_at FROM check_in_scans \
             WHERE event_id = $1 AND undone_at IS NULL GROUP BY gate_id ORDER BY gate_id",
        );
        self.fetch_all_within(self.limits.order, query.bind(event.to_string()), |row| {
            Ok(GateFigures {
                gate: optional_parsed(row, "gate_id")?,
                entries: number(row, "entries")?,
                exits: number(row, "exits")?,
                refused: number(row, "refused")?,
                last_scan_at: optional_time(row, "last_at")?,
            })
        })
        .await
    }

    async fn minutes(&self, event: EventId, since: Timestamp) -> Result<Vec<Minute>> {
        let query = sqlx::query(
            "SELECT gate_id AS id, gate_id, at - at % $3 AS minute, \
             CAST(SUM(CASE WHEN kind = 'entry' THEN 1 ELSE 0 END) AS BIGINT) AS entries, \
             CAST(SUM(CASE WHEN kind = 'exit' THEN 1 ELSE 0 END) AS BIGINT) AS exits \
             FROM check_in_scans WHERE event_id = $1 AND at >= $2 AND counted = 1 \
             AND undone_at IS NULL GROUP BY gate_id, at - at % $3 ORDER BY minute, gate_id",
        );
        let query = query.bind(event.to_string()).bind(since.as_millisecond()).bind(MINUTE_MS);
        self.fetch_all_within(self.limits.order, query, |row| {
            Ok(Minute {
                gate: optional_parsed(row, "gate_id")?,
                minute: time(row, "minute")?,
                entries: number(row, "entries")?,
                exits: number(row, "exits")?,
            })
        })
        .await
    }

    /// Number, order and seat of all tickets.
    async fn seats(&self, event: EventId) -> Result<Vec<(u32, BatchId, Option<String>)>> {
        let query = sqlx::query(
            "SELECT id, serial, batch_id, seat FROM tickets WHERE event_id = $1 ORDER BY serial",
        );
        self.fetch_all_within(self.limits.order, query.bind(event.to_string()), |row| {
            Ok((number(row, "serial")?, parsed(row, "batch_id")?, value(row, "seat")?))
        })
        .await
    }

    /// Tickets that changed after a number.
    async fn changed_tickets(&self, event: EventId, since: u64) -> Result<Vec<TicketMark>> {
        let query = sqlx::query(
            "SELECT tickets.id AS id, check_in_changes.serial AS serial, \
             CASE WHEN status = 'void' THEN NULL ELSE generation END AS generation \
             FROM check_in_changes LEFT JOIN tickets ON tickets.event_id = check_in_changes.event_id \
             AND tickets.serial = check_in_changes.serial \
             WHERE check_in_changes.event_id = $1 AND check_in_changes.seq > $2 \
             ORDER BY check_in_changes.serial",
        );
        let since = i64::try_from(since).unwrap_or(i64::MAX);
        self.fetch_all_within(self.limits.order, query.bind(event.to_string()).bind(since), mark)
            .await
    }

    /// Tickets that are void, deleted or not of the first generation.
    async fn special_tickets(&self, event: EventId, last_serial: u32) -> Result<Vec<TicketMark>> {
        let query = sqlx::query(
            "SELECT id, serial, CASE WHEN status = 'void' THEN NULL ELSE generation END AS generation \
             FROM tickets WHERE event_id = $1 AND (status = 'void' OR generation <> 1) ORDER BY serial",
        );
        let found =
            self.fetch_all_within(self.limits.order, query.bind(event.to_string()), mark).await?;
        let mut marks: BTreeMap<u32, Option<u32>> =
            found.into_iter().map(|mark| (mark.serial, mark.generation)).collect();
        for (from, to) in self.gaps(event, last_serial).await? {
            marks.extend((from..=to).map(|serial| (serial, None)));
        }
        let mark = |(serial, generation)| TicketMark { serial, generation };
        Ok(marks.into_iter().map(mark).collect())
    }

    /// Numbers that no ticket has any more, as ranges.
    async fn gaps(&self, event: EventId, last_serial: u32) -> Result<Vec<(u32, u32)>> {
        let query = sqlx::query(
            "SELECT '' AS id, serial, next_serial FROM (SELECT serial, \
             LEAD(serial) OVER (ORDER BY serial) AS next_serial FROM \
             (SELECT serial FROM tickets WHERE event_id = $1 UNION ALL SELECT CAST(0 AS BIGINT) \
             UNION ALL SELECT CAST($2 AS BIGINT)) AS numbered) AS pairs \
             WHERE next_serial > serial + 1",
        );
        let query = query.bind(event.to_string()).bind(i64::from(last_serial) + 1);
        self.fetch_all_within(self.limits.order, query, |row| {
            let (before, after): (u32, u32) = (number(row, "serial")?, number(row, "next_serial")?);
            Ok((before + 1, after - 1))
        })
        .await
    }

    /// States of tickets that changed after a number.
    async fn admissions(&self, event: EventId, since: u64) -> Result<Vec<AdmissionMark>> {
        let query = sqlx::query(
            "SELECT ticket_id AS id, list_id, serial, entered, exited FROM check_in_admissions \
             WHERE event_id = $1 AND seq > $2 ORDER BY list_id, serial",
        );
        let since = i64::try_from(since).unwrap_or(i64::MAX);
        let query = query.bind(event.to_string()).bind(since);
        self.fetch_all_within(self.limits.order, query, |row| {
            Ok(AdmissionMark {
                list: parsed(row, "list_id")?,
                serial: number(row, "serial")?,
                state: Admission {
                    entered: number(row, "entered")?,
                    exited: number(row, "exited")?,
                },
            })
        })
        .await
    }
}

fn mark(row: &sqlx::any::AnyRow) -> sqlx::Result<TicketMark> {
    Ok(TicketMark {
        serial: number(row, "serial")?,
        generation: optional_number(row, "generation")?,
    })
}
