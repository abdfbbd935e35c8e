//! Names in Redis that other software relies on (W5 in the product's requirements).
//!
//! Adding one? Other people's programs will read it: never rename it afterwards.

use crate::Error;

/// A pub/sub channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// An order was accepted: `{batchId, userId, quantity}`.
    BatchCreated,
    /// A ticket's PDF is ready: `{batch_id, ticket_id, pdf_path, worker_id, completed_count}`.
    TicketCompleted,
    /// A ticket failed for good: `{batch_id, ticket_id, error, worker_id}`.
    TicketFailed,
    /// A job failed for good and is a dead letter now: `{queue, jobId, name, reason}`.
    DeadLetter,
    /// A worker process was started: `{workerId, instanceId, timestamp}`.
    WorkerStarted,
    /// A node has changed the number of its workers: `{instanceId, action, reason, workers}`.
    ScalingEvent,
    /// A coordinator has decided: `{action, nodeId, reason, priority, timestamp}`.
    ScalingDecisions,
    /// Something an operator should know: `{kind, subject, message, timestamp}`.
    ClusterAlert,
}

impl Channel {
    /// The name of the channel.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BatchCreated => "batch:created",
            Self::TicketCompleted => "ticket:completed",
            Self::TicketFailed => "ticket:failed",
            Self::DeadLetter => "queue:dead-letter",
            Self::WorkerStarted => "worker:started",
            Self::ScalingEvent => "scaling:event",
            Self::ScalingDecisions => "scaling:decisions",
            Self::ClusterAlert => "cluster:alert",
        }
    }
}

/// The key that holds the state of a batch for outside readers.
pub(crate) fn batch_key(batch_id: &str) -> String {
    format!("batch:{batch_id}")
}

/// Longest name of a queue and longest id of a job.
const LONGEST: usize = 200;

/// Refuses queue names that would run into other keys or into a Cluster's hash tags.
pub(crate) fn check_queue_name(name: &str) -> Result<(), Error> {
    check("queue name", name)
}

/// Refuses prefixes that BullMQ or a Cluster could not use: in a Cluster, all keys of all queues must lie
/// in one slot, which the part in braces decides.
pub(crate) fn check_prefix(prefix: &str, is_cluster: bool) -> Result<(), Error> {
    let tagged = prefix
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .is_some_and(|(tag, _)| !tag.is_empty());
    let reason = if prefix.is_empty() || prefix.len() > LONGEST {
        format!("it needs 1 to {LONGEST} bytes")
    } else if prefix.contains(|c: char| {
        c == ':' || c == '*' || c == '?' || c == '[' || !(' '..='~').contains(&c)
    }) {
        "it may have letters, digits and signs, but no colon and none of *?[".to_owned()
    } else if is_cluster && !tagged {
        format!("in a Cluster it needs a hash tag, such as {{{prefix}}}")
    } else {
        return Ok(());
    };
    Err(Error::InvalidName {
        what: "queue prefix",
        name: prefix.chars().take(60).collect(),
        reason,
    })
}

/// Refuses ids that would run into other keys of the queue.
pub(crate) fn check_job_id(id: &str) -> Result<(), Error> {
    check("job id", id)
}

/// The same for what several jobs are about.
pub(crate) fn check_deduplication_id(id: &str) -> Result<(), Error> {
    check("deduplication id", id)
}

fn check(what: &'static str, name: &str) -> Result<(), Error> {
    let bad = |c: char| c.is_control() || c.is_whitespace() || matches!(c, ':' | '{' | '}');
    let reason = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > LONGEST {
        format!("it has {} bytes, and {LONGEST} is the most", name.len())
    } else if let Some(c) = name.chars().find(|c| bad(*c)) {
        format!("it contains {c:?}; colons, braces, white space and control characters are refused")
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(60).collect();
    Err(Error::InvalidName { what, name: shown, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_run_into_other_keys_are_refused() {
        for name in ["tickets", "emails-dlq", "a.b_c", "заказы", "0190-ab"] {
            assert!(check_queue_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(10_000);
        for name in ["", "a:b", "{a}", "a b", "a\nb", "a\0", &long] {
            let error = check_job_id(name).unwrap_err().to_string();
            assert!(error.contains("job id") && error.len() < 300, "{error}");
        }
    }
}
