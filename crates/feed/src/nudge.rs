//! Tells the node that relays that the outbox has rows: without it, the relay looks once a second.
//!
//! The store wakes this task after every write of its process. However many writes there are, at most twenty messages a
//! second leave. A message that is lost costs a second, nothing more.

use std::time::Duration;

use stampede_broker::Broker;
use stampede_store::Store;
use tokio_util::sync::CancellationToken;

/// The shortest pause between two messages.
const PAUSE: Duration = Duration::from_millis(50);

/// Nudges the relay from a process that does not relay: a worker.
pub struct Nudger {
    store: Store,
    broker: Broker,
}

impl Nudger {
    /// Watches the writes of this process.
    pub fn new(store: Store, broker: Broker) -> Self {
        Self { store, broker }
    }

    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let nudging = async {
            loop {
                self.store.written().await;
                if let Err(error) = self.broker.feed().nudge().await {
                    tracing::trace!(%error, "the relay was not told to look");
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = nudging => {}
            () = stop.cancelled() => {}
        }
    }
}
