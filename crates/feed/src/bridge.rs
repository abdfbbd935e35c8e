//! Messages on Redis channels as events of the feed, for what nothing stores: dead letters, workers, scaling, alerts.
//!
//! The node that relays listens to the channels and appends what it hears. A message that comes while no node relays is
//! lost, as it is for every subscriber of the channel.

use std::time::Duration;

use stampede_broker::{Broker, NewEntry};
use stampede_model::feed::{AlertData, Change, DeadLetterData, ScalingData, WorkerData};
use stampede_model::{FeedEventId, Timestamp};
use stampede_wire::announcement::Announcement;
use stampede_wire::feed::Event;
use tokio::time::sleep;

use crate::keep::Sizes;

/// The channels that are bridged.
const CHANNELS: [&str; 4] =
    ["queue:dead-letter", "worker:started", "scaling:decisions", "cluster:alert"];

/// Pause before the channels are listened to again.
const PAUSE: Duration = Duration::from_millis(300);

/// Appends what is heard on the channels, for ever. It is to be dropped when the node no longer relays.
pub(crate) async fn run(broker: &Broker) {
    let names = CHANNELS.map(str::to_owned);
    loop {
        if let Ok(mut heard) = broker.subscribe(&names).await {
            while let Some((channel, text)) = heard.next_of_channel().await {
                if let Some(change) = change(&channel, &text) {
                    publish(broker, change).await;
                }
            }
        }
        sleep(PAUSE).await;
    }
}

/// The change that a message on a channel tells of; `None`: it is not bridged, or cannot be read.
pub(crate) fn change(channel: &str, text: &str) -> Option<Change> {
    Some(match Announcement::parse(channel, text).ok()? {
        Announcement::DeadLetter(letter) => Change::JobDeadLettered(DeadLetterData {
            queue: letter.queue,
            job_id: letter.job_id,
            name: letter.name,
            reason: letter.reason,
        }),
        Announcement::WorkerStarted(started) => Change::WorkerStarted(WorkerData {
            worker: started.worker_id,
            node: started.instance_id,
        }),
        Announcement::ScalingDecision(decision) => Change::ScalingDecided(ScalingData {
            node: decision.node_id,
            action: word(decision.action.as_ref()?)?,
            reason: decision.reason,
        }),
        Announcement::ClusterAlert(alert) => Change::Alert(AlertData {
            alert: alert.kind?,
            subject: alert.subject.unwrap_or_default(),
            message: alert.message.unwrap_or_default(),
        }),
        // In the outbox already.
        Announcement::BatchCreated(_)
        | Announcement::TicketCompleted(_)
        | Announcement::TicketFailed(_)
        | Announcement::ScalingEvent(_) => return None,
    })
}

/// The word that a value is written as.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// An event that nothing stores, as an entry of the stream.
pub(crate) fn entry(change: Change) -> NewEntry {
    let id = FeedEventId::generate();
    let at = Timestamp::from_millisecond(id.made_at_ms()).unwrap_or(Timestamp::UNIX_EPOCH);
    let event = Event { id, at, user_id: None, event_id: None, batch_id: None, change };
    // Structs of texts and numbers always serialise.
    NewEntry { id: id.to_string(), event: serde_json::to_string(&event).unwrap_or_default() }
}

/// Appends an event that nothing stores. Best effort: if Redis is away, it is lost.
pub async fn publish(broker: &Broker, change: Change) {
    let entry = entry(change);
    if let Err(error) = broker.feed().add(&entry, Sizes::default().keep()).await {
        tracing::debug!(%error, "an event of the feed is lost");
    }
}

#[cfg(test)]
mod tests {
    use stampede_model::feed::Kind;

    use super::*;

    #[test]
    fn messages_of_every_bridged_channel_become_events() {
        for (channel, text, kind) in [
            (
                "queue:dead-letter",
                r#"{"queue":"q","jobId":"j","name":"n","reason":"r"}"#,
                Kind::JobDeadLettered,
            ),
            (
                "worker:started",
                r#"{"workerId":"w","instanceId":"n","timestamp":5}"#,
                Kind::WorkerStarted,
            ),
            (
                "scaling:decisions",
                r#"{"action":"scale_up","nodeId":"n","reason":"r"}"#,
                Kind::ScalingDecided,
            ),
            ("cluster:alert", r#"{"kind":"node-dead","subject":"n","message":"m"}"#, Kind::Alert),
        ] {
            assert!(CHANNELS.contains(&channel));
            let change = change(channel, text).unwrap();
            assert_eq!(change.kind(), kind);
            assert!(!kind.is_stored());
            let read: Event = serde_json::from_str(&entry(change.clone()).event).unwrap();
            assert_eq!(read.change, change);
        }
    }

    #[test]
    fn strange_messages_are_left_out() {
        for (channel, text) in [
            ("queue:dead-letter", "no JSON"),
            ("cluster:alert", "{}"),
            ("scaling:decisions", r#"{"nodeId":"n"}"#),
            ("batch:created", r#"{"batchId":"x"}"#),
            ("elsewhere", "{}"),
        ] {
            assert_eq!(change(channel, text), None, "{channel}");
        }
    }
}
