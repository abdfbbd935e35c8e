//! Runs the jobs of a list until it is stopped.

use std::sync::Arc;

use stampede_broker::{Broker, Consumer, ConsumerConfig, ConsumerHandle, Error, JobList};
use stampede_telemetry::Metrics;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::counts::Counts;
use crate::heartbeat::Heartbeat;

/// Works until `stop`, then drains all queues at the same time. Returns when everything it started has ended.
///
/// `config.slots` is `JOB_CONCURRENCY`: each queue has the slots that its kinds of jobs make of it. Runs are counted in `metrics`.
pub async fn run(
    config: ConsumerConfig,
    broker: &Broker,
    jobs: &JobList,
    metrics: &Metrics,
    heartbeat: Heartbeat,
    stop: CancellationToken,
) -> Result<(), Error> {
    let mut consumers = Vec::new();
    for name in jobs.queues() {
        let config = ConsumerConfig {
            slots: jobs.slots(name, config.slots),
            observer: Arc::new(Counts(metrics.jobs(name))),
            ..config.clone()
        };
        consumers.push(Consumer::new(config, broker.queue(name).await?, jobs.handler(name)));
    }
    let handles: Vec<ConsumerHandle> = consumers.iter().map(Consumer::handle).collect();
    let (stop, ended) = (stop.child_token(), CancellationToken::new());
    let mut beating = JoinSet::new();
    beating.spawn(heartbeat.run(handles, stop.clone(), ended.clone()));
    let mut working = JoinSet::new();
    for consumer in consumers {
        working.spawn(consumer.run(stop.clone()));
    }
    let mut panic = None;
    while let Some(result) = working.join_next().await {
        if let Err(error) = result {
            // A worker that serves only some of its queues would look healthy: it ends, and is replaced.
            stop.cancel();
            panic = error.try_into_panic().ok().or(panic);
        }
    }
    ended.cancel();
    // A panic of the heartbeat has been reported already.
    while beating.join_next().await.is_some() {}
    match panic {
        Some(panic) => std::panic::resume_unwind(panic),
        None => Ok(()),
    }
}
