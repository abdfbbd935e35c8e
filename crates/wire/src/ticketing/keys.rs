//! The keys that sign the tickets of an event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{EventId, KeyRing, PublicKey};

/// The public keys of an event. A scanner needs nothing else; `stampede verify --keys` reads this JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventKeys {
    /// The event.
    pub event: EventId,
    /// Its name, for people.
    pub event_name: String,
    /// The signature algorithm: always `Ed25519`.
    pub algorithm: String,
    /// Number of the key that signs new tickets.
    pub signing: Option<u32>,
    /// All keys, revoked ones included.
    pub keys: Vec<PublicKey>,
}

/// The answer to a revocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRevoked {
    /// Number of the revoked key.
    pub revoked: u32,
    /// Number of the key that signs from now on.
    pub signing: u32,
    /// Tickets that were signed with the revoked key.
    pub tickets_to_hand_out_again: u64,
}

impl From<&KeyRing> for EventKeys {
    fn from(ring: &KeyRing) -> Self {
        Self {
            event: ring.event(),
            event_name: ring.event_name.clone(),
            algorithm: "Ed25519".to_owned(),
            signing: ring.signing().map(|key| key.number),
            keys: ring.keys().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stampede_model::{Signer, Timestamp};

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn keys_have_the_names_that_scanners_read() {
        let event = EventId::from_bytes([1; 16]);
        let bytes = Signer::new(event, 1, &[0; 32]).public_bytes();
        let key = PublicKey::new(1, &bytes, Timestamp::UNIX_EPOCH, None).unwrap();
        let keys = EventKeys {
            event,
            event_name: "Night".into(),
            algorithm: "Ed25519".into(),
            signing: Some(1),
            keys: vec![key],
        };
        let json = json!({
            "event": event,
            "eventName": "Night",
            "algorithm": "Ed25519",
            "signing": 1,
            "keys": [{
                "kid": 1,
                "publicKey": "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",
                "createdAt": "1970-01-01T00:00:00Z",
                "revokedAt": null,
            }],
        });
        assert_golden(&keys, json.clone());
        assert!(
            KeyRing::from_json(&json.to_string()).is_ok(),
            "a scanner reads the answer as it is"
        );
        assert_golden(
            &KeyRevoked { revoked: 1, signing: 2, tickets_to_hand_out_again: 9 },
            json!({ "revoked": 1, "signing": 2, "ticketsToHandOutAgain": 9 }),
        );
    }
}
