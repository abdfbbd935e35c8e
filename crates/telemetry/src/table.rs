//! THE TABLE: every metric, one entry each. The doc comment is the metric's help.
//!
//! Adding a metric? Add an entry here, and a function for its source in `jobs.rs`, `events.rs` or `levels.rs`. Then write the
//! document: `STAMPEDE_WRITE_DOCS=1 cargo test -p stampede-telemetry`.
//!
//! Names: base units (`_seconds`, `_bytes`), `_total` for what only grows. Labels: only [`LabelValues`], never an id, an address, a
//! URL or the text of an error. Names without `stampede_` are those of older software (docs/compatibility.md) or of Prometheus
//! itself. A level of the whole cluster is shown by every node: queries take `max`.

use crate::declare::table;
use crate::labels::LabelValues::{self, OneOf, Queue, Route, Service, Status, Version};

/// How a run of a job ended.
pub(crate) const ENDS: LabelValues =
    OneOf(&["completed", "failed", "retried", "snoozed", "cancelled", "stalled"]);
/// States of jobs, as BullMQ names them.
pub(crate) const JOB_STATES: LabelValues = OneOf(&[
    "waiting",
    "prioritized",
    "active",
    "delayed",
    "waiting-children",
    "completed",
    "failed",
]);
/// States of worker processes.
pub(crate) const WORKER_STATES: [&str; 6] =
    ["starting", "running", "draining", "restarting", "crash-looping", "cannot-start"];
/// Why a worker process was replaced.
pub(crate) const RESTARTS: LabelValues = OneOf(&["died", "memory", "cannot-start", "rolling"]);
/// Methods of HTTP that this program knows.
pub(crate) const METHODS: LabelValues =
    OneOf(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
/// Channels of campaigns.
pub(crate) const CHANNELS: LabelValues =
    OneOf(&["console", "webhook", "smtp", "telegram", "whatsapp", "sms"]);
/// What became of an attempt to send a message.
pub(crate) const ATTEMPTS: LabelValues =
    OneOf(&["sent", "failed", "retried", "unknown", "skipped"]);
/// States of campaigns.
pub(crate) const CAMPAIGN_STATES: [&str; 6] =
    ["draft", "scheduled", "running", "paused", "completed", "cancelled"];
/// Why an address gets no more messages.
pub(crate) const SUPPRESSIONS: LabelValues =
    OneOf(&["stop", "bounce", "complaint", "blocked", "manual"]);
/// What limits are about: the beginning of their names.
pub(crate) const LIMITS: LabelValues =
    OneOf(&["queue", "spacing", "day", "warmup", "pair", "campaign", "account", "channel"]);

/// Durations of jobs as older software has them.
const CONTRACT: [f64; 9] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];
/// From a stamped ticket to a job that takes a minute.
const RUNS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0];
/// Requests: few, because there are many routes.
const REQUESTS: [f64; 8] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Reads and transactions of the database.
const STORE: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];
/// Tickets: stamped in a millisecond, typeset in a second.
const RENDERS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Tasks of the pool, as older software has them.
const TASKS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

table! {
    /// Runs of jobs that ended, by how. "failed" is permanent: a dead letter. BullMQ's event "failed" is failed and retried.
    jobs: Counter = "queue_jobs_total" { queue: Queue, status: ENDS } workers;
    /// How long completed jobs were worked on.
    job_duration: Histogram[CONTRACT] = "queue_job_duration_seconds" { queue: Queue } workers;
    /// How long each run of a job took, however it ended.
    job_run: Histogram[RUNS] = "stampede_job_run_seconds" { queue: Queue } workers;
    /// How long jobs waited for a worker before their first run: from the time at which they could begin.
    job_wait: Histogram[RUNS] = "stampede_job_wait_seconds" { queue: Queue } workers;

    /// Jobs in each state.
    job_count: Gauge = "bullmq_job_count" { queue: Queue, state: JOB_STATES } node;
    /// How long the job has waited that has waited longest; 0 if none waits.
    oldest_waiting: Gauge = "stampede_queue_oldest_waiting_seconds" { queue: Queue } node;
    /// Jobs that failed permanently and wait for an operator.
    dead_letters: Gauge = "stampede_dead_letters" { queue: Queue } node;
    /// Whether the queue is paused: 1 or 0.
    queue_paused: Gauge = "stampede_queue_paused" { queue: Queue } node;

    /// Worker processes of this node in each state.
    workers: Gauge = "stampede_workers" { state: OneOf(&WORKER_STATES) } node;
    /// Jobs that the workers of this node can run at the same time.
    slots: Gauge = "stampede_worker_slots" {} node;
    /// Jobs that the workers of this node run.
    slots_busy: Gauge = "stampede_worker_slots_busy" {} node;
    /// Worker processes of this node that were replaced, by why.
    restarts: Counter = "stampede_worker_restarts_total" { reason: RESTARTS } node;
    /// Whether this node coordinates the cluster: 1 or 0.
    leader: Gauge = "stampede_leader" {} node;
    /// Nodes of the cluster that are alive.
    nodes: Gauge = "stampede_nodes" {} node;
    /// The version of this node; always 1.
    build: Gauge = "stampede_build_info" { version: Version } node;

    /// How long requests took. The route is its pattern; requests for no route have the route "other".
    http: Histogram[REQUESTS] = "stampede_http_request_duration_seconds"
        { method: METHODS, route: Route, status: Status } node;

    /// Tickets whose PDF was made, or that will not be made.
    tickets: Counter = "stampede_tickets_total" { status: OneOf(&["completed", "failed"]) } workers;
    /// How long it took to print a ticket: stamped into a page that is ready, or typeset.
    renders: Histogram[RENDERS] = "stampede_render_seconds"
        { mode: OneOf(&["stamped", "typeset"]) } workers;

    /// Whether this node can use Redis, the database and the folder of files: 1 or 0.
    up: Gauge = "stampede_up" { part: OneOf(&["redis", "store", "files"]) } node;
    /// How long reads and transactions of the database took.
    store: Histogram[STORE] = "stampede_store_seconds" { kind: OneOf(&["read", "write"]) } workers;
    /// How often Redis was back after it had been away, over all processes of this node.
    redis_reconnects: Counter = "stampede_redis_reconnects_total" {} workers;

    /// Attempts to send messages of campaigns, by channel and what became of them.
    messages: Counter = "stampede_campaign_messages_total"
        { channel: CHANNELS, outcome: ATTEMPTS } workers;
    /// Campaigns in each state.
    campaigns: Gauge = "stampede_campaigns" { status: OneOf(&CAMPAIGN_STATES) } node;
    /// Recipients of whom nobody knows whether the message arrived.
    unknown: Gauge = "stampede_campaign_unknown" {} node;
    /// Receipts of providers, by what they say.
    receipts: Counter = "stampede_receipts_total"
        { channel: CHANNELS, status: OneOf(&["sent", "delivered", "read", "failed"]) } node;
    /// Addresses that were suppressed, by why.
    suppressions: Counter = "stampede_suppressions_total" { reason: SUPPRESSIONS } workers;

    /// How often something had to wait for a rate limit, by what the limit is about.
    limit_waits: Counter = "stampede_limit_waits_total" { kind: LIMITS } workers;
    /// Whether a circuit breaker of the service is open: 1 or 0. A service is shown once one was open.
    breakers: Gauge = "stampede_breaker_open" { service: Service } node;

    /// Threads of the pool that run a task.
    pool_active: Gauge = "bot_worker_pool_active_workers" {} workers;
    /// Tasks that wait for a thread of the pool.
    pool_queue: Gauge = "bot_worker_pool_queue_size" {} workers;
    /// How long tasks of the pool ran.
    task_duration: Histogram[TASKS] = "bot_worker_task_duration_seconds" {} workers;
    /// How long tasks of the pool waited.
    task_wait: Histogram[TASKS] = "bot_worker_task_wait_seconds" {} workers;
    /// Tasks of the pool that ended well.
    tasks_completed: Counter = "bot_worker_tasks_completed_total" {} workers;
    /// Tasks of the pool that failed.
    tasks_failed: Counter = "bot_worker_tasks_failed_total" {} workers;
    /// Tasks that the pool refused because it was full.
    tasks_refused: Counter = "bot_worker_tasks_refused_total" {} workers;
    /// Stickers that were asked for, by whether they were there already.
    sticker_cache: Counter = "bot_sticker_cache_total" { result: OneOf(&["hit", "miss"]) } workers;

    /// Time that this process has used processors, in user and system mode.
    cpu: Total = "process_cpu_seconds_total" {} node;
    /// Files that this process has open.
    open_files: Gauge = "process_open_fds" {} node;
    /// Files that this process may open.
    most_files: Gauge = "process_max_fds" {} node;
    /// Virtual memory of this process.
    virtual_memory: Gauge = "process_virtual_memory_bytes" {} node;
    /// Resident memory of this process.
    resident_memory: Gauge = "process_resident_memory_bytes" {} node;
    /// When this process was started, in seconds since 1970.
    start_time: Gauge = "process_start_time_seconds" {} node;
    /// Threads of this process.
    threads: Gauge = "process_threads" {} node;
}

impl Table {
    /// Makes the registry show all metrics.
    pub(crate) fn register(&self, registry: &prometheus::Registry) -> prometheus::Result<()> {
        self.all().into_iter().try_for_each(|family| family.register(registry))
    }
}
