//! The relay: every row reaches the stream, whatever dies in between.

use std::collections::HashSet;

use stampede_feed::Position;
use stampede_testkit::eventually;

use crate::stage::{PATIENCE, Stage};

/// The ids of all events in the stream, in order.
async fn told(stage: &Stage) -> Vec<String> {
    let page = stage.broker.feed().after(Position::START, 100_000).await.unwrap();
    page.entries.into_iter().map(|entry| entry.id).collect()
}

async fn drained(stage: &Stage) {
    eventually(PATIENCE, async || match stage.store.outbox_size().await.unwrap().rows {
        0 => Ok(()),
        rows => Err(format!("{rows} rows are in the outbox")),
    })
    .await;
}

#[tokio::test]
async fn rows_reach_the_stream_in_order_and_leave_the_outbox() {
    let stage = Stage::start().await;
    stage.happen(450).await;
    let rows = stage.store.outbox(1_000).await.unwrap();
    let relay = stage.relay("a");
    drained(&stage).await;
    let wanted: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
    assert_eq!(told(&stage).await, wanted);
    relay.end().await;
    assert_eq!(stage.redis.cli(&["GET", "stampede:{feed}:relay"]).trim(), "");
}

#[tokio::test]
async fn of_two_nodes_one_relays_and_the_other_takes_over_when_it_ends() {
    let stage = Stage::start().await;
    let first = stage.relay("a");
    stage.happen(3).await;
    drained(&stage).await;
    let holder = stage.redis.cli(&["GET", "stampede:{feed}:relay"]);
    assert!(holder.contains(" a "), "{holder}");
    let second = stage.relay("b");
    stage.happen(3).await;
    drained(&stage).await;
    first.end().await;
    stage.happen(3).await;
    drained(&stage).await;
    let holder = stage.redis.cli(&["GET", "stampede:{feed}:relay"]);
    assert!(holder.contains(" b "), "{holder}");
    assert_eq!(told(&stage).await.len(), 9);
    second.end().await;
}

#[tokio::test]
async fn events_of_a_relay_that_died_before_it_settled_are_told_once() {
    let stage = Stage::start().await;
    stage.happen(5).await;
    let rows = stage.store.outbox(100).await.unwrap();
    // What a relay does before it settles.
    let lease = stage.broker.relay_lease("dead", "1", std::time::Duration::from_secs(1));
    let (held, _) = lease.hold().await.unwrap().unwrap();
    let entries: Vec<stampede_broker::NewEntry> = rows
        .iter()
        .map(|row| stampede_broker::NewEntry { id: row.id.to_string(), event: "{}".into() })
        .collect();
    assert!(stage.broker.feed().append(&held, &entries, 1_000).await.unwrap());
    assert_eq!(stage.length(), 5);

    let relay = stage.relay("b");
    drained(&stage).await;
    assert_eq!(told(&stage).await.len(), 5, "none is told twice");
    stage.happen(2).await;
    drained(&stage).await;
    let told = told(&stage).await;
    assert_eq!(told.iter().collect::<HashSet<_>>().len(), 7);
    // The former relay is fenced off.
    assert!(!stage.broker.feed().append(&held, &entries, 1_000).await.unwrap());
    relay.end().await;
}

#[tokio::test]
async fn a_redis_that_is_away_delays_events_and_loses_none() {
    let mut stage = Stage::start().await;
    let relay = stage.relay("a");
    stage.happen(3).await;
    drained(&stage).await;
    stage.redis.stop().await;
    stage.happen(20).await;
    assert_eq!(stage.store.outbox_size().await.unwrap().rows, 20);
    stage.redis.start_again().await;
    drained(&stage).await;
    // A Redis that keeps nothing has the new ones only.
    assert!(stage.length() >= 20, "{}", stage.length());
    relay.end().await;
}

#[tokio::test]
async fn messages_on_channels_are_bridged() {
    let stage = Stage::start().await;
    let relay = stage.relay("a");
    let letter = r#"{"queue":"mails","jobId":"j","name":"n","reason":"r"}"#;
    eventually(PATIENCE, async || {
        stage.redis.cli(&["PUBLISH", "queue:dead-letter", letter]);
        (stage.length() > 0).then_some(())
    })
    .await;
    let entries = stage.broker.feed().after(Position::START, 1).await.unwrap().entries;
    assert!(entries[0].event.contains("\"kind\":\"job.dead_lettered\""), "{}", entries[0].event);
    relay.end().await;
}
