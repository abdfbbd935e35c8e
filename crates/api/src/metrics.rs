//! What `GET /metrics` shows: what this node and its workers have counted, and how things are now.
//!
//! Counts are there already. How things are is read when somebody asks, at most every two seconds, however many ask. What cannot
//! be read is not shown: old numbers would look as if all were well.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use stampede_broker::{Broker, ConnectionState, Error, NodeEntry};
use stampede_cluster::{ENTRY_LIVES, NodeHandle};
use stampede_store::Store;
use stampede_telemetry::{
    CampaignLevels, ClusterLevels, Metrics, Part, QueueLevels, RedisSeen, Registry,
};
use stampede_ticketing::Ticketing;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::storage_check::StorageCheck;

/// How long it is believed how things are.
const FRESH: Duration = Duration::from_secs(2);
/// How long it is believed which queues there are: looking for them means looking at all keys of Redis.
const NAMES_KNOWN: Duration = Duration::from_secs(60);
/// A part that does not answer within this time is down.
const PATIENCE: Duration = Duration::from_secs(1);
/// The end of the names of queues of dead letters, which are counted with their queue.
const DEAD: &str = "-dlq";

/// Where the metrics of a node come from.
pub struct MetricsParts {
    /// What is shown.
    pub registry: Registry,
    /// Where it is counted.
    pub metrics: Metrics,
    /// Records.
    pub store: Store,
    /// The last check of records and files.
    pub storage: StorageCheck,
    /// Orders and tickets, with the storage of PDFs.
    pub ticketing: Ticketing,
    /// Redis.
    pub broker: Broker,
    /// This node.
    pub node: NodeHandle,
    /// The queues of this program; others are found.
    pub queues: Vec<String>,
}

/// The metrics of this node. Cheap to clone; clones share what was read.
#[derive(Clone)]
pub struct MetricsPage(Arc<Shared>);

struct Shared {
    parts: MetricsParts,
    looked: Mutex<Looked>,
}

/// What was read, and when.
#[derive(Default)]
struct Looked {
    at: Option<Instant>,
    names: Option<(Instant, BTreeSet<String>)>,
    nodes: Option<u64>,
    redis: RedisSeen,
}

/// What Redis knows.
struct InRedis {
    queues: Vec<QueueLevels>,
    open_breakers: Vec<String>,
    nodes: u64,
}

impl MetricsPage {
    /// The page; nothing is read yet.
    pub fn new(parts: MetricsParts) -> Self {
        for queue in &parts.queues {
            // Shown as 0 from the start: an increase from nothing is none.
            let _ = parts.metrics.jobs(queue);
        }
        Self(Arc::new(Shared { parts, looked: Mutex::default() }))
    }

    /// Where this node counts.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.parts.metrics
    }

    /// The page in the text format of Prometheus.
    pub(crate) async fn text(&self) -> Result<String, stampede_telemetry::Error> {
        let shared = &*self.0;
        let mut looked = shared.looked.lock().await;
        shared.look(&mut looked).await;
        drop(looked);
        stampede_telemetry::text(&shared.parts.registry)
    }
}

impl Shared {
    async fn look(&self, looked: &mut Looked) {
        let MetricsParts { metrics, broker, node, .. } = &self.parts;
        metrics.show_process();
        metrics.redis(&mut looked.redis, broker.reconnects(), &broker.limit_waits());
        if looked.at.is_none_or(|at| at.elapsed() >= FRESH) {
            self.look_elsewhere(looked).await;
            looked.at = Some(Instant::now());
        }
        metrics.show_cluster(&ClusterLevels { nodes: looked.nodes, ..node.levels() });
    }

    /// Reads what Redis and the database know.
    async fn look_elsewhere(&self, looked: &mut Looked) {
        let MetricsParts { metrics, store, storage, ticketing, .. } = &self.parts;
        let (redis, campaigns, storage) = tokio::join!(
            self.in_redis(looked),
            timeout(PATIENCE, self.campaigns()),
            storage.state(store, ticketing, PATIENCE),
        );
        metrics.show_up(Part::Redis, redis.is_some());
        metrics.show_up(Part::Store, storage.database.is_ok());
        metrics.show_up(Part::Files, storage.files.is_ok());
        metrics.show_campaigns(campaigns.ok().flatten().as_ref());
        metrics.show_queues(redis.as_ref().map(|redis| redis.queues.as_slice()));
        looked.nodes = redis.as_ref().map(|redis| redis.nodes);
        if let Some(redis) = redis {
            metrics.show_breakers(&redis.open_breakers);
        }
    }

    async fn in_redis(&self, looked: &mut Looked) -> Option<InRedis> {
        if self.parts.broker.connection_state() != ConnectionState::Connected {
            return None;
        }
        match timeout(PATIENCE, self.ask_redis(looked)).await {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot read the levels of queues for metrics");
                None
            }
            Err(_) => None,
        }
    }

    async fn ask_redis(&self, looked: &mut Looked) -> Result<InRedis, Error> {
        let broker = &self.parts.broker;
        let names = self.queue_names(looked).await?;
        let figures = broker.figures(&names).await?;
        let queues = figures.into_iter().map(|figures| QueueLevels {
            jobs: figures.jobs.iter().map(|(state, count)| (state.name(), *count)).collect(),
            queue: figures.queue,
            oldest_waiting: figures.oldest_waiting,
            dead_letters: figures.dead_letters,
            is_paused: figures.is_paused,
        });
        let nodes: Vec<NodeEntry<IgnoredAny, IgnoredAny>> =
            broker.registry(ENTRY_LIVES).nodes().await?;
        let breakers = broker.open_breakers().await?;
        let services = breakers.into_iter().map(|breaker| service(&breaker.name).to_owned());
        Ok(InRedis {
            queues: queues.collect(),
            open_breakers: services.collect(),
            nodes: nodes.len() as u64,
        })
    }

    /// The queues of this program, and others that were found lately.
    async fn queue_names(&self, looked: &mut Looked) -> Result<Vec<String>, Error> {
        let MetricsParts { broker, queues, .. } = &self.parts;
        if looked.names.as_ref().is_none_or(|(at, _)| at.elapsed() >= NAMES_KNOWN) {
            let found = broker.queue_names().await?;
            looked.names = Some((Instant::now(), found));
        }
        let found = looked.names.iter().flat_map(|(_, names)| names);
        let mut names: BTreeSet<&String> = found.filter(|name| !name.ends_with(DEAD)).collect();
        // First: they keep their names if there are too many.
        for name in queues {
            names.remove(name);
        }
        Ok(queues.iter().chain(names).cloned().collect())
    }

    async fn campaigns(&self) -> Option<CampaignLevels> {
        let totals = self.parts.store.campaign_totals().await.ok()?;
        Some(CampaignLevels {
            states: totals.iter().map(|it| (it.state.as_str(), it.campaigns)).collect(),
            unknown: totals.iter().map(|it| it.unknown).sum(),
        })
    }
}

/// The service of a circuit breaker: the part of its name before the first colon. What follows is an account, say.
fn service(breaker: &str) -> &str {
    breaker.split(':').next().unwrap_or(breaker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_no_services() {
        assert_eq!([service("campaign:anns-bot"), service("mail")], ["campaign", "mail"]);
    }
}
