//! Who is asking, and what they may do.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{EventId, KeyId};

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
}

impl Principal {
    /// A user without a key and without a limit.
    pub fn new(user: impl Into<String>, role: Role) -> Self {
        Self { user: user.into(), role, key: None, scope: Scope::default() }
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
        role && self.scope.event.is_none_or(|only| only == event)
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
