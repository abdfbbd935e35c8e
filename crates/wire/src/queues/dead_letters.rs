//! `/api/queues/{name}/dead-letters`: jobs that failed permanently.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A job that failed permanently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The job's id, and the letter's.
    pub job_id: String,
    /// The queue in which it failed.
    pub queue: String,
    /// The job's type.
    pub name: String,
    /// The job's payload.
    pub payload: Value,
    /// Why it failed.
    pub reason: String,
    /// Attempts it had.
    pub attempts_made: u32,
    /// Errors of its attempts.
    pub stacktrace: Vec<String>,
    /// The job's options.
    pub opts: Value,
    /// Milliseconds since 1970 when it was added.
    pub added_at: u64,
    /// Milliseconds since 1970 when it failed.
    pub failed_at: u64,
}

/// `GET /api/queues/{name}/dead-letters`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetters {
    /// One page of letters, newest first.
    pub letters: Vec<DeadLetter>,
    /// `skip` of the next page; `null` on the last.
    pub next: Option<usize>,
    /// Letters of the queue.
    pub total: u64,
}

/// The body of `…/dead-letters/replay` and `…/dead-letters/purge`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Selection {
    /// Letters by job id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// All letters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Another payload, for a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_those_that_stand_in_the_dead_letter_queue() {
        let letters = json!({
            "letters": [{
                "jobId": "j", "queue": "q", "name": "n", "payload": { "a": 1 }, "reason": "r", "attemptsMade": 3,
                "stacktrace": [], "opts": null, "addedAt": 5, "failedAt": 7,
            }],
            "next": null, "total": 1,
        });
        let read: DeadLetters = serde_json::from_value(letters.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), letters);
        let all = Selection { all: true, ..Selection::default() };
        assert_eq!(serde_json::to_value(all).unwrap(), json!({ "all": true }));
        let some = Selection { ids: Some(vec!["j".into()]), ..Selection::default() };
        assert_eq!(serde_json::to_value(some).unwrap(), json!({ "ids": ["j"] }));
    }
}
