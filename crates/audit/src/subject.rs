//! What is changed: a kind of record, its name, and the event it belongs to.

use stampede_model::EventId;
use stampede_store::Durability;

/// A kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An event.
    Event,
    /// A key that signs an event's tickets.
    TicketKey,
    /// The batch of an order.
    Batch,
    /// A ticket.
    Ticket,
    /// The block of a ticket.
    Block,
    /// A check-in list.
    List,
    /// A gate.
    Gate,
    /// A scanning device.
    Device,
    /// An API key.
    Key,
    /// A template.
    Template,
    /// A queue.
    Queue,
    /// A job of a queue.
    Job,
    /// The dead letters of a queue.
    DeadLetters,
    /// A schedule of a queue.
    Schedule,
    /// A rate limit.
    Limit,
    /// A circuit breaker.
    Breaker,
    /// A suspected template.
    Suspect,
    /// A node of the cluster.
    Node,
    /// A webhook endpoint.
    Webhook,
    /// A campaign.
    Campaign,
    /// An account of campaigns.
    Account,
    /// An address that gets nothing any more.
    Suppression,
    /// Anything else.
    Other,
}

impl Kind {
    /// The word that the log shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::TicketKey => "ticket-key",
            Self::Batch => "batch",
            Self::Ticket => "ticket",
            Self::Block => "block",
            Self::List => "list",
            Self::Gate => "gate",
            Self::Device => "device",
            Self::Key => "key",
            Self::Template => "template",
            Self::Queue => "queue",
            Self::Job => "job",
            Self::DeadLetters => "dead-letters",
            Self::Schedule => "schedule",
            Self::Limit => "limit",
            Self::Breaker => "breaker",
            Self::Suspect => "suspect",
            Self::Node => "node",
            Self::Webhook => "webhook",
            Self::Campaign => "campaign",
            Self::Account => "account",
            Self::Suppression => "suppression",
            Self::Other => "other",
        }
    }

    /// What the entry of a change must survive before the change is made. A change of the store commits later to the same
    /// log as the entry, so it never survives without it. Redis knows nothing of that log.
    pub fn durability(self) -> Durability {
        if self.is_in_redis() { Durability::Synced } else { Durability::Relaxed }
    }

    /// Returns whether records of this kind are kept in Redis, not in the database.
    pub fn is_in_redis(self) -> bool {
        match self {
            Self::Event
            | Self::TicketKey
            | Self::Batch
            | Self::Ticket
            | Self::Block
            | Self::List
            | Self::Gate
            | Self::Device
            | Self::Key
            | Self::Template
            | Self::Webhook
            | Self::Campaign
            | Self::Account
            | Self::Suppression => false,
            Self::Queue
            | Self::Job
            | Self::DeadLetters
            | Self::Schedule
            | Self::Limit
            | Self::Breaker
            | Self::Suspect
            | Self::Node
            | Self::Other => true,
        }
    }
}

/// The record that a change is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The kind of the record.
    pub kind: Kind,
    /// Its id or name; `None`: the change makes it.
    pub record: Option<String>,
    /// The event that it belongs to.
    pub event: Option<EventId>,
}

impl Subject {
    /// A record that the change makes.
    pub fn new(kind: Kind) -> Self {
        Self { kind, record: None, event: None }
    }

    /// A record by its id or name.
    pub fn of(kind: Kind, record: impl ToString) -> Self {
        Self { kind, record: Some(record.to_string()), event: None }
    }

    /// The record belongs to this event.
    pub fn at(self, event: EventId) -> Self {
        Self { event: Some(event), ..self }
    }
}
