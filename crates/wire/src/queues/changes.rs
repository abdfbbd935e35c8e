//! Answers of requests that change queues and jobs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change without more to tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// Always true.
    pub success: bool,
}

/// A change, perhaps with a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Always true.
    pub success: bool,
    /// A hint for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `POST /api/queues/clean`, answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cleaned {
    /// Always true.
    pub success: bool,
    /// Jobs removed, by queue.
    pub removed: BTreeMap<String, usize>,
    /// Jobs that are left, by queue: one request removes at most 10,000. Queues without any are not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<String, usize>,
    /// A hint for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `POST /api/queues/{name}/drain`, answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drained {
    /// Always true.
    pub success: bool,
    /// Jobs removed.
    pub removed: u64,
    /// Jobs that are left: one request removes at most 10,000.
    #[serde(default)]
    pub left: u64,
    /// A hint for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `POST /api/queues/{name}/obliterate`, answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Obliterated {
    /// Always true.
    pub success: bool,
    /// Jobs that are left: one request removes at most 10,000. 0: the queue is destroyed.
    #[serde(default)]
    pub left: u64,
    /// A hint for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Many jobs retried, replayed or purged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BulkResult {
    /// None has failed.
    pub success: bool,
    /// Jobs for which it was done.
    pub count: u64,
    /// Jobs for which it was not.
    pub failed: Vec<NotDone>,
    /// Jobs or letters that are left: one request does at most 10,000.
    pub left: u64,
}

/// A job that could not be retried, replayed or purged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotDone {
    /// The job.
    pub id: String,
    /// The reason.
    pub error: String,
}

/// A job retried, promoted or cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobChanged {
    /// Always true.
    pub success: bool,
    /// `waiting`, `removed`, or `cancelling` while a worker still runs it.
    pub state: String,
    /// A hint for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_pinned_and_hints_absent_unless_there_is_one() {
        let changed = Changed { success: true, note: None };
        assert_eq!(serde_json::to_value(changed).unwrap(), json!({ "success": true }));
        let drained = Drained { success: true, removed: 5, left: 2, note: Some("n".into()) };
        let wanted = json!({ "success": true, "removed": 5, "left": 2, "note": "n" });
        assert_eq!(serde_json::to_value(drained).unwrap(), wanted);
        let removed = BTreeMap::from([("q".to_owned(), 3)]);
        let cleaned = Cleaned { success: true, removed, left: BTreeMap::new(), note: None };
        let wanted = json!({ "success": true, "removed": { "q": 3 } });
        assert_eq!(serde_json::to_value(cleaned).unwrap(), wanted);
        let failed = vec![NotDone { id: "j".into(), error: "e".into() }];
        let bulk = BulkResult { success: false, count: 2, failed, left: 1 };
        let wanted = json!({
            "success": false, "count": 2, "failed": [{ "id": "j", "error": "e" }], "left": 1,
        });
        assert_eq!(serde_json::to_value(bulk).unwrap(), wanted);
        let job = JobChanged { success: true, state: "waiting".into(), note: None };
        let wanted = json!({ "success": true, "state": "waiting" });
        assert_eq!(serde_json::to_value(job).unwrap(), wanted);
    }
}
