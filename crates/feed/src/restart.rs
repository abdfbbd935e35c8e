//! A restart of Redis as an event of the stream: Redis may have lost the newest events, so readers read the state anew.
//!
//! It is an entry like any other, so that a client that resumes after a restart learns of it, too. It is told as `reset`.

use serde_json::value::RawValue;
use stampede_broker::NewEntry;
use stampede_model::{FeedEventId, Timestamp};
use stampede_wire::feed::Envelope;

use crate::seen::Seen;

/// Its kind. Clients never see it.
const KIND: &str = "feed.restarted";

/// The entry that tells of a restart.
pub(crate) fn entry() -> NewEntry {
    let id = FeedEventId::generate();
    let at = Timestamp::from_millisecond(id.made_at_ms()).unwrap_or(Timestamp::UNIX_EPOCH);
    let (kind, data) = (KIND.into(), RawValue::NULL);
    let (user_id, event_id, batch_id) = (None, None, None);
    let envelope = Envelope { id, kind, at, user_id, event_id, batch_id, data };
    NewEntry { id: id.to_string(), event: envelope.written() }
}

/// Whether an event of the stream tells of a restart.
pub(crate) fn is_one(seen: &Seen) -> bool {
    seen.kind_name == KIND
}

#[cfg(test)]
mod tests {
    use stampede_broker::{Entry, Position};

    use super::*;

    #[test]
    fn the_entry_is_recognised() {
        let NewEntry { id, event } = entry();
        let seen = Seen::read(Entry { position: Position::START, id, event }).unwrap();
        assert!(is_one(&seen));
        assert_eq!(seen.kind, None, "no kind that a client can ask for");
    }
}
