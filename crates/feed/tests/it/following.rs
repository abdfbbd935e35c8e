//! The hub and its readers: nothing is missed, nothing comes twice, and slow readers cost nothing.

use std::collections::HashSet;

use stampede_feed::{Heard, Position};
use stampede_testkit::eventually;

use crate::stage::{PATIENCE, Stage, hear};

/// Waits until the stream has so many entries.
async fn told_of(stage: &Stage, count: usize) {
    eventually(PATIENCE, async || (stage.length() == count).then_some(())).await;
}

#[tokio::test]
async fn a_reader_hears_what_comes_and_resumes_on_another_node() {
    let stage = Stage::start().await;
    let (hub, reading) = stage.hub();
    let relay = stage.relay("a");
    let mut reader = hub.follow(None).await.unwrap();
    let ids = stage.happen(150).await;
    let first = hear(&mut reader, 60).await;
    // The node dies; others go on.
    reading.kill();
    let more = stage.happen(150).await;
    let (other, _reading) = stage.hub();
    let mut reader = other.follow(Some(first[59].position)).await.unwrap();
    let second = hear(&mut reader, 240).await;
    let heard: Vec<_> = first.iter().chain(&second).map(|event| event.event_id.unwrap()).collect();
    let wanted: Vec<_> = ids.into_iter().chain(more).collect();
    assert_eq!(heard, wanted);
    relay.end().await;
}

#[tokio::test]
async fn events_that_come_while_a_reader_catches_up_are_neither_missed_nor_doubled() {
    let stage = Stage::start().await;
    let (hub, _reading) = stage.hub();
    let relay = stage.relay("a");
    let before = stage.happen(350).await;
    told_of(&stage, 350).await;
    let mut reader = hub.follow(Some(Position::START)).await.unwrap();
    let (during, heard) = tokio::join!(stage.happen(350), hear(&mut reader, 700));
    let heard: Vec<_> = heard.iter().map(|event| event.event_id.unwrap()).collect();
    assert_eq!(heard, before.into_iter().chain(during).collect::<Vec<_>>());
    relay.end().await;
}

#[tokio::test]
async fn a_position_that_is_gone_is_reset() {
    let stage = Stage::start().await;
    let (hub, _reading) = stage.hub();
    let relay = stage.relay("a");
    stage.happen(3).await;
    told_of(&stage, 3).await;
    for gone in ["5-0", "99999999999999-0"] {
        let mut reader = hub.follow(Some(gone.parse().unwrap())).await.unwrap();
        assert!(matches!(reader.next().await, Heard::Reset(_)), "{gone}");
        let new = stage.happen(1).await;
        assert_eq!(hear(&mut reader, 1).await[0].event_id, Some(new[0]));
    }
    relay.end().await;
}

#[tokio::test]
async fn a_slow_reader_is_told_to_resume_and_misses_nothing() {
    let stage = Stage::start().await;
    let (hub, _reading) = stage.hub();
    let mut slow = hub.follow(None).await.unwrap();
    let mut quick = hub.follow(None).await.unwrap();
    let entry = |n: usize| {
        let id = stampede_model::FeedEventId::generate();
        let event = format!(
            r#"{{"id":"{id}","kind":"queue.paused","at":"2026-11-18T15:00:00Z","data":{{"queue":"q{n}"}}}}"#
        );
        stampede_broker::NewEntry { id: id.to_string(), event }
    };
    let lease = stage.broker.relay_lease("a", "1", PATIENCE);
    let (held, _) = lease.hold().await.unwrap().unwrap();
    // The stream is not empty any more, so positions have a meaning after it is cut.
    stage.broker.feed().append(&held, &[entry(6_000)], 100_000).await.unwrap();
    hear(&mut slow, 1).await;
    hear(&mut quick, 1).await;
    for part in 0..30 {
        let entries: Vec<_> = (0..200).map(|n| entry(part * 200 + n)).collect();
        stage.broker.feed().append(&held, &entries, 100_000).await.unwrap();
        hear(&mut quick, 200).await;
    }
    let position = slow.position();
    assert_eq!(slow.next().await, Heard::Lagged);
    let mut resumed = hub.follow(Some(position)).await.unwrap();
    let heard = hear(&mut resumed, 6_000).await;
    let queues: HashSet<_> = heard.iter().filter_map(|event| event.queue.clone()).collect();
    assert_eq!(queues.len(), 6_000);
}

#[tokio::test]
async fn an_event_that_is_told_twice_is_heard_once() {
    let stage = Stage::start().await;
    let (hub, _reading) = stage.hub();
    let mut live = hub.follow(None).await.unwrap();
    let id = stampede_model::FeedEventId::generate();
    let event = |queue: &str| {
        let id = if queue == "end" { stampede_model::FeedEventId::generate() } else { id };
        let event = format!(
            r#"{{"id":"{id}","kind":"queue.paused","at":"2026-11-18T15:00:00Z","data":{{"queue":"{queue}"}}}}"#
        );
        stampede_broker::NewEntry { id: id.to_string(), event }
    };
    for queue in ["a", "a", "end"] {
        stage.broker.feed().add(&event(queue), 1_000).await.unwrap();
    }
    let queues = async |reader: &mut stampede_feed::Reader| {
        let heard = hear(reader, 2).await;
        heard.iter().map(|event| event.queue.clone().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(queues(&mut live).await, ["a", "end"]);
    let mut resumed = hub.follow(Some(Position::START)).await.unwrap();
    assert_eq!(queues(&mut resumed).await, ["a", "end"]);
}

#[tokio::test]
async fn readers_end_when_the_node_stops_and_follow_through_an_outage() {
    let mut stage = Stage::start().await;
    let (hub, reading) = stage.hub();
    let relay = stage.relay("a");
    let mut reader = hub.follow(None).await.unwrap();
    stage.happen(1).await;
    hear(&mut reader, 1).await;
    stage.redis.stop().await;
    stage.redis.start_again().await;
    // A Redis that came back without its data says so first.
    let new = stage.happen(1).await;
    let heard = loop {
        match tokio::time::timeout(PATIENCE, reader.next()).await.unwrap() {
            Heard::Event(event) => break event,
            Heard::Reset(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(heard.event_id, Some(new[0]));
    reading.end().await;
    assert_eq!(reader.next().await, Heard::Ended);
    relay.end().await;
}
