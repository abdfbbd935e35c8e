//! `batch:{id}` for outside readers.

use serde_json::{Value, json};
use stampede_model::{Batch, BatchId, EventId, TicketId, Timestamp};

use crate::stage::Stage;

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

async fn read(stage: &Stage, batch: &Batch) -> Value {
    let text: String = stage.ask(&format!("GET batch:{}", batch.id)).await;
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_newest_revision_wins_whatever_the_order() {
    let stage = Stage::start().await;
    let mirror = stage.broker.batch_mirror();
    let first = batch(1, 0);
    let second = Batch { revision: 2, completed: 1, ..first.clone() };
    let third = Batch { revision: 10, completed: 2, ..first.clone() };
    let tickets: Vec<TicketId> = (0..3).map(|_| TicketId::generate()).collect();

    mirror.put(&first, &tickets).await.unwrap();
    assert!(mirror.update(&third).await.unwrap());
    assert!(mirror.update(&second).await.unwrap(), "late, but of a known batch");
    assert_eq!(read(&stage, &first).await["completed"], 2);
    mirror.put(&second, &tickets).await.unwrap();

    let state = read(&stage, &first).await;
    assert_eq!((&state["completed"], &state["revision"]), (&json!(2), &json!(10)));
    assert_eq!(state["tickets"], json!(tickets));
    assert_eq!(state["userId"], first.owner);
    assert_eq!(state["status"], "processing");
    assert_eq!(state["createdAt"], 1_700_000_000_000_u64);
}

#[tokio::test]
async fn an_update_of_an_unknown_batch_says_so_and_writes_nothing() {
    let stage = Stage::start().await;
    let unknown = batch(1, 0);
    assert!(!stage.broker.batch_mirror().update(&unknown).await.unwrap());
    assert!(!stage.ask::<bool>(&format!("EXISTS batch:{}", unknown.id)).await);
}

#[tokio::test]
async fn a_batch_in_progress_is_kept_longer_than_a_finished_one() {
    let stage = Stage::start().await;
    let mirror = stage.broker.batch_mirror();
    let open = batch(1, 2);
    let ttl = format!("TTL batch:{}", open.id);
    let (week, month) = (7 * 24 * 3600, 30 * 24 * 3600);
    mirror.put(&open, &[]).await.unwrap();
    assert!((month - 60..=month).contains(&stage.ask::<i64>(&ttl).await));
    mirror.update(&Batch { revision: 2, completed: 3, ..open.clone() }).await.unwrap();
    assert!((week - 60..=week).contains(&stage.ask::<i64>(&ttl).await));
    assert_eq!(read(&stage, &open).await["status"], "completed");
    // A ticket is made anew: it must not vanish meanwhile.
    mirror.update(&Batch { revision: 3, completed: 2, ..open.clone() }).await.unwrap();
    assert!((month - 60..=month).contains(&stage.ask::<i64>(&ttl).await));
}
