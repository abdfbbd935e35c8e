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
            Heard::Reset(_) | Heard::CaughtUp => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(heard.event_id, Some(new[0]));
    reading.end().await;
    assert_eq!(reader.next().await, Heard::Ended);
    relay.end().await;
}

/// Appends so many entries at once, and keeps all or only the newest.
async fn append(stage: &Stage, count: usize, keep: u64) {
    let feed = stage.broker.feed();
    let lease = stage.broker.relay_lease("a", "1", PATIENCE);
    let (held, _) = lease.hold().await.unwrap().unwrap();
    for _ in 0..count.div_ceil(200) {
        let entries: Vec<_> = (0..200).map(|_| paused()).collect();
        assert!(feed.append(&held, &entries, 100_000).await.unwrap());
    }
    stage.redis.cli(&["XTRIM", "stampede:{feed}", "MAXLEN", &keep.to_string()]);
}

fn paused() -> stampede_broker::NewEntry {
    let id = stampede_model::FeedEventId::generate();
    let event = format!(
        r#"{{"id":"{id}","kind":"queue.paused","at":"2026-11-18T15:00:00Z","data":{{"queue":"q"}}}}"#
    );
    stampede_broker::NewEntry { id: id.to_string(), event }
}

/// Waits for a reset and returns how many events came before it.
async fn until_reset(reader: &mut stampede_feed::Reader) -> usize {
    let mut events = 0;
    loop {
        match tokio::time::timeout(PATIENCE, reader.next()).await.unwrap() {
            Heard::Event(_) => events += 1,
            Heard::CaughtUp => {}
            Heard::Reset(_) => return events,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_reader_that_catches_up_is_told_when_the_stream_is_cut_before_it() {
    let stage = Stage::start().await;
    append(&stage, 1_000, 1_000).await;
    let (hub, _reading) = stage.hub();
    let mut reader = hub.follow(Some(Position::START)).await.unwrap();
    // It has read a page of 100, and is slower than what comes.
    hear(&mut reader, 1).await;
    append(&stage, 1_000, 600).await;
    assert_eq!(until_reset(&mut reader).await, 99);
    hear(&mut reader, 600).await;
}

#[tokio::test]
async fn a_hub_that_was_cut_off_tells_that_the_stream_was_cut_meanwhile() {
    let stage = Stage::start().await;
    append(&stage, 200, 200).await;
    let proxy = stampede_testkit::Proxy::start(stage.redis.port()).await;
    let config = stampede_broker::Config::new(proxy.instead_of(&stage.redis.url()));
    let broker = stampede_broker::Broker::connect(&config).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let hub = stampede_feed::Hub::new(&broker, stop.clone());
    let reading = tokio::spawn(hub.clone().run());
    let mut reader = hub.follow(None).await.unwrap();
    append(&stage, 200, 400).await;
    hear(&mut reader, 200).await;
    proxy.silence();
    append(&stage, 1_000, 300).await;
    proxy.mend();
    // The call that was waiting has its answer, which arrives late.
    assert!(until_reset(&mut reader).await <= 200);
    hear(&mut reader, 300).await;
    stop.cancel();
    reading.await.unwrap();
}

#[tokio::test]
async fn a_position_whose_entry_is_lost_is_reset_though_later_ones_are_there() {
    let stage = Stage::start().await;
    append(&stage, 200, 200).await;
    let (hub, _reading) = stage.hub();
    let mut reader = hub.follow(Some(Position::START)).await.unwrap();
    let last = hear(&mut reader, 200).await[199].position;
    // What a Redis does that loses its last second.
    stage.redis.cli(&["XDEL", "stampede:{feed}", &last.to_string()]);
    append(&stage, 200, 400).await;
    let mut resumed = hub.follow(Some(last)).await.unwrap();
    assert_eq!(until_reset(&mut resumed).await, 0);
}

#[tokio::test]
async fn the_start_of_a_long_stream_is_reset_and_then_everything_that_is_kept() {
    let stage = Stage::start().await;
    append(&stage, 5_200, 100_000).await;
    let (hub, _reading) = stage.hub();
    let mut reader = hub.follow(Some(Position::START)).await.unwrap();
    assert_eq!(until_reset(&mut reader).await, 0);
    assert_eq!(reader.position(), Position::START);
    hear(&mut reader, 5_200).await;
}

#[tokio::test]
async fn those_who_catch_up_or_resume_after_a_restart_of_redis_are_told_of_it() {
    let config = [("appendonly", "yes")];
    let mut stage = Stage::start_with(stampede_testkit::Redis::with_config(&config).await).await;
    append(&stage, 1_000, 1_000).await;
    let (hub, _reading) = stage.hub();
    let mut behind = hub.follow(Some(Position::START)).await.unwrap();
    let last = hear(&mut behind, 1).await[0].position;
    let server = stage.redis.cli(&["GET", "stampede:{feed}:server"]);
    eventually(PATIENCE, async || {
        (stage.redis.cli(&["GET", "stampede:{feed}:server"]).len() > 10).then_some(())
    })
    .await;
    stage.redis.kill();
    stage.redis.start_again().await;
    eventually(PATIENCE, async || {
        (stage.redis.cli(&["GET", "stampede:{feed}:server"]) != server).then_some(())
    })
    .await;
    assert_eq!(until_reset(&mut behind).await, 999);
    let mut resumed = hub.follow(Some(last)).await.unwrap();
    assert_eq!(until_reset(&mut resumed).await, 999);
    append(&stage, 200, 100_000).await;
    hear(&mut resumed, 200).await;
    // However many nodes notice it, it is told once.
    let (other, _reading) = stage.hub();
    let mut third = other.follow(Some(last)).await.unwrap();
    assert_eq!(until_reset(&mut third).await, 999);
    hear(&mut third, 200).await;
}
