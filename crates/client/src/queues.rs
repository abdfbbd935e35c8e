//! Queues, jobs, dead letters, schedules, rate limits, circuit breakers.

use serde::Serialize;
use stampede_wire::queues::{
    Added, Breakers, BulkResult, Changed, Clean, Cleaned, DeadLetters, Done, Drained, JobChanged,
    JobWithLog, Jobs, Limits, NewJob, NewSchedule, Obliterated, Rate, Schedules, Selection, Status,
};

use crate::{Client, Result, segment, with_query};

/// Part of a list.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Entries before it.
    pub skip: usize,
    /// Most entries in it.
    pub count: usize,
}

/// Jobs to list.
#[derive(Debug, Clone)]
pub struct JobQuery {
    /// The state, or `all`; absent: all that wait for a worker.
    pub state: Option<String>,
    /// A text that they contain.
    pub search: Option<String>,
    /// The part of the list.
    pub page: Page,
}

/// Dead letters to list.
#[derive(Debug, Clone)]
pub struct LetterQuery {
    /// A text that they contain.
    pub search: Option<String>,
    /// The part of the list.
    pub page: Page,
}

#[derive(Serialize)]
struct Concurrency {
    jobs: Option<u64>,
}

#[derive(Serialize)]
struct Drain {
    delayed: bool,
}

#[derive(Serialize)]
struct Obliterate<'a> {
    confirm: &'a str,
    force: bool,
}

#[derive(Serialize)]
struct Empty {}

/// The answer of a deletion: a note, or nothing.
fn noted(answer: Option<Changed>) -> Changed {
    answer.unwrap_or(Changed { success: true, note: None })
}

fn queue_path(queue: &str, what: &str) -> String {
    format!("/api/queues/{}/{what}", segment(queue))
}

fn job_path(queue: &str, id: &str) -> String {
    queue_path(queue, &format!("jobs/{}", segment(id)))
}

fn schedule_path(queue: &str, id: &str) -> String {
    queue_path(queue, &format!("schedules/{}", segment(id)))
}

impl Client {
    /// All queues with their counts.
    pub async fn queue_status(&self) -> Result<Status> {
        self.get("/api/queues/status").await
    }

    /// Removes ended jobs.
    pub async fn clean_queues(&self, clean: &Clean) -> Result<Cleaned> {
        self.post("/api/queues/clean", clean).await
    }

    /// Stops workers from taking jobs of a queue.
    pub async fn pause_queue(&self, queue: &str) -> Result<Changed> {
        self.post(&queue_path(queue, "pause"), &Empty {}).await
    }

    /// Lets workers take jobs of a queue again.
    pub async fn resume_queue(&self, queue: &str) -> Result<Changed> {
        self.post(&queue_path(queue, "resume"), &Empty {}).await
    }

    /// Limits the jobs of a queue that run at a time; `None` lifts the limit.
    pub async fn set_concurrency(&self, queue: &str, jobs: Option<u64>) -> Result<Changed> {
        self.post(&queue_path(queue, "concurrency"), &Concurrency { jobs }).await
    }

    /// Removes waiting jobs of a queue, at most 10,000; the answer tells how many are left.
    pub async fn drain_queue(&self, queue: &str) -> Result<Drained> {
        self.post(&queue_path(queue, "drain"), &Drain { delayed: false }).await
    }

    /// Removes waiting and delayed jobs of a queue, at most 10,000; the answer tells how many are left.
    pub async fn drain_queue_and_delayed(&self, queue: &str) -> Result<Drained> {
        self.post(&queue_path(queue, "drain"), &Drain { delayed: true }).await
    }

    /// Destroys a queue in which no job runs, at most 10,000 jobs; the answer tells how many are left.
    pub async fn obliterate_queue(&self, queue: &str) -> Result<Obliterated> {
        let body = Obliterate { confirm: queue, force: false };
        self.post(&queue_path(queue, "obliterate"), &body).await
    }

    /// Destroys a queue although jobs run, at most 10,000 jobs; the answer tells how many are left.
    pub async fn obliterate_busy_queue(&self, queue: &str) -> Result<Obliterated> {
        let body = Obliterate { confirm: queue, force: true };
        self.post(&queue_path(queue, "obliterate"), &body).await
    }

    /// Retries failed jobs of a queue, at most 10,000.
    pub async fn retry_failed(&self, queue: &str) -> Result<BulkResult> {
        self.post(&queue_path(queue, "retry"), &Empty {}).await
    }

    /// Jobs of a queue.
    pub async fn jobs(&self, queue: &str, query: &JobQuery) -> Result<Jobs> {
        let (skip, count) = (query.page.skip.to_string(), query.page.count.to_string());
        let parameters = [
            ("skip", Some(skip.as_str())),
            ("count", Some(count.as_str())),
            ("state", query.state.as_deref()),
            ("search", query.search.as_deref()),
        ];
        self.get(&with_query(&queue_path(queue, "jobs"), &parameters)).await
    }

    /// One job with its log.
    pub async fn job(&self, queue: &str, id: &str) -> Result<JobWithLog> {
        self.get(&job_path(queue, id)).await
    }

    /// Adds a job.
    pub async fn add_job(&self, queue: &str, job: &NewJob) -> Result<Added> {
        self.post(&queue_path(queue, "jobs"), job).await
    }

    /// Runs a failed job again.
    pub async fn retry_job(&self, queue: &str, id: &str) -> Result<JobChanged> {
        self.post(&format!("{}/retry", job_path(queue, id)), &Empty {}).await
    }

    /// Lets a delayed job begin now.
    pub async fn promote_job(&self, queue: &str, id: &str) -> Result<JobChanged> {
        self.post(&format!("{}/promote", job_path(queue, id)), &Empty {}).await
    }

    /// Removes a job that waits, or tells its worker to stop it.
    pub async fn cancel_job(&self, queue: &str, id: &str) -> Result<JobChanged> {
        self.post(&format!("{}/cancel", job_path(queue, id)), &Empty {}).await
    }

    /// Removes a job that does not run.
    pub async fn remove_job(&self, queue: &str, id: &str) -> Result<Changed> {
        self.delete(&job_path(queue, id)).await.map(noted)
    }

    /// Dead letters of a queue.
    pub async fn dead_letters(&self, queue: &str, query: &LetterQuery) -> Result<DeadLetters> {
        let (skip, count) = (query.page.skip.to_string(), query.page.count.to_string());
        let parameters = [
            ("skip", Some(skip.as_str())),
            ("count", Some(count.as_str())),
            ("search", query.search.as_deref()),
        ];
        self.get(&with_query(&queue_path(queue, "dead-letters"), &parameters)).await
    }

    /// Runs jobs of dead letters again, at most 10,000.
    pub async fn replay(&self, queue: &str, which: &Selection) -> Result<BulkResult> {
        self.post(&queue_path(queue, "dead-letters/replay"), which).await
    }

    /// Throws dead letters away, at most 10,000.
    pub async fn purge(&self, queue: &str, which: &Selection) -> Result<BulkResult> {
        self.post(&queue_path(queue, "dead-letters/purge"), which).await
    }

    /// Schedules of a queue.
    pub async fn schedules(&self, queue: &str) -> Result<Schedules> {
        self.get(&queue_path(queue, "schedules")).await
    }

    /// Adds or changes a schedule.
    pub async fn set_schedule(
        &self,
        queue: &str,
        id: &str,
        schedule: &NewSchedule,
    ) -> Result<Done> {
        self.put(&schedule_path(queue, id), schedule).await
    }

    /// Ends a schedule.
    pub async fn remove_schedule(&self, queue: &str, id: &str) -> Result<Changed> {
        self.delete(&schedule_path(queue, id)).await.map(noted)
    }

    /// The rate limits that were set.
    pub async fn limits(&self) -> Result<Limits> {
        self.get("/api/limits").await
    }

    /// Sets or changes a rate limit.
    pub async fn set_limit(&self, name: &str, rate: Rate) -> Result<Done> {
        self.put(&format!("/api/limits/{}", segment(name)), &rate).await
    }

    /// Removes a rate limit.
    pub async fn remove_limit(&self, name: &str) -> Result<Changed> {
        self.delete(&format!("/api/limits/{}", segment(name))).await.map(noted)
    }

    /// The circuit breakers that are not closed.
    pub async fn breakers(&self) -> Result<Breakers> {
        self.get("/api/breakers").await
    }

    /// Closes a circuit breaker.
    pub async fn close_breaker(&self, name: &str) -> Result<Changed> {
        self.delete(&format!("/api/breakers/{}", segment(name))).await.map(noted)
    }
}
