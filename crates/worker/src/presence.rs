//! A worker says that it is there, how busy it is and what it has done: to Redis every few seconds,
//! to its supervisor when it changes.

use std::time::Duration;

use stampede_broker::{ConsumerHandle, Registry, Tallies, WorkerPresence};
use stampede_wire::cluster::WorkerLoad;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often to look how busy it is.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long to try to say good-bye.
const GOOD_BYE: Duration = Duration::from_secs(1);

/// How busy a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Jobs it works on.
    pub busy: usize,
    /// Jobs it could work on at a time.
    pub slots: usize,
}

/// Who a worker is, and whom it tells.
pub struct Presence {
    /// Who it is.
    pub worker: WorkerPresence,
    /// Where it announces itself.
    pub registry: Registry,
    /// How often.
    pub every: Duration,
    /// Where its supervisor reads how busy it is; `None` until it takes jobs.
    pub reports: watch::Sender<Option<Report>>,
}

impl Presence {
    /// Announces the worker until `ended`; it drains from `stop` on.
    pub(crate) async fn run(
        self,
        consumer: ConsumerHandle,
        stop: CancellationToken,
        ended: CancellationToken,
    ) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut counted = Tallies::default();
        let mut next = Instant::now();
        let mut drains = false;
        loop {
            let report = Report { busy: consumer.running(), slots: consumer.slots() };
            self.reports.send_if_modified(|last| last.replace(report) != Some(report));
            if Instant::now() >= next {
                next = Instant::now() + self.every;
                self.announce(&consumer, report, drains, &mut counted).await;
            }
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled(), if !drains => {
                    drains = true;
                    next = Instant::now();
                }
                () = ended.cancelled() => break,
            }
        }
        let report = Report { busy: 0, slots: consumer.slots() };
        let good_bye = async {
            self.announce(&consumer, report, true, &mut counted).await;
            self.registry.forget_worker(&self.worker.id, &self.worker.incarnation).await
        };
        // What is not said expires by itself.
        let _ = tokio::time::timeout(GOOD_BYE, good_bye).await;
    }

    async fn announce(
        &self,
        consumer: &ConsumerHandle,
        report: Report,
        drains: bool,
        counted: &mut Tallies,
    ) {
        let status = if drains { "draining" } else { "running" };
        let more = WorkerLoad { busy: report.busy as u64, slots: report.slots as u64 };
        let told = async {
            self.registry.announce_worker(&self.worker, status, &more).await?;
            self.registry.count(&self.worker.node, consumer.tallies(), counted).await
        };
        if let Err(error) = told.await {
            tracing::debug!(%error, "could not announce this worker");
        }
    }
}
