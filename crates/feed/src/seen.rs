//! An event as readers filter it, and who may see it.
//!
//! | subject | who sees it |
//! |---|---|
//! | events, orders, tickets | those who may read records of the owner; a key of one event only that event's |
//! | scans | the same, and who may admit to the event (scanners) |
//! | campaigns | those who may read records of the owner, with keys that are not limited |
//! | queues | administrators and viewers of `*`; a key of named queues only those |
//! | nodes, workers, scaling, alerts | administrators and viewers of `*`, with keys that are not limited |

use serde::Deserialize;
use stampede_broker::{Entry, Position};
use stampede_model::feed::{Kind, Subject};
use stampede_model::{BatchId, EventId, FeedEventId, Principal};
use stampede_wire::feed::Envelope;

/// An event of the stream, read once for all readers of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its place in the stream, from which a reader resumes.
    pub position: Position,
    /// Names the event.
    pub id: FeedEventId,
    /// The kind; `None`: a newer version's.
    pub kind: Option<Kind>,
    /// The kind as it is written.
    pub kind_name: String,
    /// The user whose records changed.
    pub owner: Option<String>,
    /// The ticketed event.
    pub event_id: Option<EventId>,
    /// The order.
    pub batch_id: Option<BatchId>,
    /// The queue.
    pub queue: Option<String>,
    /// The event as JSON, on one line.
    pub text: String,
}

/// The data of queues.
#[derive(Deserialize)]
struct OfQueue {
    queue: Option<String>,
}

impl Seen {
    /// Reads an entry; `None`: it is no event of ours.
    pub(crate) fn read(entry: Entry) -> Option<Self> {
        let envelope: Envelope<'_> = serde_json::from_str(&entry.event).ok()?;
        // A line break would end the message of a stream.
        if entry.event.contains(['\n', '\r']) {
            return None;
        }
        let kind: Option<Kind> = envelope.kind.parse().ok();
        let queue = match kind.map(Kind::subject) {
            Some(Subject::Queue) => {
                serde_json::from_str::<OfQueue>(envelope.data.get()).ok().and_then(|of| of.queue)
            }
            _ => None,
        };
        let (kind_name, owner) =
            (envelope.kind.into_owned(), envelope.user_id.map(|user| user.into_owned()));
        let (id, event_id, batch_id) = (envelope.id, envelope.event_id, envelope.batch_id);
        let (position, text) = (entry.position, entry.event);
        Some(Self { position, id, kind, kind_name, owner, event_id, batch_id, queue, text })
    }
}

/// Whether a caller may see an event.
pub fn may_see(caller: &Principal, event: &Seen) -> bool {
    let of_records = || {
        let reads = event.owner.as_deref().is_some_and(|owner| caller.may_read(owner));
        let in_scope =
            event.event_id.map_or(!caller.scope.is_limited(), |id| caller.scope.has_event(id));
        reads && in_scope
    };
    match event.kind.map(Kind::subject) {
        Some(Subject::Ticketing) => of_records(),
        Some(Subject::Door) => {
            let admits = || match (event.owner.as_deref(), event.event_id) {
                (Some(owner), Some(id)) => caller.may_admit(owner, id),
                _ => false,
            };
            of_records() || admits()
        }
        Some(Subject::Campaign) => {
            let reads = event.owner.as_deref().is_some_and(|owner| caller.may_read(owner));
            reads && !caller.scope.is_limited()
        }
        Some(Subject::Queue) => {
            let in_scope =
                event.queue.as_deref().is_some_and(|queue| caller.scope.has_queue(queue));
            caller.reads_everything() && in_scope
        }
        // A kind of a newer version may be about anything.
        Some(Subject::Cluster) | None => caller.reads_everything() && !caller.scope.is_limited(),
    }
}

/// What a reader asks for; an empty filter means everything that it may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these kinds.
    pub kinds: Option<Vec<Kind>>,
    /// Only of this ticketed event.
    pub target: Option<EventId>,
    /// Only of this order.
    pub batch: Option<BatchId>,
    /// Only of this queue.
    pub queue: Option<String>,
}

impl Filter {
    /// Whether the reader asks for an event.
    pub fn admits(&self, event: &Seen) -> bool {
        let kind = || match &self.kinds {
            Some(kinds) => event.kind.is_some_and(|kind| kinds.contains(&kind)),
            None => true,
        };
        let target = || self.target.is_none() || self.target == event.event_id;
        let batch = || self.batch.is_none() || self.batch == event.batch_id;
        let queue = || self.queue.is_none() || self.queue == event.queue;
        kind() && target() && batch() && queue()
    }
}

#[cfg(test)]
mod tests {
    use stampede_model::feed::{Change, NodeData, QueueData};
    use stampede_model::{EVERYBODY, Role, Scope};

    use super::*;

    fn event(kind: Kind, owner: Option<&str>, event_id: Option<EventId>) -> Seen {
        Seen {
            position: Position::START,
            id: FeedEventId::generate(),
            kind: Some(kind),
            kind_name: kind.to_string(),
            owner: owner.map(str::to_owned),
            event_id,
            batch_id: None,
            queue: (kind.subject() == Subject::Queue).then(|| "tickets".to_owned()),
            text: String::new(),
        }
    }

    fn who(user: &str, role: Role, scope: Scope) -> Principal {
        Principal { scope, ..Principal::new(user, role) }
    }

    #[test]
    fn everybody_sees_what_they_may_read_and_nothing_else() {
        let (mine, other) = (EventId::generate(), EventId::generate());
        let none = Scope::default;
        let one = || Scope { event: Some(mine), queues: None };
        let queues = || Scope { event: None, queues: Some(vec!["tickets".into()]) };
        let ticket = |id| event(Kind::BatchCreated, Some("ann"), Some(id));
        let scan = |id| event(Kind::ScanRecorded, Some("ann"), Some(id));
        let (queue, node) =
            (event(Kind::QueuePaused, None, None), event(Kind::NodeStarted, None, None));
        // The guests of an event are the recipients of a campaign: a key of the event alone does not reach it.
        let campaign = event(Kind::CampaignProgressed, Some("ann"), Some(mine));
        // caller; ticket of the scope's event, of another; scan of the scope's event, of another; campaign; queue; node
        for (caller, wanted) in [
            (who("root", Role::Admin, none()), [1, 1, 1, 1, 1, 1, 1]),
            (who(EVERYBODY, Role::Viewer, none()), [1, 1, 1, 1, 1, 1, 1]),
            (who("ann", Role::Organiser, none()), [1, 1, 1, 1, 1, 0, 0]),
            (who("ann", Role::Viewer, none()), [1, 1, 1, 1, 1, 0, 0]),
            (who("ann", Role::Scanner, none()), [0, 0, 1, 1, 0, 0, 0]),
            (who("ann", Role::Scanner, one()), [0, 0, 1, 0, 0, 0, 0]),
            (who("ann", Role::Organiser, one()), [1, 0, 1, 0, 0, 0, 0]),
            (who("bob", Role::Organiser, none()), [0, 0, 0, 0, 0, 0, 0]),
            (who("bob", Role::Scanner, one()), [0, 0, 0, 0, 0, 0, 0]),
            (who("root", Role::Admin, one()), [1, 0, 1, 0, 0, 0, 0]),
            (who("root", Role::Admin, queues()), [0, 0, 0, 0, 0, 1, 0]),
        ] {
            let events = [
                ticket(mine),
                ticket(other),
                scan(mine),
                scan(other),
                campaign.clone(),
                queue.clone(),
                node.clone(),
            ];
            let seen = events.each_ref().map(|event| u8::from(may_see(&caller, event)));
            assert_eq!(seen, wanted, "{caller:?}");
        }
    }

    #[test]
    fn a_kind_of_a_newer_version_is_for_those_who_read_everything() {
        let newer = Seen { kind: None, ..event(Kind::BatchCreated, Some("ann"), None) };
        assert!(may_see(&who("root", Role::Admin, Scope::default()), &newer));
        assert!(!may_see(&who("ann", Role::Organiser, Scope::default()), &newer));
    }

    #[test]
    fn an_entry_is_read_with_its_queue_and_strange_ones_are_left_out() {
        let entry = |event: String| Entry { position: Position::START, id: "x".into(), event };
        let text = |change: &Change| {
            let id = FeedEventId::generate();
            format!(
                r#"{{"id":"{id}","kind":"{}","at":"2026-11-18T15:00:00Z","data":{}}}"#,
                change.kind(),
                change.data()
            )
        };
        let paused = Change::QueuePaused(QueueData { queue: "mails".into() });
        let seen = Seen::read(entry(text(&paused))).unwrap();
        assert_eq!(seen.queue.as_deref(), Some("mails"));
        let filter = Filter { queue: Some("tickets".into()), ..Filter::default() };
        assert!(!filter.admits(&seen) && Filter::default().admits(&seen));
        let node = Change::NodeStarted(NodeData { node: "a".into() });
        let only = Filter { kinds: Some(vec![Kind::NodeStarted]), ..Filter::default() };
        assert!(only.admits(&Seen::read(entry(text(&node))).unwrap()));
        assert!(!only.admits(&seen));
        for strange in ["", "{}", "[1]", "{\"id\":\"x\"}"] {
            assert_eq!(Seen::read(entry(strange.into())), None, "{strange}");
        }
        assert_eq!(Seen::read(entry(text(&node).replace(',', ",\n"))), None);
    }
}
