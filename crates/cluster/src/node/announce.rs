//! A node announces itself every few seconds and on changes, and leaves the cluster in good order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stampede_broker::ClaimNode;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::ANNOUNCE_EVERY;

/// Changes are announced at once, but not more often than this.
const ANNOUNCE_PAUSE: Duration = Duration::from_millis(500);
/// Time for taking the node's entry out of the registry.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

impl Shared {
    /// Turns every change of a worker's state into news, until `drained`.
    pub(super) async fn watch(
        self: Arc<Self>,
        mut changes: watch::Receiver<u64>,
        drained: CancellationToken,
    ) {
        loop {
            tokio::select! {
                Ok(()) = changes.changed() => self.news.notify_one(),
                () = drained.cancelled() => return,
            }
        }
    }

    /// Announces this node every few seconds and on news, until `drained`; then takes its entry out.
    pub(super) async fn announce(
        self: Arc<Self>,
        stop: CancellationToken,
        drained: CancellationToken,
    ) {
        let mut last_waiting = None;
        loop {
            let stopping = stop.is_cancelled();
            self.announce_once(&mut last_waiting, stopping).await;
            let news = async {
                tokio::select! {
                    () = self.news.notified() => tokio::time::sleep(ANNOUNCE_PAUSE).await,
                    () = stop.cancelled(), if !stopping => {}
                }
            };
            tokio::select! {
                () = tokio::time::sleep(ANNOUNCE_EVERY) => {}
                () = news => {}
                () = drained.cancelled() => break,
            }
        }
        let registry = self.registry();
        let leaving = registry.forget_node(&self.config.name, &self.me);
        match tokio::time::timeout(LEAVE_WITHIN, leaving).await {
            Ok(Ok(())) => {}
            _ => tracing::debug!("this node's entry could not be removed; it will expire"),
        }
    }

    async fn announce_once(&self, last_waiting: &mut Option<u64>, stopping: bool) {
        let queue = self.queue_metrics(last_waiting).await;
        let mut stats = self.stats();
        stats.stopping = Some(stopping);
        let (registry, name) = (self.registry(), &self.config.name);
        let announced = registry.announce_node(name, &self.me, &stats, None).await;
        if let (Ok(ClaimNode::Ours(_)), Some(queue)) = (&announced, &queue)
            && let Err(error) = registry.announce_metrics(name, &self.me, queue).await
        {
            tracing::debug!(%error, "could not announce the queues");
        }
        if announced.is_ok() {
            // Entries of dead workers would expire anyway when all entries do.
            let _ = registry.sweep_workers().await;
        }
        let mut known = self.known();
        match announced {
            Ok(ClaimNode::Ours(announced)) => {
                known.announced = Some((announced, Instant::now()));
                if std::mem::replace(&mut known.ousted, false) {
                    tracing::info!(node = name, "has its name back");
                }
            }
            Ok(ClaimNode::Taken { holder, .. }) => {
                if !std::mem::replace(&mut known.ousted, true) {
                    tracing::error!(
                        node = name,
                        holder = holder.as_ref().map(tracing::field::display),
                        "another process took this node's name while it was away; set another SERVER_NAME. \
                         Its workers go on, but it takes no commands"
                    );
                }
            }
            Err(error) => tracing::debug!(%error, "could not announce this node"),
        }
    }
}
