//! `/api/limits`, `/api/breakers` and `/api/suspects`: rate limits, circuit breakers and suspects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rate: at most `max` permits in any window of `perMs` milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// Most permits in any window; 0 stops everything.
    pub max: u32,
    /// Length of the window in milliseconds.
    pub per_ms: u64,
}

/// A rate limit with its name; that of a queue is called `queue:<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// The limit's name.
    pub name: String,
    /// Most permits in any window.
    pub max: u32,
    /// Length of the window in milliseconds.
    pub per_ms: u64,
}

/// `GET /api/limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The limits that were set, by name.
    pub limits: Vec<Limit>,
}

/// A circuit breaker that is not closed: its service is not called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Breaker {
    /// The service.
    pub name: String,
    /// `open`, or `half-open` while one call tries the service.
    pub state: String,
    /// Milliseconds until the service is tried again.
    pub retry_in_ms: u64,
}

/// `GET /api/breakers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breakers {
    /// The breakers that are not closed.
    pub breakers: Vec<Breaker>,
}

/// Something that may bring down the process that works with it, such as a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suspect {
    /// Its name: `template:<revision>`.
    pub name: String,
    /// Processes that died of it in a row; from three on it is set aside.
    pub strikes: u32,
    /// Why it is suspected, or how the last of these processes died.
    pub reason: String,
    /// Milliseconds until it is forgotten.
    pub expires_in_ms: u64,
}

/// `GET /api/suspects`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suspects {
    /// All suspects, by name.
    pub suspects: Vec<Suspect>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_pinned() {
        let limits = json!({ "limits": [{ "name": "queue:q", "max": 5, "perMs": 1000 }] });
        let read: Limits = serde_json::from_value(limits.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), limits);
        let breakers =
            json!({ "breakers": [{ "name": "mail", "state": "half-open", "retryInMs": 5 }] });
        let read: Breakers = serde_json::from_value(breakers.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), breakers);
        let suspects = json!({ "suspects": [
            { "name": "template:ab", "strikes": 3, "reason": "r", "expiresInMs": 5 },
        ] });
        let read: Suspects = serde_json::from_value(suspects.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), suspects);
        let rate = serde_json::to_value(Rate { max: 5, per_ms: 1000 }).unwrap();
        assert_eq!(rate, json!({ "max": 5, "perMs": 1000 }));
    }
}
