//! `batch:{id}` in Redis: the state of a batch for older software (docs/compatibility.md).

use std::time::Duration;

use stampede_broker::{Error, SnapshotWrite, Snapshots};
use stampede_model::{Batch, TicketId};
use stampede_store::Store;
use stampede_wire::ticketing::batches::BatchCounters;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A finished batch can be read for a week after its last change …
const KEEP_FINISHED: Duration = Duration::from_secs(7 * DAY.as_secs());
/// … and one in progress for a month.
const KEEP_OPEN: Duration = Duration::from_secs(30 * DAY.as_secs());

/// Writes the state of batches. Cheap to clone.
#[derive(Clone)]
pub(crate) struct BatchMirror {
    snapshots: Snapshots,
}

impl BatchMirror {
    pub(crate) fn new(snapshots: Snapshots) -> Self {
        Self { snapshots }
    }

    /// Writes the state of a batch together with its list of tickets.
    pub(crate) async fn put(&self, batch: &Batch, tickets: &[TicketId]) -> Result<(), Error> {
        let list = serde_json::to_string(tickets).unwrap_or_else(|_| "[]".to_owned());
        self.send(batch, Some(&list)).await.map(drop)
    }

    /// Writes the state of a batch and keeps the list of tickets in Redis. `Ok(false)`: Redis has no such
    /// batch (any more), use [`BatchMirror::put`].
    pub(crate) async fn update(&self, batch: &Batch) -> Result<bool, Error> {
        self.send(batch, None).await
    }

    /// Writes the state of a batch, with its list of tickets if Redis does not have it any more.
    pub(crate) async fn write(&self, store: &Store, batch: &Batch) -> Result<(), String> {
        if self.update(batch).await.map_err(|e| e.to_string())? {
            return Ok(());
        }
        let tickets = store.batch_ticket_ids(batch.id).await.map_err(|e| e.to_string())?;
        self.put(batch, &tickets).await.map_err(|e| e.to_string())
    }

    async fn send(&self, batch: &Batch, list: Option<&str>) -> Result<bool, Error> {
        // Plain data can always be written as JSON.
        let mut head = serde_json::to_string(&BatchCounters::from(batch)).unwrap_or_default();
        // The script adds the list, then the closing brace.
        head.pop();
        let write = SnapshotWrite {
            key: &format!("batch:{}", batch.id),
            revision: batch.revision,
            head: &head,
            list,
            keep: if batch.pending() == 0 { KEEP_FINISHED } else { KEEP_OPEN },
        };
        self.snapshots.write(write).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stampede_broker::Broker;
    use stampede_model::{BatchId, EventId, Timestamp};
    use stampede_testkit::Redis;

    use super::*;

    async fn start() -> (Redis, BatchMirror) {
        let redis = Redis::start().await;
        let broker = Broker::connect(&stampede_broker::Config::new(redis.url())).await.unwrap();
        (redis, BatchMirror::new(broker.snapshots()))
    }

    fn batch(revision: u64, completed: u64) -> Batch {
        let at = Timestamp::from_millisecond(1_700_000_000_000).unwrap();
        Batch {
            id: BatchId::generate(),
            event_id: EventId::generate(),
            owner: r#"ann","tickets":["x"]"#.into(),
            total: 3,
            completed,
            failed: 0,
            voided: 0,
            revision,
            created_at: at,
            updated_at: at,
        }
    }

    fn read(redis: &Redis, batch: &Batch) -> Value {
        serde_json::from_str(&redis.cli(&["GET", &format!("batch:{}", batch.id)])).unwrap()
    }

    fn ttl(redis: &Redis, batch: &Batch) -> u64 {
        redis.cli(&["TTL", &format!("batch:{}", batch.id)]).trim().parse().unwrap()
    }

    #[tokio::test]
    async fn the_newest_revision_wins_whatever_the_order() {
        let (redis, mirror) = start().await;
        let first = batch(1, 0);
        let second = Batch { revision: 2, completed: 1, ..first.clone() };
        let third = Batch { revision: 10, completed: 2, ..first.clone() };
        let tickets: Vec<TicketId> = (0..3).map(|_| TicketId::generate()).collect();

        mirror.put(&first, &tickets).await.unwrap();
        assert!(mirror.update(&third).await.unwrap());
        assert!(mirror.update(&second).await.unwrap(), "late, but of a known batch");
        assert_eq!(read(&redis, &first)["completed"], 2);
        mirror.put(&second, &tickets).await.unwrap();

        let state = read(&redis, &first);
        assert_eq!((&state["completed"], &state["revision"]), (&json!(2), &json!(10)));
        assert_eq!(state["tickets"], json!(tickets));
        assert_eq!(state["userId"], first.owner);
        assert_eq!(state["status"], "processing");
        assert_eq!(state["createdAt"], 1_700_000_000_000_u64);
    }

    #[tokio::test]
    async fn an_update_of_an_unknown_batch_says_so_and_writes_nothing() {
        let (redis, mirror) = start().await;
        let unknown = batch(1, 0);
        assert!(!mirror.update(&unknown).await.unwrap());
        assert_eq!(redis.cli(&["DBSIZE"]).trim(), "0");
    }

    #[tokio::test]
    async fn a_batch_in_progress_is_kept_longer_than_a_finished_one() {
        let (redis, mirror) = start().await;
        let open = batch(1, 2);
        let (week, month) = (7 * 24 * 3600, 30 * 24 * 3600);
        mirror.put(&open, &[]).await.unwrap();
        assert!((month - 60..=month).contains(&ttl(&redis, &open)));
        mirror.update(&Batch { revision: 2, completed: 3, ..open.clone() }).await.unwrap();
        assert!((week - 60..=week).contains(&ttl(&redis, &open)));
        assert_eq!(read(&redis, &open)["status"], "completed");
        // A ticket is made again: the batch must not expire meanwhile.
        mirror.update(&Batch { revision: 3, completed: 2, ..open.clone() }).await.unwrap();
        assert!((month - 60..=month).contains(&ttl(&redis, &open)));
    }
}
