//! The heartbeat of a worker: it lives, it is this busy, it has ended so many jobs. Redis is told every few
//! seconds, the supervisor whenever it changes.

use std::time::Duration;

use stampede_broker::{ConsumerHandle, Registry, Tallies, WorkerPresence};
use stampede_wire::cluster::WorkerLoad;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time between two looks at how busy the worker is.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Patience for the last announcement.
const LAST_ANNOUNCEMENT: Duration = Duration::from_secs(1);

/// How busy a worker is, over all of its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Jobs it runs.
    pub busy: usize,
    /// Jobs it could run at the same time.
    pub slots: usize,
}

/// Announces a worker.
pub struct Heartbeat {
    /// The worker.
    pub worker: WorkerPresence,
    /// Where it is announced.
    pub registry: Registry,
    /// Time between two announcements.
    pub every: Duration,
    /// Where its supervisor reads how busy it is; `None` until it takes jobs.
    pub reports: watch::Sender<Option<Report>>,
}

impl Heartbeat {
    /// Announces the worker until `ended`; from `stop` on as one that drains.
    pub(crate) async fn run(
        self,
        consumers: Vec<ConsumerHandle>,
        stop: CancellationToken,
        ended: CancellationToken,
    ) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut counted = Tallies::default();
        let mut next = Instant::now();
        let mut drains = false;
        loop {
            let report = report(&consumers);
            self.reports.send_if_modified(|last| last.replace(report) != Some(report));
            if Instant::now() >= next {
                next = Instant::now() + self.every;
                self.announce(status(drains), report, tallies(&consumers), &mut counted).await;
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
        let report = Report { busy: 0, ..report(&consumers) };
        let last = async {
            self.announce(status(true), report, tallies(&consumers), &mut counted).await;
            self.registry.forget_worker(&self.worker.id, &self.worker.incarnation).await
        };
        // An entry that is not removed expires by itself.
        let _ = tokio::time::timeout(LAST_ANNOUNCEMENT, last).await;
    }

    async fn announce(&self, status: &str, report: Report, total: Tallies, counted: &mut Tallies) {
        let more = WorkerLoad { busy: report.busy as u64, slots: report.slots as u64 };
        let announced = async {
            self.registry.announce_worker(&self.worker, status, &more).await?;
            self.registry.count(&self.worker.node, total, counted).await
        };
        if let Err(error) = announced.await {
            tracing::debug!(%error, "could not announce this worker");
        }
    }
}

fn status(drains: bool) -> &'static str {
    if drains { "draining" } else { "running" }
}

fn report(consumers: &[ConsumerHandle]) -> Report {
    Report {
        busy: consumers.iter().map(ConsumerHandle::running).sum(),
        slots: consumers.iter().map(ConsumerHandle::slots).sum(),
    }
}

fn tallies(consumers: &[ConsumerHandle]) -> Tallies {
    consumers.iter().map(ConsumerHandle::tallies).fold(Tallies::default(), |sum, more| Tallies {
        completed: sum.completed + more.completed,
        failed: sum.failed + more.failed,
        stalled: sum.stalled + more.stalled,
    })
}
