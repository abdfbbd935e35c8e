//! The feed: what outsiders are told when something has happened. Live streams and webhooks send it.
//!
//! [`Change`] is the closed list of everything that is told, [`Kind`] its names. A stored kind is written into the store's
//! outbox in the transaction of the change itself, so it is told if and only if the change is committed. The other kinds
//! live in Redis only and may be lost.
//!
//! Adding a kind? Add a line to the list here, write it where the change is made, and add a row to docs/live.md.
//! Names and fields are contracts: never rename one. No data holds a secret, an address for mail or a guest's name.

mod data;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::data::{
    AlertData, BatchProgress, CampaignData, DeadLetterData, EventData, FailedTicket, MadeTicket,
    MadeTickets, NodeData, QueueData, ScalingData, ScanData, TicketData, WorkerData,
};

/// Tickets that one `tickets.completed` names at most.
pub const TICKETS_PER_CHANGE: usize = 100;

/// The subject of a kind, which decides who may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Events, orders and tickets of a user.
    Ticketing,
    /// Scans at the doors of an event.
    Door,
    /// Campaigns of a user.
    Campaign,
    /// A queue.
    Queue,
    /// Nodes, workers and scaling.
    Cluster,
}

/// Declares kinds: variant, data, name, subject, and whether the store's outbox keeps it.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($data:ty) = $name:literal, $subject:ident, $stored:literal;)*) => {
        /// The name of something that happens.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $variant,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The names of all kinds, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The name on the wire. It never changes.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The subject.
            pub fn subject(self) -> Subject {
                match self { $(Self::$variant => Subject::$subject,)* }
            }

            /// Whether the change is in the outbox before it is told, so that it is never lost.
            pub fn is_stored(self) -> bool {
                match self { $(Self::$variant => $stored,)* }
            }
        }

        /// Something that has happened, with its data.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", content = "data")]
        #[schemars(rename = "FeedChange")]
        pub enum Change {
            $($(#[$doc])* #[serde(rename = $name)] $variant($data),)*
        }

        impl Change {
            /// Its name.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$variant(_) => Kind::$variant,)* }
            }

            /// Its data as JSON.
            pub fn data(&self) -> String {
                // Structs of texts and numbers always serialise.
                match self { $(Self::$variant(data) => serde_json::to_string(data).unwrap_or_default(),)* }
            }

            /// Reads the data of a kind.
            pub fn parse(kind: Kind, data: &str) -> serde_json::Result<Self> {
                match kind { $(Kind::$variant => serde_json::from_str(data).map(Self::$variant),)* }
            }
        }
    };
}

kinds! {
    /// An event was created.
    EventCreated(EventData) = "event.created", Ticketing, true;
    /// Fields of an event were changed.
    EventChanged(EventData) = "event.changed", Ticketing, true;
    /// An event was deleted.
    EventDeleted(EventData) = "event.deleted", Ticketing, true;
    /// An order was accepted.
    BatchCreated(BatchProgress) = "batch.created", Ticketing, true;
    /// Counters of an order have changed, and tickets of it are still to be made.
    BatchProgressed(BatchProgress) = "batch.progressed", Ticketing, true;
    /// No ticket of an order is left to be made. Comes again if a ticket is made again.
    BatchCompleted(BatchProgress) = "batch.completed", Ticketing, true;
    /// An order was cancelled: its tickets that were not made are void.
    BatchCancelled(BatchProgress) = "batch.cancelled", Ticketing, true;
    /// PDFs of an order are ready.
    TicketsCompleted(MadeTickets) = "tickets.completed", Ticketing, true;
    /// The PDF of a ticket could not be made.
    TicketFailed(FailedTicket) = "ticket.failed", Ticketing, true;
    /// A ticket was edited; its PDF is made again.
    TicketChanged(TicketData) = "ticket.changed", Ticketing, true;
    /// A ticket was withdrawn.
    TicketVoided(TicketData) = "ticket.voided", Ticketing, true;
    /// A ticket was issued anew: older paper is refused.
    TicketReissued(TicketData) = "ticket.reissued", Ticketing, true;
    /// A ticket was deleted.
    TicketDeleted(TicketData) = "ticket.deleted", Ticketing, true;
    /// A ticket is refused at every door until the block is lifted.
    TicketBlocked(TicketData) = "ticket.blocked", Ticketing, true;
    /// The block of a ticket was lifted.
    TicketUnblocked(TicketData) = "ticket.unblocked", Ticketing, true;
    /// A ticket was scanned, and let in or refused.
    ScanRecorded(ScanData) = "scan.recorded", Door, true;
    /// A scan was taken back.
    ScanUndone(ScanData) = "scan.undone", Door, true;
    /// A campaign was made.
    CampaignCreated(CampaignData) = "campaign.created", Campaign, true;
    /// A campaign is in another state, or a person has changed it.
    CampaignChanged(CampaignData) = "campaign.changed", Campaign, true;
    /// Recipients of a campaign are in other states; about once a second while it runs.
    CampaignProgressed(CampaignData) = "campaign.progressed", Campaign, true;
    /// A campaign was deleted.
    CampaignDeleted(CampaignData) = "campaign.deleted", Campaign, true;
    /// A job failed permanently.
    JobDeadLettered(DeadLetterData) = "job.dead_lettered", Queue, false;
    /// Workers take no more jobs of a queue.
    QueuePaused(QueueData) = "queue.paused", Queue, false;
    /// Workers take jobs of a queue again.
    QueueResumed(QueueData) = "queue.resumed", Queue, false;
    /// A node was started.
    NodeStarted(NodeData) = "node.started", Cluster, false;
    /// A node was stopped in order.
    NodeEnded(NodeData) = "node.ended", Cluster, false;
    /// A worker process was started.
    WorkerStarted(WorkerData) = "worker.started", Cluster, false;
    /// The coordinator has decided about the workers of a node.
    ScalingDecided(ScalingData) = "scaling.decided", Cluster, false;
    /// Operators should look.
    Alert(AlertData) = "alert", Cluster, false;
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|kind| kind.as_str() == text);
        found.copied().ok_or_else(|| format!("{text:?} is no kind of event"))
    }
}

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Kind {
    fn schema_name() -> Cow<'static, str> {
        "FeedKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::NAMES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, BatchId, EventId, Timestamp};

    #[test]
    fn names_are_dotted_unique_and_read_back() {
        let mut names = Kind::NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '.' || c == '_';
            assert!(kind.as_str().chars().all(is_plain), "{kind}");
        }
        assert!("batch.finished".parse::<Kind>().is_err());
    }

    #[test]
    fn a_change_reads_back_from_its_kind_and_data() {
        let at: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let batch = Batch {
            id: BatchId::generate(),
            event_id: EventId::generate(),
            owner: "ann".into(),
            total: 3,
            completed: 1,
            failed: 0,
            voided: 0,
            revision: 7,
            created_at: at,
            updated_at: at,
        };
        let change = Change::of_batch(&batch);
        assert_eq!(change.kind(), Kind::BatchProgressed);
        assert_eq!(Change::parse(change.kind(), &change.data()).unwrap(), change);
        let data = change.data();
        assert!(data.starts_with(&format!(r#"{{"batchId":"{}","total":3,"#, batch.id)), "{data}");
        let done = Batch { completed: 3, ..batch };
        assert_eq!(Change::of_batch(&done).kind(), Kind::BatchCompleted);
    }
}
