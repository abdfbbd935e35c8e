//! A pause means a pause: after its answer, no more messages arrive than it says are in flight.
//!
//! `STAMPEDE_PAUSE_MESSAGES` is the number of messages (400), `STAMPEDE_PAUSES` the number of pauses (4).

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::recorder::Recorder;
use super::{HERE, completed, large_campaign, organiser, size, until, verb};
use crate::start;

/// Messages in a second.
const RATE: usize = 100;
/// How long the provider takes to answer: so long a message is in flight.
const LATENCY: Duration = Duration::from_millis(50);
/// Longer than a worker believes what it has read of a campaign, which is half a second.
const STALE: Duration = Duration::from_millis(700);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_a_hundred_messages_a_second_only_those_in_flight_arrive_after_a_pause() {
    let messages = size("STAMPEDE_PAUSE_MESSAGES", 400);
    let pauses = size("STAMPEDE_PAUSES", 4);
    let recorder = Recorder::start(LATENCY).await;
    let app = start(&[HERE, ("WORKER_COUNT", "2")]).await;
    let ann = organiser(&app, "ann");
    recorder.account(&ann, "hook", RATE, Duration::from_secs(1)).await;
    let path = large_campaign(&ann, "hook", messages).await;
    verb(&ann, &path, "start").await.expect(200);
    for number in 1..=pauses {
        recorder.has(messages * number / (pauses + 1)).await;
        let paused = verb(&ann, &path, "pause").await.expect(200);
        let come = recorder.count();
        assert_eq!(
            (&paused["status"], &paused["counts"]["queued"]),
            (&json!("paused"), &json!(0)),
            "{paused}"
        );
        let in_flight = paused["inFlight"].as_u64().unwrap() as usize;
        until(&ann, &path, |contract| contract["counts"]["sending"] == 0).await;
        sleep(STALE).await;
        let late = recorder.count() - come;
        println!("pause {number}: {in_flight} in flight, {late} arrived after the answer");
        assert!(late <= in_flight, "{late} arrived after the answer: {paused}");
        let still = ann.get(&path).await.expect(200);
        assert_eq!(still["counts"]["sent"], recorder.count(), "each that arrived counts: {still}");
        verb(&ann, &path, "resume").await.expect(200);
    }
    completed(&ann, &path).await;
    assert_eq!(recorder.assert_agrees(&ann, &path).await, (messages as u64, 0));
}
