//! A node's report: `workers:stats` and `queue:metrics` in Redis, and its health page.

use std::time::Duration;

use stampede_broker::Level;
use stampede_telemetry::ClusterLevels;
use stampede_wire::Loose;
use stampede_wire::cluster::{
    ClusterReach, NodeHealth, NodeStats, QueueMetrics, WorkerCounts, WorkerProcess,
};

use super::Shared;
use crate::autoscaler::Demand;
use crate::supervisor::{SupervisorHandle, WorkerState, WorkerStatus};
use crate::{ANNOUNCE_EVERY, machine};

/// If reading the queues takes longer, a node announces itself without them.
const METRICS_WITHIN: Duration = Duration::from_secs(1);

/// Workers that take jobs.
pub(super) fn running(workers: &[WorkerStatus]) -> impl Iterator<Item = &WorkerStatus> + Clone {
    workers.iter().filter(|worker| worker.state == WorkerState::Running)
}

/// Workers by state, and the number there should be.
fn counts(target: usize, workers: &[WorkerStatus]) -> WorkerCounts {
    let count =
        |state: WorkerState| Some(workers.iter().filter(|w| w.state == state).count() as u64);
    WorkerCounts {
        target: Some(target as u64),
        running: count(WorkerState::Running),
        starting: count(WorkerState::Starting),
        draining: count(WorkerState::Draining),
        restarting: count(WorkerState::Restarting),
        crash_looping: count(WorkerState::CrashLooping),
        cannot_start: count(WorkerState::CannotStart),
        ..WorkerCounts::default()
    }
}

impl From<&WorkerStatus> for WorkerProcess {
    fn from(worker: &WorkerStatus) -> Self {
        Self {
            id: Some(worker.id.clone()),
            state: Some(worker.state),
            pid: worker.pid,
            busy: Some(worker.busy as u64),
            slots: Some(worker.slots as u64),
            memory: Some(worker.memory),
            deaths: Some(worker.deaths.into()),
            problem: worker.problem.clone(),
            ..Self::default()
        }
    }
}

impl Shared {
    /// `GET /health`.
    pub(super) fn health(&self) -> NodeHealth {
        let known = self.known();
        let seen = known.announced.as_ref().map(|(_, at)| at.elapsed());
        let leads = known.leads;
        drop(known);
        let joined = seen.is_some_and(|age| age < 2 * ANNOUNCE_EVERY);
        NodeHealth {
            version: self.config.version.to_owned(),
            node: self.config.name.clone(),
            mode: self.config.mode.to_owned(),
            roles: self.config.roles.names(leads),
            cluster: if joined { ClusterReach::Joined } else { ClusterReach::Away },
            coordinator: self.coordinator().map(|leader| leader.node),
            workers: self.worker_counts(&self.workers()),
        }
    }

    /// What metrics show.
    pub(super) fn levels(&self) -> ClusterLevels {
        let workers = self.workers();
        let running = running(&workers);
        ClusterLevels {
            slots: running.clone().map(|worker| worker.slots as u64).sum(),
            busy: running.map(|worker| worker.busy as u64).sum(),
            workers: workers.iter().map(|worker| (worker.state.as_str(), 1)).collect(),
            leads: self.known().leads,
            nodes: None,
        }
    }

    fn worker_counts(&self, workers: &[WorkerStatus]) -> WorkerCounts {
        counts(self.supervisor.as_ref().map_or(0, SupervisorHandle::target), workers)
    }

    /// `workers:stats`.
    pub(super) fn stats(&self) -> NodeStats {
        let workers = self.workers();
        let running = running(&workers);
        let (busy, slots) = running.clone().fold((0, 0), |(b, s), w| (b + w.busy, s + w.slots));
        let known = self.known();
        let changed = [known.up, known.down].into_iter().flatten().map(|at| at.elapsed()).min();
        let (leads, refused, busy_cores) = (known.leads, known.refused_commands, known.load);
        let (min, ceiling) = (self.fewest_of(&known), known.ceiling);
        drop(known);
        let max = ceiling.unwrap_or(self.config.max).min(self.config.max);
        NodeStats {
            instance_id: Some(self.config.name.clone()),
            workers: Some(running.count() as u64),
            load: Some(machine::load_average()),
            mem_usage: Some(self.memory_mb(&workers)),
            host: Some(self.me.host.clone()),
            pid: Some(self.me.pid),
            version: Some(self.config.version.to_owned()),
            mode: Some(self.config.mode.to_owned()),
            roles: Some(self.config.roles.names(leads)),
            cores: Some(self.cores as u64),
            busy_cores: Some(busy_cores),
            min: Some(min as u64),
            max: Some(max as u64),
            busy: Some(busy as u64),
            slots: Some(slots as u64),
            states: Some(self.worker_counts(&workers)),
            changed_ms_ago: Some(changed.map(milliseconds)),
            refused_commands: Some(refused),
            worker_list: Some(workers.iter().map(|worker| Loose::Known(worker.into())).collect()),
            restart_problem: self.supervisor.as_ref().and_then(|s| s.restart_problem()),
            api_latency_ms: self.latency.ninth_of_ten().map(milliseconds),
            ..NodeStats::default()
        }
    }

    fn memory_mb(&self, workers: &[WorkerStatus]) -> f64 {
        let own = machine::memory_of(self.me.pid).unwrap_or(0);
        let all = own + workers.iter().map(|worker| worker.memory).sum::<u64>();
        (all as f64 / (1 << 20) as f64 * 10.0).round() / 10.0
    }

    /// `queue:metrics`; `None` when Redis does not answer in time.
    pub(super) async fn queue_metrics(
        &self,
        last_waiting: &mut Option<u64>,
    ) -> Option<QueueMetrics> {
        let levels = self.broker.levels(&self.config.queues);
        let levels = tokio::time::timeout(METRICS_WITHIN, levels).await.ok()?.ok()?;
        let sum = |field: fn(&Level) -> u64| levels.iter().map(field).sum::<u64>();
        let (waiting, active) = (sum(|l| l.waiting), sum(|l| l.active));
        let before = last_waiting.replace(waiting);
        let workers = self.workers();
        Some(QueueMetrics {
            waiting: Some(waiting),
            active: Some(active),
            completed: Some(sum(|l| l.completed)),
            failed: Some(sum(|l| l.failed)),
            queue_pressure: Some(Demand { waiting, active }.pressure()),
            queue_growth: Some(before.map_or(0, |before| waiting as i64 - before as i64)),
            workers: Some(running(&workers).count() as u64),
            load: Some(machine::load_average()),
            mem_usage: Some(self.memory_mb(&workers)),
            ..QueueMetrics::default()
        })
    }
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn workers_are_listed_and_counted_as_they_stand_in_redis() {
        let worker = WorkerStatus {
            id: "n-worker-0".to_owned(),
            state: WorkerState::Running,
            pid: Some(8),
            busy: 3,
            slots: 16,
            memory: 1024,
            deaths: 0,
            problem: None,
        };
        let listed = serde_json::to_value(WorkerProcess::from(&worker)).unwrap();
        let wanted = json!({
            "id": "n-worker-0", "state": "running", "pid": 8, "busy": 3, "slots": 16, "memory": 1024,
            "deaths": 0,
        });
        assert_eq!(listed, wanted);
        let wanted = json!({
            "target": 2, "running": 1, "starting": 0, "draining": 0, "restarting": 0, "crashLooping": 0,
            "cannotStart": 0,
        });
        assert_eq!(serde_json::to_value(counts(2, &[worker])).unwrap(), wanted);
    }
}
