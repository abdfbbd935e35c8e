//! `/api/queues/{name}/schedules`: jobs that come again and again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A schedule; the names are BullMQ's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// The schedule's id.
    pub key: String,
    /// The type of its jobs.
    pub name: String,
    /// Jobs so far.
    #[serde(default)]
    pub iteration_count: u64,
    /// Most jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Milliseconds since 1970 before which no job comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<u64>,
    /// Milliseconds since 1970 after which no job comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<u64>,
    /// The time zone of the pattern; absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// A cron pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// An interval in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Milliseconds since 1970 when the next job comes.
    #[serde(default)]
    pub next: Option<u64>,
    /// Milliseconds by which an interval is shifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The payload of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The options of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opts: Option<Value>,
}

/// `GET /api/queues/{name}/schedules`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedules {
    /// All schedules of the queue.
    pub schedules: Vec<Schedule>,
}

/// The body of `PUT /api/queues/{name}/schedules/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewSchedule {
    /// The type of its jobs.
    pub name: String,
    /// The payload of its jobs; absent: `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// A cron pattern; or `everyMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone of the pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// An interval in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_those_of_bullmq() {
        let schedules = json!({ "schedules": [
            { "key": "k", "name": "n", "iterationCount": 2, "tz": "Europe/Riga", "pattern": "* * * * *",
              "next": null, "data": {}, "opts": { "attempts": 3 } },
            { "key": "l", "name": "n", "iterationCount": 0, "every": 5000, "next": 9, "offset": 4,
              "limit": 3, "startDate": 1, "endDate": 2 },
        ] });
        let read: Schedules = serde_json::from_value(schedules.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), schedules);
        let every =
            NewSchedule { name: "n".into(), every_ms: Some(5000), ..NewSchedule::default() };
        assert_eq!(serde_json::to_value(every).unwrap(), json!({ "name": "n", "everyMs": 5000 }));
        let cron = NewSchedule { time_zone: Some("UTC".into()), ..NewSchedule::default() };
        assert_eq!(serde_json::to_value(cron).unwrap(), json!({ "name": "", "timeZone": "UTC" }));
    }
}
