//! Ids: UUIDv7, so that they sort by the time they were made, each kind its own type.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;

/// The text was not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an id (expected a UUID like 01890a5d-ac96-774b-bcce-b302099a8057)")]
pub struct ParseIdError(String);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps an existing UUID.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The id as it stands in binary formats, most significant byte first.
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }

            /// Reads [`Self::to_bytes`] back.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// Makes a fresh id; ids made later sort after ids made earlier by the same process.
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": "uuid" })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                // Only the hyphenated form: one ticket must not have several spellings of its id.
                match Uuid::try_parse(text) {
                    Ok(uuid) if text.len() == 36 => Ok(Self(uuid)),
                    _ => Err(ParseIdError(text.chars().take(64).collect())),
                }
            }
        }
    };
}

id!(
    /// Names one event.
    EventId
);
id!(
    /// Names one ticket; also the id of the job that makes its PDF.
    TicketId
);
id!(
    /// Names the batch of tickets of one order.
    BatchId
);
id!(
    /// Names an organiser's template.
    TemplateId
);
id!(
    /// Names an API key (not the secret itself).
    KeyId
);
id!(
    /// Names a check-in list. The built-in list of an event has the event's id.
    ListId
);
id!(
    /// Names a gate of an event.
    GateId
);
id!(
    /// Names one scan in the log of an event.
    ScanId
);
id!(
    /// Names one entry of the audit log; tells when it was made.
    AuditId
);
id!(
    /// Names one event of the feed, which live streams and webhooks send.
    FeedEventId
);
id!(
    /// Names a webhook: an endpoint that is told what happens.
    WebhookId
);
id!(
    /// Names the delivery of one message to one webhook; also the id of its job.
    DeliveryId
);
id!(
    /// Names a campaign; also the id of its job, behind `contract-`.
    CampaignId
);
id!(
    /// Names a recipient of a campaign; also the id of the job that sends its message.
    RecipientId
);
id!(
    /// Names one run of the job of a message. Only the run that marked a recipient as being sent may say how it ended.
    RunId
);
id!(
    /// Names one internal error: the client is told the id, the log has the error under it.
    ErrorId
);

impl AuditId {
    /// When the entry was made, to the millisecond.
    pub fn at(self) -> Timestamp {
        let ms = (self.0.as_u128() >> 80) as i64;
        Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Sorts before all entries that are made at this moment or later, and after all earlier ones.
    pub fn earliest(at: Timestamp) -> Self {
        let ms = u128::try_from(at.as_millisecond()).unwrap_or_default();
        Self(Uuid::from_u128(ms << 80))
    }
}

impl FeedEventId {
    /// When the id was made, in milliseconds since 1970.
    pub fn made_at_ms(self) -> i64 {
        // The first 48 bits of a UUIDv7.
        (self.0.as_u128() >> 80) as i64
    }
}

impl ListId {
    /// The built-in list of an event.
    pub fn main_of(event: EventId) -> Self {
        Self(event.0)
    }

    /// Whether this is the built-in list of that event.
    pub fn is_main_of(self, event: EventId) -> bool {
        self == Self::main_of(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_a_round_trip_through_text() {
        let id = TicketId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn later_ids_sort_after_earlier_ones_also_as_text() {
        let ids: Vec<TicketId> = (0..1000).map(|_| TicketId::generate()).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().map(TicketId::to_string).is_sorted());
    }

    #[test]
    fn only_the_hyphenated_spelling_is_an_id() {
        for text in ["", "x", "../../etc/passwd", "01890a5dac96774bbcceb302099a8057"] {
            assert!(text.parse::<TicketId>().is_err(), "{text}");
        }
    }
}
