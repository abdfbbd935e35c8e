//! From settings to the node and its workers.

use std::path::Path;

use anyhow::{Context, Result};
use stampede_broker::JobList;
use stampede_cluster::{NodeConfig, Program, SupervisorConfig};

use super::Ground;
use crate::settings::{Mode, Settings};

/// The queues that workers take jobs from.
pub(super) fn queues(jobs: &JobList) -> Vec<String> {
    jobs.queues().into_iter().map(str::to_owned).collect()
}

pub(super) fn node_config(settings: &Settings, jobs: &JobList) -> NodeConfig {
    let (fleet, scaling) = (&settings.fleet, &settings.scaling);
    NodeConfig {
        name: settings.server_name.clone(),
        mode: fleet.mode.as_str(),
        roles: fleet.roles,
        min: fleet.min,
        max: fleet.max,
        yields: fleet.mode == Mode::Auto,
        limits: scaling.limits.clone(),
        api: scaling.api.clone(),
        interval: scaling.interval,
        stuck_after: scaling.stuck_after,
        queues: queues(jobs),
        version: env!("CARGO_PKG_VERSION"),
    }
}

pub(super) fn supervisor_config(
    settings: &Settings,
    ground: &Ground,
    template: Option<&Path>,
) -> Result<SupervisorConfig> {
    let (drain, kill_after) = SupervisorConfig::deadlines(settings.shutdown_timeout);
    Ok(SupervisorConfig {
        program: Program::own().context("cannot find the program that workers run")?,
        args: vec!["worker".to_owned()],
        env: settings.worker_env(&ground.redis_url, template),
        node: settings.server_name.clone(),
        workers: settings.fleet.count,
        drain,
        kill_after,
        memory: settings.scaling.worker_memory,
        queues: queues(&ground.jobs),
        metrics: ground.counted.metrics.clone(),
    })
}
