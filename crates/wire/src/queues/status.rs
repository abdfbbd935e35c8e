//! `GET /api/queues/status` and `POST /api/queues/clean`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Rate;

/// All queues, by name.
pub type Status = BTreeMap<String, QueueStatus>;

/// A queue: its jobs by state, the limits on it, and the first of its active jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Jobs that wait for a worker, without a priority.
    pub waiting: u64,
    /// Jobs that wait for a worker, with a priority.
    pub prioritized: u64,
    /// Jobs that run.
    pub active: u64,
    /// Jobs that wait for their time, retries among them.
    pub delayed: u64,
    /// Jobs that are done and kept.
    pub completed: u64,
    /// Jobs that failed and are kept.
    pub failed: u64,
    /// Jobs that wait for their children in a flow.
    #[serde(rename = "waiting-children")]
    pub waiting_children: u64,
    /// No worker takes jobs.
    pub paused: bool,
    /// Most jobs at a time over all workers; `null`: no limit.
    pub concurrency: Option<u64>,
    /// The queue's rate limit; `null`: none.
    pub limit: Option<Rate>,
    /// The first 10 jobs that run.
    pub active_jobs: Vec<ActiveJob>,
}

/// A job that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveJob {
    /// The job's id.
    pub id: String,
    /// The job's type.
    pub name: String,
    /// The job's payload.
    pub data: Value,
    /// The progress that its worker reported.
    pub progress: Value,
    /// Attempts that have ended.
    pub attempts_made: u64,
    /// The worker.
    pub processed_by: Option<String>,
}

/// The body of `POST /api/queues/clean`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Clean {
    /// The queue; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The state; absent: `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Only jobs that ended longer ago than so many milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Most jobs of one queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_those_that_older_software_reads() {
        let status = json!({ "tickets": {
            "waiting": 1, "prioritized": 2, "active": 3, "delayed": 4, "completed": 5, "failed": 6,
            "waiting-children": 7, "paused": false, "concurrency": null, "limit": { "max": 5, "perMs": 1000 },
            "activeJobs": [{ "id": "j", "name": "n", "data": {}, "progress": 0, "attemptsMade": 1,
                "processedBy": null }],
        } });
        let read: Status = serde_json::from_value(status.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), status);
        let clean = Clean { grace_ms: Some(5), ..Clean::default() };
        assert_eq!(serde_json::to_value(clean).unwrap(), json!({ "graceMs": 5 }));
    }

    /// The answer in the manual of the former campaign software, word for word.
    const FORMER: &str = r#"{
  "contracts": {
    "waiting": 2,
    "active": 1,
    "completed": 5,
    "failed": 0,
    "delayed": 0,
    "activeJobs": [
      {
        "id": "contract-xxx",
        "data": {"contractId": "xxx"},
        "progress": 50,
        "attemptsMade": 1
      }
    ]
  }
}"#;

    /// Whether a value has everything that another one has.
    fn has(ours: &Value, theirs: &Value) -> bool {
        match (ours, theirs) {
            (Value::Object(ours), Value::Object(theirs)) => theirs
                .iter()
                .all(|(name, theirs)| ours.get(name).is_some_and(|ours| has(ours, theirs))),
            (Value::Array(ours), Value::Array(theirs)) => {
                ours.len() == theirs.len()
                    && ours.iter().zip(theirs).all(|(ours, theirs)| has(ours, theirs))
            }
            _ => ours == theirs,
        }
    }

    #[test]
    fn the_answer_of_the_former_campaign_software_is_a_part_of_ours() {
        let job = ActiveJob {
            id: "contract-xxx".into(),
            name: "campaign".into(),
            data: json!({ "contractId": "xxx" }),
            progress: json!(50),
            attempts_made: 1,
            processed_by: None,
        };
        let contracts = QueueStatus {
            waiting: 2,
            prioritized: 0,
            active: 1,
            delayed: 0,
            completed: 5,
            failed: 0,
            waiting_children: 0,
            paused: false,
            concurrency: None,
            limit: None,
            active_jobs: vec![job],
        };
        let status = Status::from([("contracts".to_owned(), contracts)]);
        let former: Value = serde_json::from_str(FORMER).unwrap();
        assert!(has(&serde_json::to_value(&status).unwrap(), &former));
    }
}
