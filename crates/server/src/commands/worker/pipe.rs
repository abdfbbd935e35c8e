//! The pipe to the supervisor: standard output. A worker tells on it that it takes jobs, how busy it is whenever that changes, and
//! every second what it has counted (`telemetry`), if that has changed.

use std::time::Duration;

use stampede_broker::Broker;
use stampede_telemetry::{Metrics, RedisSeen, Snapshot};
use stampede_worker::Report;
use tokio::io::{AsyncWriteExt, Stdout};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often counts are told.
const COUNTS_EVERY: Duration = Duration::from_secs(1);

/// The worker's end of the pipe.
pub(super) struct Pipe {
    output: Stdout,
    metrics: Metrics,
    broker: Broker,
    redis: RedisSeen,
    /// What was told last.
    told: Snapshot,
}

impl Pipe {
    pub(super) fn new(metrics: Metrics, broker: Broker) -> Self {
        let (redis, told) = (RedisSeen::default(), Snapshot::default());
        Self { output: tokio::io::stdout(), metrics, broker, redis, told }
    }

    /// Tells how busy the worker is and what it counts until nobody reports any more; returns the pipe for the last words.
    pub(super) async fn tell(mut self, mut reports: watch::Receiver<Option<Report>>) -> Self {
        let mut ticks = tokio::time::interval(COUNTS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_ready = false;
        loop {
            tokio::select! {
                changed = reports.changed() => {
                    if changed.is_err() {
                        return self;
                    }
                    let report = *reports.borrow_and_update();
                    if let Some(Report { busy, slots }) = report {
                        let ready = if std::mem::replace(&mut is_ready, true) { "" } else { "ready\n" };
                        self.write(&format!("{ready}busy {busy} of {slots}\n")).await;
                    }
                }
                _ = ticks.tick() => self.tell_metrics().await,
            }
        }
    }

    /// Tells what this process has counted since it began, if that is more than before.
    pub(super) async fn tell_metrics(&mut self) {
        let (reconnects, waits) = (self.broker.reconnects(), self.broker.limit_waits());
        self.metrics.redis(&mut self.redis, reconnects, &waits);
        let counted = self.metrics.snapshot();
        if counted != self.told {
            self.write(&counted.line()).await;
            self.told = counted;
        }
    }

    async fn write(&mut self, text: &str) {
        // A supervisor that is gone is noticed elsewhere.
        let _ = self.output.write_all(text.as_bytes()).await;
        let _ = self.output.flush().await;
    }
}
