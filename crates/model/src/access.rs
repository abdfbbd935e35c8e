//! Who is asking, and what they may do.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{EventId, KeyId, Timestamp};

/// What the holder of a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything, on everybody's records.
    Admin,
    /// Creates events and orders tickets; sees and changes only their own.
    Organiser,
    /// Lets guests in at the events of their user; reads and changes nothing else.
    Scanner,
    /// Reads their user's records, or everybody's if the user is `*`; changes nothing.
    Viewer,
}

impl Role {
    /// All roles, for help texts and parsers.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Organiser, Self::Scanner, Self::Viewer];

    /// The word used on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Organiser => "organiser",
            Self::Scanner => "scanner",
            Self::Viewer => "viewer",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a role (admin, organiser, scanner or viewer)"))
    }
}

/// The user name whose viewers read everybody's records.
pub const EVERYBODY: &str = "*";

/// What a key is limited to, besides its role. An empty scope limits nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Only this event, with its orders, tickets and check-ins.
    pub event: Option<EventId>,
    /// Only these queues.
    pub queues: Option<Vec<String>>,
}

impl Scope {
    /// Whether the key is limited to anything.
    pub fn is_limited(&self) -> bool {
        self.event.is_some() || self.queues.is_some()
    }

    /// Whether an event is within the scope. A scope of queues alone has no event.
    pub fn has_event(&self, event: EventId) -> bool {
        !self.is_limited() || self.event == Some(event)
    }

    /// Whether a queue is within the scope. A scope of an event alone has no queue.
    pub fn has_queue(&self, name: &str) -> bool {
        !self.is_limited() || self.names_queue(name)
    }

    fn names_queue(&self, name: &str) -> bool {
        self.queues.iter().flatten().any(|queue| queue == name)
    }

    /// Whether everything that the other scope reaches is within this one.
    pub fn contains(&self, other: &Self) -> bool {
        if !self.is_limited() {
            return true;
        }
        let event = other.event.is_none_or(|event| self.event == Some(event));
        let queues = other.queues.iter().flatten().all(|name| self.names_queue(name));
        other.is_limited() && event && queues
    }
}

/// The user behind a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Owns what this request creates.
    pub user: String,
    /// What the key allows.
    pub role: Role,
    /// The key of the request; `None` for people who sign in with a token of their identity provider.
    pub key: Option<KeyId>,
    /// What the key is limited to.
    pub scope: Scope,
    /// When the key ends; `None`: never, or there is no key.
    pub expires_at: Option<Timestamp>,
}

impl Principal {
    /// A user without a key and without a limit.
    pub fn new(user: impl Into<String>, role: Role) -> Self {
        Self { user: user.into(), role, key: None, scope: Scope::default(), expires_at: None }
    }

    /// May read a record of `owner`.
    pub fn may_read(&self, owner: &str) -> bool {
        self.reads_everything() || (self.role != Role::Scanner && self.user == owner)
    }

    /// May create records of its own.
    pub fn may_write(&self) -> bool {
        matches!(self.role, Role::Admin | Role::Organiser)
    }

    /// May let guests in at an event of `owner`.
    pub fn may_admit(&self, owner: &str, event: EventId) -> bool {
        let role = self.role == Role::Admin
            || (matches!(self.role, Role::Organiser | Role::Scanner) && self.user == owner);
        role && self.scope.has_event(event)
    }

    /// The owner whose records a listing is limited to; `None` means everybody's.
    pub fn visible_owner(&self) -> Option<&str> {
        (!self.reads_everything()).then_some(self.user.as_str())
    }

    /// Whether the records of all users are visible.
    pub fn reads_everything(&self) -> bool {
        self.role == Role::Admin || (self.role == Role::Viewer && self.user == EVERYBODY)
    }
}

/// SHA-256 of an API key. Keys are 256 random bits, so a fast hash is enough to store them safely.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyHash(String);

impl fmt::Debug for KeyHash {
    /// Not the hash: a log needs none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash")
    }
}

impl KeyHash {
    /// Hashes a secret key.
    pub fn of(secret: &str) -> Self {
        Self(hex::encode(Sha256::digest(secret)))
    }

    /// The hash as hexadecimal text, as the store keeps it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_admins_reach_into_records_of_others() {
        let who = |role| Principal::new("ann", role);
        assert!(who(Role::Admin).may_read("bob"));
        assert!(!who(Role::Organiser).may_read("bob"));
        assert!(who(Role::Organiser).may_read("ann"));
        assert!(!who(Role::Viewer).may_write());
        assert_eq!(who(Role::Admin).visible_owner(), None);
        assert_eq!(who(Role::Viewer).visible_owner(), Some("ann"));
    }

    #[test]
    fn a_viewer_of_everybody_reads_everything_and_changes_nothing() {
        let viewer = Principal::new(EVERYBODY, Role::Viewer);
        assert!(viewer.may_read("bob") && !viewer.may_write());
        assert_eq!(viewer.visible_owner(), None);
        assert!(!Principal::new(EVERYBODY, Role::Organiser).may_read("bob"));
    }

    #[test]
    fn a_limited_scope_contains_what_it_names_and_never_an_unlimited_one() {
        let (event, other) = (EventId::generate(), EventId::generate());
        let scope = |event, queues: Option<&[&str]>| Scope {
            event,
            queues: queues.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
        };
        let all = Scope::default();
        let night = scope(Some(event), None);
        let mails = scope(None, Some(&["mails", "slow"]));
        let both = scope(Some(event), Some(&["mails", "slow"]));
        for (outer, inner, fits) in [
            (&all, &all, true),
            (&all, &both, true),
            (&night, &all, false),
            (&night, &night, true),
            (&night, &scope(Some(other), None), false),
            (&night, &both, false),
            (&mails, &scope(None, Some(&["slow"])), true),
            (&mails, &scope(None, Some(&["slow", "tickets"])), false),
            (&mails, &all, false),
            (&mails, &night, false),
            (&both, &night, true),
            (&both, &mails, true),
        ] {
            assert_eq!(outer.contains(inner), fits, "{outer:?} {inner:?}");
        }
        assert!(night.has_event(event) && !night.has_event(other) && !night.has_queue("mails"));
        assert!(mails.has_queue("slow") && !mails.has_queue("tickets") && !mails.has_event(event));
        assert!(all.has_event(other) && all.has_queue("tickets"));
    }

    #[test]
    fn a_scanner_admits_at_events_of_its_user_and_reads_nothing() {
        let (event, other) = (EventId::generate(), EventId::generate());
        let mut scanner = Principal::new("ann", Role::Scanner);
        assert!(scanner.may_admit("ann", event) && !scanner.may_admit("bob", event));
        assert!(!scanner.may_read("ann") && !scanner.may_write());
        scanner.scope.event = Some(event);
        assert!(scanner.may_admit("ann", event) && !scanner.may_admit("ann", other));
        assert!(!Principal::new("ann", Role::Viewer).may_admit("ann", event));
        assert!(Principal::new("root", Role::Admin).may_admit("ann", event));
    }
}
