//! What is so now: set when somebody asks for the metrics.

use std::collections::HashMap;
use std::time::Duration;

use crate::Metrics;
use crate::events::Part;
use crate::family::Family;
use crate::table::{CAMPAIGN_STATES, WORKER_STATES};
use crate::values::{Counter, Gauge, Histogram, Seen, Value};

/// What is so in one queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueLevels {
    /// Its name.
    pub queue: String,
    /// Jobs in each state, by BullMQ's names of states.
    pub jobs: Vec<(&'static str, u64)>,
    /// How long the job has waited that has waited longest.
    pub oldest_waiting: Duration,
    /// Jobs that failed permanently and wait for an operator.
    pub dead_letters: u64,
    /// The queue is paused.
    pub is_paused: bool,
}

/// What is so with this node and its cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterLevels {
    /// Workers of this node in each state that occurs.
    pub workers: Vec<(&'static str, u64)>,
    /// Jobs that they can run at the same time.
    pub slots: u64,
    /// Jobs that they run.
    pub busy: u64,
    /// This node coordinates the cluster.
    pub leads: bool,
    /// Nodes that are alive; `None`: unknown, because Redis is away.
    pub nodes: Option<u64>,
}

/// What is so with campaigns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CampaignLevels {
    /// Campaigns in each state that occurs.
    pub states: Vec<(&'static str, u64)>,
    /// Recipients of whom nobody knows whether the message arrived.
    pub unknown: u64,
}

impl Metrics {
    /// Shows the queues; `None`: nothing is known about them, because Redis is away. Old numbers would look as if all were well.
    pub fn show_queues(&self, queues: Option<&[QueueLevels]>) {
        let table = &self.table;
        let queues = queues.unwrap_or_default();
        let each = |level: fn(&QueueLevels) -> f64| {
            queues.iter().map(move |queue| (vec![queue.queue.clone()], level(queue)))
        };
        let jobs = queues.iter().flat_map(|queue| {
            let of = |(state, count): &(&str, u64)| {
                (vec![queue.queue.clone(), (*state).to_owned()], *count as f64)
            };
            queue.jobs.iter().map(of).collect::<Vec<_>>()
        });
        let sum = |one: f64, other: f64| one + other;
        table.job_count.replace(jobs, sum);
        table.dead_letters.replace(each(|queue| queue.dead_letters as f64), sum);
        table.oldest_waiting.replace(each(|queue| queue.oldest_waiting.as_secs_f64()), f64::max);
        table.queue_paused.replace(each(|queue| flag(queue.is_paused)), f64::max);
    }

    /// Shows this node and its cluster.
    pub fn show_cluster(&self, levels: &ClusterLevels) {
        let table = &self.table;
        for state in WORKER_STATES {
            table.workers.with(&[state]).set(count_of(&levels.workers, state));
        }
        table.slots.with(&[]).set(levels.slots as f64);
        table.slots_busy.with(&[]).set(levels.busy as f64);
        table.leader.with(&[]).set(flag(levels.leads));
        match levels.nodes {
            Some(nodes) => table.nodes.with(&[]).set(nodes as f64),
            None => table.nodes.clear(),
        }
    }

    /// Shows campaigns; `None`: nothing is known about them, because the database is away.
    pub fn show_campaigns(&self, levels: Option<&CampaignLevels>) {
        let Some(levels) = levels else {
            self.table.campaigns.clear();
            self.table.unknown.clear();
            return;
        };
        for state in CAMPAIGN_STATES {
            self.table.campaigns.with(&[state]).set(count_of(&levels.states, state));
        }
        self.table.unknown.with(&[]).set(levels.unknown as f64);
    }

    /// Shows whether this node can use a part.
    pub fn show_up(&self, part: Part, is_up: bool) {
        self.table.up.with(&[part.as_str()]).set(flag(is_up));
    }

    /// Shows the services whose circuit breakers are open, and that those of all others are closed that were open before.
    pub fn show_breakers(&self, open: &[String]) {
        let breakers = &self.table.breakers;
        breakers.each(|gauge| gauge.set(0.0));
        open.iter().for_each(|service| breakers.with(&[service]).set(1.0));
    }

    /// Shows as 0 what a node and its workers may count: an increase from nothing would be none.
    pub fn show_zeros(&self) {
        let table = &self.table;
        for counter in [
            &table.restarts,
            &table.tickets,
            &table.messages,
            &table.receipts,
            &table.suppressions,
            &table.limit_waits,
        ] {
            counter.show_all();
        }
    }

    /// Shows the version of this program.
    pub fn show_version(&self, version: &str) {
        self.table.build.with(&[version]).set(1.0);
    }

    /// The metrics of a pool of threads; they are shown from now on.
    pub fn pool(&self) -> PoolMetrics {
        let table = &self.table;
        PoolMetrics {
            active: table.pool_active.with(&[]),
            queue: table.pool_queue.with(&[]),
            duration: table.task_duration.with(&[]),
            wait: table.task_wait.with(&[]),
            completed: (table.tasks_completed.with(&[]), Seen::default()),
            failed: (table.tasks_failed.with(&[]), Seen::default()),
            refused: (table.tasks_refused.with(&[]), Seen::default()),
        }
    }

    /// A sticker was asked for that was there already, or was not.
    pub fn sticker_asked(&self, was_there: bool) {
        self.table.sticker_cache.with(&[if was_there { "hit" } else { "miss" }]).add(1);
    }
}

/// What a pool of threads has done since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolTotals {
    /// Threads that run a task.
    pub active: usize,
    /// Tasks that wait.
    pub queued: usize,
    /// Tasks that ended well.
    pub completed: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Tasks that were refused.
    pub refused: u64,
}

/// A counter, and how much of a total that is kept elsewhere it has.
type Following = (std::sync::Arc<Counter>, Seen);

/// The metrics of one pool of threads.
#[derive(Debug)]
pub struct PoolMetrics {
    active: std::sync::Arc<Gauge>,
    queue: std::sync::Arc<Gauge>,
    duration: std::sync::Arc<Histogram>,
    wait: std::sync::Arc<Histogram>,
    completed: Following,
    failed: Following,
    refused: Following,
}

impl PoolMetrics {
    /// Shows what the pool tells of itself.
    pub fn show(&self, totals: &PoolTotals) {
        self.active.set(totals.active as f64);
        self.queue.set(totals.queued as f64);
        for ((counter, seen), total) in [
            (&self.completed, totals.completed),
            (&self.failed, totals.failed),
            (&self.refused, totals.refused),
        ] {
            counter.add(seen.growth(total));
        }
    }

    /// A task began after it had waited so long.
    pub fn waited(&self, wait: Duration) {
        self.wait.observe(wait);
    }

    /// A task ran so long.
    pub fn ran(&self, took: Duration) {
        self.duration.observe(took);
    }
}

impl Family<Gauge> {
    /// Shows exactly these values. Those that have the same labels, because their names are too many, are put together.
    fn replace(
        &self,
        all: impl IntoIterator<Item = (Vec<String>, f64)>,
        together: fn(f64, f64) -> f64,
    ) {
        let mut shown: HashMap<Vec<String>, f64> = HashMap::new();
        for (labels, value) in all {
            let value_now = |before: &mut f64| *before = together(*before, value);
            shown.entry(self.allowed(&labels)).and_modify(value_now).or_insert(value);
        }
        self.replace_all(shown.into_iter().map(|(labels, value)| {
            let gauge = Gauge::new(&[]);
            gauge.set(value);
            (labels, gauge)
        }));
    }
}

fn flag(is_so: bool) -> f64 {
    if is_so { 1.0 } else { 0.0 }
}

fn count_of(counts: &[(&'static str, u64)], wanted: &str) -> f64 {
    let counts = counts.iter().filter(|(state, _)| *state == wanted).map(|(_, count)| count);
    // As integers: the sum of no floating-point numbers is -0.
    counts.sum::<u64>() as f64
}
