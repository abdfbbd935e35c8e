//! `/api/queues/{name}/jobs`: jobs of a queue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of a job; the names are BullMQ's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// The job waits for a worker.
    Waiting,
    /// The job waits for a worker, by priority.
    Prioritized,
    /// The job runs.
    Active,
    /// The job waits for its time.
    Delayed,
    /// The job waits for its children in a flow.
    WaitingChildren,
    /// The job is done.
    Completed,
    /// The job has failed permanently.
    Failed,
}

impl JobState {
    /// The state's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Prioritized => "prioritized",
            Self::Active => "active",
            Self::Delayed => "delayed",
            Self::WaitingChildren => "waiting-children",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// A job as an operator sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The job's id.
    pub id: String,
    /// The job's type.
    pub name: String,
    /// The job's state.
    pub state: JobState,
    /// The job's payload.
    pub data: Value,
    /// The job's options.
    pub opts: Value,
    /// The progress that its worker reported.
    pub progress: Value,
    /// Attempts that have ended.
    pub attempts_made: u64,
    /// Milliseconds since 1970 when it was added.
    pub timestamp: Option<u64>,
    /// Milliseconds since 1970 when it last began.
    pub processed_on: Option<u64>,
    /// Milliseconds since 1970 when it ended.
    pub finished_on: Option<u64>,
    /// The worker that ran it last.
    pub processed_by: Option<String>,
    /// Why its last attempt failed.
    pub failed_reason: Option<String>,
    /// Errors of its attempts.
    pub stacktrace: Vec<String>,
    /// The job's result.
    pub returnvalue: Value,
}

/// `GET /api/queues/{name}/jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Jobs {
    /// One page of jobs.
    pub jobs: Vec<Job>,
    /// `skip` of the next page; `null` on the last.
    pub next: Option<usize>,
}

/// `GET /api/queues/{name}/jobs/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobWithLog {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// Lines that its handler logged.
    pub logs: Vec<String>,
}

/// The body of `POST /api/queues/{name}/jobs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewJob {
    /// The job's type.
    pub name: String,
    /// The job's payload; absent: `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The job's id; absent: a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Milliseconds before it may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The smaller, the earlier; absent: before all that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Attempts before it fails permanently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Pauses between attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
}

/// Pauses between attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backoff {
    /// `fixed`, `exponential`, or a name that the worker knows.
    #[serde(rename = "type")]
    pub kind: String,
    /// The first pause in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// `POST /api/queues/{name}/jobs`, answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Added {
    /// Always true.
    pub success: bool,
    /// The job's id.
    pub id: Option<String>,
    /// False if a job of this id was there already.
    pub added: bool,
    /// A hint for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_of_jobs_are_those_of_bullmq() {
        let job = json!({
            "id": "j", "name": "n", "state": "waiting-children", "data": [1], "opts": {}, "progress": 0,
            "attemptsMade": 1, "timestamp": 5, "processedOn": null, "finishedOn": 7, "processedBy": "w",
            "failedReason": null, "stacktrace": ["e"], "returnvalue": null, "logs": ["line"],
        });
        let read: JobWithLog = serde_json::from_value(job.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), job);
        let jobs = json!({ "jobs": [], "next": 50 });
        let read: Jobs = serde_json::from_value(jobs.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), jobs);
    }

    #[test]
    fn a_new_job_says_only_what_was_given() {
        let backoff = Some(Backoff { kind: "fixed".into(), delay_ms: Some(5) });
        let job = NewJob { name: "n".into(), delay_ms: Some(7), backoff, ..NewJob::default() };
        let wanted =
            json!({ "name": "n", "delayMs": 7, "backoff": { "type": "fixed", "delayMs": 5 } });
        assert_eq!(serde_json::to_value(&job).unwrap(), wanted);
        let added = Added { success: true, id: Some("j".into()), added: false, note: None };
        let wanted = json!({ "success": true, "id": "j", "added": false });
        assert_eq!(serde_json::to_value(&added).unwrap(), wanted);
    }
}
