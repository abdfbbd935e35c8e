//! The broker's records in the form of answers.

use serde_json::Value;
use serde_json::value::RawValue;
use stampede_broker::{BulkResult, Counts, DeadLetter, JobView, Rate, State};
use stampede_wire::queues as wire;

/// A queue without its active jobs and limits.
pub(super) fn counts(counts: Counts) -> wire::QueueStatus {
    wire::QueueStatus {
        waiting: counts.waiting,
        prioritized: counts.prioritized,
        active: counts.active,
        delayed: counts.delayed,
        completed: counts.completed,
        failed: counts.failed,
        waiting_children: counts.waiting_children,
        paused: false,
        concurrency: None,
        limit: None,
        active_jobs: Vec::new(),
    }
}

/// A rate limit.
pub(super) fn rate(rate: Rate) -> wire::Rate {
    wire::Rate { max: rate.max, per_ms: rate.per_ms }
}

/// A job that runs, for the overview.
pub(super) fn active_job(job: JobView) -> wire::ActiveJob {
    wire::ActiveJob {
        id: job.id,
        name: job.name,
        data: job.data,
        progress: job.progress,
        attempts_made: job.attempts_made,
        processed_by: job.processed_by,
    }
}

/// A job.
pub(super) fn job(job: JobView) -> wire::Job {
    wire::Job {
        id: job.id,
        name: job.name,
        state: state(job.state),
        data: job.data,
        opts: job.opts,
        progress: job.progress,
        attempts_made: job.attempts_made,
        timestamp: job.timestamp,
        processed_on: job.processed_on,
        finished_on: job.finished_on,
        processed_by: job.processed_by,
        failed_reason: job.failed_reason,
        stacktrace: job.stacktrace,
        returnvalue: job.returnvalue,
    }
}

fn state(state: State) -> wire::JobState {
    match state {
        State::Waiting => wire::JobState::Waiting,
        State::Prioritized => wire::JobState::Prioritized,
        State::Active => wire::JobState::Active,
        State::Delayed => wire::JobState::Delayed,
        State::WaitingChildren => wire::JobState::WaitingChildren,
        State::Completed => wire::JobState::Completed,
        State::Failed => wire::JobState::Failed,
    }
}

/// A dead letter.
pub(super) fn letter(letter: DeadLetter) -> wire::DeadLetter {
    wire::DeadLetter {
        payload: json(&letter.payload),
        opts: json(&letter.opts),
        job_id: letter.job_id,
        queue: letter.queue,
        name: letter.name,
        reason: letter.reason,
        attempts_made: letter.attempts_made,
        stacktrace: letter.stacktrace,
        added_at: letter.added_at,
        failed_at: letter.failed_at,
    }
}

fn json(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Many jobs retried, replayed or purged.
pub(super) fn bulk(done: BulkResult, left: u64) -> wire::BulkResult {
    let failed = done.failed.into_iter();
    wire::BulkResult {
        success: failed.len() == 0,
        count: done.count as u64,
        failed: failed.map(|one| wire::NotDone { id: one.id, error: one.error }).collect(),
        left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_called_as_the_broker_calls_them() {
        for one in State::ALL {
            assert_eq!(state(one).as_str(), one.name());
            assert_eq!(serde_json::to_value(state(one)).unwrap(), Value::from(one.name()));
        }
    }
}
