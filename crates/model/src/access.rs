//! Who is asking, and what they may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What the holder of a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything, on everybody's records.
    Admin,
    /// Creates events and orders tickets; sees and changes only their own.
    Organiser,
    /// Reads their user's records, changes nothing.
    Viewer,
}

impl Role {
    /// All roles, for help texts and parsers.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Organiser, Self::Viewer];

    /// The word used on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Organiser => "organiser",
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
            .ok_or_else(|| format!("{text:?} is not a role (admin, organiser or viewer)"))
    }
}

/// The user behind a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Owns what this request creates.
    pub user: String,
    /// What the key allows.
    pub role: Role,
}

impl Principal {
    /// May read a record of `owner`.
    pub fn may_read(&self, owner: &str) -> bool {
        self.role == Role::Admin || self.user == owner
    }

    /// May create records of its own.
    pub fn may_write(&self) -> bool {
        self.role != Role::Viewer
    }

    /// The owner whose records a listing is limited to; `None` means everybody's.
    pub fn visible_owner(&self) -> Option<&str> {
        (self.role != Role::Admin).then_some(self.user.as_str())
    }
}

/// SHA-256 of an API key. Keys are 256 random bits, so a fast hash is enough to store them safely.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyHash(String);

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
        let who = |role| Principal { user: "ann".into(), role };
        assert!(who(Role::Admin).may_read("bob"));
        assert!(!who(Role::Organiser).may_read("bob"));
        assert!(who(Role::Organiser).may_read("ann"));
        assert!(!who(Role::Viewer).may_write());
        assert_eq!(who(Role::Admin).visible_owner(), None);
        assert_eq!(who(Role::Viewer).visible_owner(), Some("ann"));
    }
}
